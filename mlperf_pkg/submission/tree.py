"""All files and folders below a folder, as plain values; links are told, not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from mlperf_pkg.infra.stores import StoredPath

Named: TypeAlias = os.DirEntry[str] | StoredPath
"""What lies in a folder: both have a name, and tell whether it is a folder or a file."""


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


class Folders:
    """What lies in folders, each of which is read only once."""

    def __init__(self) -> None:
        """None is read yet."""
        self._read: dict[str, Sequence[os.DirEntry[str]]] = {}

    def entries(self, folder: Path | StoredPath) -> Sequence[Named]:
        """What lies in a folder, by name.

        Raises:
            OSError: it cannot be read.
        """
        if isinstance(folder, StoredPath):
            return [folder / name for name in folder.names]
        return self.local(str(folder))

    def local(self, folder: str) -> Sequence[os.DirEntry[str]]:
        """As ``entries``, of a folder of this machine."""
        if folder not in self._read:
            with os.scandir(folder) as found:
                self._read[folder] = sorted(found, key=attrgetter("name"))
        return self._read[folder]


def list_tree(top: Path | StoredPath, folders: Folders | None = None) -> tuple[Entry, ...]:
    """Everything below ``top``, by path; folders that cannot be read are told as such."""
    found = _stored(top, "") if isinstance(top, StoredPath) else _below(top, folders or Folders())
    return tuple(sorted(found, key=attrgetter("path")))


def _stored(folder: StoredPath, prefix: str) -> Iterator[Entry]:
    for name in folder.names:
        path, found = prefix + name, folder / name
        yield Entry(path, found.is_dir(), found.object.size if found.is_file() else 0)
        yield from _stored(found, f"{path}/")


def _below(top: Path, folders: Folders) -> Iterator[Entry]:
    left = [(str(top), "")]
    while left:
        folder, prefix = left.pop()
        try:
            found = folders.local(folder)
        except OSError:
            continue
        for each in found:
            entry = _entry(each, prefix + each.name)
            yield entry
            if entry.folder and entry.link is None:
                left.append((each.path, f"{entry.path}/"))


def _entry(found: os.DirEntry[str], path: str) -> Entry:
    folder = _is_folder(found)
    if found.is_symlink():
        there = found.path
        return Entry(path, folder, link=os.readlink(there), resolves=os.path.exists(there))  # noqa: PTH110, PTH115 - text as written; loops are no error
    size = 0 if folder else found.stat(follow_symlinks=False).st_size
    return Entry(path, folder, size, readable=os.access(found.path, os.R_OK))


def _is_folder(found: os.DirEntry[str]) -> bool:
    try:
        return found.is_dir()
    except OSError:  # a link to itself
        return False
