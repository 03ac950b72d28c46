"""The workspace around raw logs: a folder with ``systems/`` or ``mlperf-pkg.yaml``.

It adds what the logs do not say: the systems, and which logs belong to which. It cannot weaken a
verdict: its waivers, for example, are ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mlperf_pkg.config import CONFIG_NAME, read_config
from mlperf_pkg.infra.paths import FolderCache, location_of
from mlperf_pkg.submission.model import Place, Workspace

SYSTEMS = "systems"
_ABOVE = 4  # logs/<system>/<strong or weak>/<benchmark>


def workspace_of(argument: Path, label: str = "") -> Workspace | None:
    """Return the workspace that an argument is or is in; None if there is none.

    What is in ``results/`` is part of a submission. ``label`` is the argument's name in reports.
    Links to descriptions outside of the workspace are not followed.

    Raises:
        UserError: as ``read_config``.
    """
    path = Path(os.path.abspath(argument))  # noqa: PTH100 - links stay as they are
    for folder in (path, *path.parents[:_ABOVE]):
        has_systems = (folder / SYSTEMS).is_dir() and _is_inside(folder / SYSTEMS, folder)
        is_workspace = has_systems or (folder / CONFIG_NAME).is_file()
        if is_workspace and folder / "results" not in (path, *path.parents):
            is_file = not path.is_dir()
            top = Path(label).parent if is_file else Path(label)
            above = os.path.relpath(folder, path.parent if is_file else path)
            shown = Path(os.path.normpath(top / above)).as_posix()
            shown = "" if shown == "." else shown
            systems = tuple(_descriptions(folder, shown)) if has_systems else ()
            return Workspace(folder, shown, systems, read_config(folder))
    return None


def _descriptions(workspace: Path, label: str) -> Iterator[Place]:
    folder = workspace / SYSTEMS
    place = Place(location_of(folder), f"{label}/{SYSTEMS}" if label else SYSTEMS)
    for entry in FolderCache()[place.location].values():
        is_ours = entry.link is None or _is_inside(folder / entry.name, workspace)
        if entry.file and entry.name.endswith(".json") and not entry.hidden and is_ours:
            yield place.child(entry.name)


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
