"""All files and folders below a folder, as plain values; links are told, not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.stores import StoredPath


class Entry(Struct, frozen=True):
    """A file or folder; ``path`` is relative to the top of its tree, with ``/``.

    ``link`` is where a symbolic link points, as written in it; ``resolves`` says whether
    anything is there. A link is a ``folder`` if it leads to one. ``size`` is in bytes, 0 of
    folders and links. ``readable`` says whether this process may open it.
    """

    path: str
    folder: bool
    size: int = 0
    link: str | None = None
    resolves: bool = True
    readable: bool = True

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


def list_tree(top: Path | StoredPath) -> tuple[Entry, ...]:
    """Everything below ``top``, by path; folders that cannot be read are told as such."""
    found = _stored(top, "") if isinstance(top, StoredPath) else _below(top, "")
    return tuple(sorted(found, key=lambda entry: entry.path))


def names_in(folder: Path | StoredPath) -> list[tuple[str, bool]]:
    """The sorted names in a folder, and whether each is a link."""
    if isinstance(folder, StoredPath):
        return [(name, False) for name in folder.names]
    with os.scandir(folder) as entries:
        return sorted((entry.name, entry.is_symlink()) for entry in entries)


def _stored(folder: StoredPath, prefix: str) -> Iterator[Entry]:
    for name in folder.names:
        path, found = prefix + name, folder / name
        yield Entry(path, found.is_dir(), found.object.size if found.is_file() else 0)
        yield from _stored(found, f"{path}/")


def _below(folder: Path, prefix: str) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as listed:
            found = list(listed)
    except OSError:
        return
    for each in found:
        entry = _entry(each, prefix + each.name)
        yield entry
        if entry.folder and entry.link is None:
            yield from _below(Path(each.path), f"{entry.path}/")


def _entry(found: os.DirEntry[str], path: str) -> Entry:
    folder = _is_folder(found)
    if found.is_symlink():
        there = Path(found.path)
        return Entry(path, folder, link=os.readlink(there), resolves=os.path.exists(there))  # noqa: PTH110, PTH115 - text as written; loops are no error
    size = 0 if folder else found.stat(follow_symlinks=False).st_size
    return Entry(path, folder, size, readable=os.access(found.path, os.R_OK))


def _is_folder(found: os.DirEntry[str]) -> bool:
    try:
        return found.is_dir()
    except OSError:  # a link to itself
        return False
