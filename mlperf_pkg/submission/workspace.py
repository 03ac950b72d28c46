"""The workspace around raw logs: a folder with ``systems/`` or ``mlperf-pkg.yaml``.

It adds what the logs do not say: the systems, and which logs belong to which. It cannot weaken a
verdict: its waivers, for example, are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mlperf_pkg.config import CONFIG_NAME, read_config
from mlperf_pkg.infra.listed_path import location_of
from mlperf_pkg.infra.tree import FolderCache
from mlperf_pkg.submission.model import Place, Workspace

SYSTEMS = "systems"
_ABOVE = 4  # logs/<system>/<strong or weak>/<benchmark>


def workspace_of(argument: Path, label: str = "") -> Workspace | None:
    """Return the workspace that an argument is or is in; None without one.

    A folder with ``results/`` is a submission. ``label`` is the argument's name in reports.

    Raises:
        UserError: as ``read_config``.
    """
    path = Path(os.path.abspath(argument))  # noqa: PTH100 - links stay as they are
    for folder in (path, *path.parents[:_ABOVE]):
        has_systems = (folder / SYSTEMS).is_dir()
        if (has_systems or (folder / CONFIG_NAME).is_file()) and not (folder / "results").is_dir():
            is_file = not path.is_dir()
            top = Path(label).parent if is_file else Path(label)
            above = os.path.relpath(folder, path.parent if is_file else path)
            shown = Path(os.path.normpath(top / above)).as_posix()
            shown = "" if shown == "." else shown
            systems = tuple(descriptions(folder / SYSTEMS, shown)) if has_systems else ()
            return Workspace(folder, shown, systems, read_config(folder))
    return None


def descriptions(folder: Path, label: str = "") -> Iterator[Place]:
    """Yield the system descriptions in a folder ``systems/`` of a workspace with this ``label``.

    Raises:
        OSError: the folder cannot be read.
    """
    place = Place(location_of(folder), f"{label}/{SYSTEMS}" if label else SYSTEMS)
    for entry in FolderCache()[place.location].values():
        if entry.file and entry.name.endswith(".json") and not entry.hidden:
            yield place.child(entry.name)
