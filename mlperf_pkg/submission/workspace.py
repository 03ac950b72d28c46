"""The workspace around raw logs: a folder with ``systems/`` or ``mlperf-pkg.yaml``.

It says what the logs do not: which systems there are, and which logs are of which. What would
weaken a verdict, such as waivers, is not taken from it.
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


def workspace_of(argument: Path) -> Workspace | None:
    """Return the workspace that an argument is or lies in; None if there is none.

    A folder with ``results/`` is a submission.

    Raises:
        UserError: as ``read_config``.
    """
    path = Path(os.path.abspath(argument))  # noqa: PTH100 - links stay as they are
    for folder in (path, *path.parents[:_ABOVE]):
        has_systems = (folder / SYSTEMS).is_dir()
        if (has_systems or (folder / CONFIG_NAME).is_file()) and not (folder / "results").is_dir():
            top = path if path.is_dir() else path.parent
            shown = Path(os.path.relpath(folder, top)).as_posix()
            label = "" if shown == "." else shown
            systems = tuple(descriptions(folder / SYSTEMS, label)) if has_systems else ()
            return Workspace(folder, label, systems, read_config(folder))
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
