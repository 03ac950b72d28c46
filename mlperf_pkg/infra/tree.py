"""The entries of folders, on this machine, in stores and in archives: one type and one walk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.infra.listed_path import AnyPath, ListedPath


class Entry(Struct, frozen=True, gc=False):
    """A file or folder; ``path`` is relative to the folder that was listed or walked, with ``/``.

    ``folder`` and ``special`` (a device, pipe or socket) describe what a symbolic link leads to;
    ``link`` is its target as written, and ``resolves`` says whether that exists. ``size`` is in
    bytes, 0 for folders and links. ``readable`` says whether this process may open it.
    """

    path: str
    folder: bool
    size: int = 0
    link: str | None = None
    resolves: bool = True
    readable: bool = True
    special: bool = False

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def file(self) -> bool:
        """Whether it is a regular file, or a link to one."""
        return self.resolves and not self.folder and not self.special

    @property
    def hidden(self) -> bool:
        """Whether its name begins with a dot."""
        return self.name.startswith(".")


class FolderCache:
    """The entries of folders, each read once."""

    def __init__(self) -> None:
        """Begin without any folder."""
        self._entries: dict[str, tuple[Entry, ...]] = {}

    def entries(self, folder: AnyPath) -> tuple[Entry, ...]:
        """Return the entries of a folder, sorted by name; their paths are their names.

        Raises:
            OSError: the folder cannot be read.
        """
        key = str(folder)
        if key not in self._entries:
            if isinstance(folder, ListedPath):
                self._entries[key] = _listed_entries(folder)
            else:
                self._entries[key] = _local_entries(key)
        return self._entries[key]


def _listed_entries(folder: ListedPath) -> tuple[Entry, ...]:
    return tuple(_listed_entry(folder / name) for name in folder.names)


def _listed_entry(path: ListedPath) -> Entry:
    return Entry(path.name, path.is_dir(), path.opener.size if path.opener else 0)


def _local_entries(folder: str) -> tuple[Entry, ...]:
    with os.scandir(folder) as entries:
        return tuple(sorted(map(_local_entry, entries), key=attrgetter("path")))


def _local_entry(entry: os.DirEntry[str]) -> Entry:
    folder, path = _is_folder(entry), entry.path
    if entry.is_symlink():
        resolves = os.path.exists(path)  # noqa: PTH110 - a loop does not resolve, and raises nothing
        special = resolves and not folder and not entry.is_file()
        link = os.readlink(path)  # noqa: PTH115 - the text as written
        return Entry(entry.name, folder, link=link, resolves=resolves, special=special)
    readable = os.access(path, os.R_OK)
    if folder:
        return Entry(entry.name, folder, readable=readable)
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:  # no permission to enter its folder, or it has vanished
        return Entry(entry.name, folder, readable=False)
    return Entry(entry.name, folder, size, readable=readable, special=not entry.is_file())


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def with_slashes(path: object, separator: str = os.sep) -> str:
    """Return a path of this system as reports show it; on Windows ``separator`` is a backslash."""
    return str(path).replace(separator, "/")


def walk(
    top: AnyPath,
    *,
    cache: FolderCache | None = None,
    keep: Callable[[Entry], bool] | None = None,
    follow_links: bool = False,
    skip_unreadable: bool = False,
    unreadable: Callable[[str, OSError], None] | None = None,
) -> Iterator[Entry]:
    """Yield the entries below a folder: siblings by name, a folder before its contents.

    Entries that ``keep`` rejects are neither yielded nor entered. Links to folders are entered
    only with ``follow_links``, where ``keep`` must reject those that lead round in circles.

    Raises:
        OSError: a folder cannot be read; with ``skip_unreadable`` it counts as empty, and so it
            does with ``unreadable``, which is called with its path.
    """
    cache = cache or FolderCache()
    pending = [Entry("", folder=True)]  # a stack: trees may be deeper than Python recurses
    while pending:
        entry = pending.pop()
        if entry.path:
            yield entry
        if entry.folder and (entry.link is None or follow_links):
            try:
                children = _children(top, entry.path, cache)
            except OSError as error:
                if unreadable:
                    unreadable(entry.path, error)
                elif not skip_unreadable:
                    raise
                continue
            pending += reversed(list(filter(keep, children)) if keep else children)


def _children(top: AnyPath, path: str, cache: FolderCache) -> list[Entry]:
    entries = cache.entries(top / path if path else top)
    return [replace(entry, path=f"{path}/{entry.path}") if path else entry for entry in entries]


def list_tree(top: AnyPath, cache: FolderCache | None = None) -> tuple[Entry, ...]:
    """Return everything below a folder, sorted by path; unreadable folders appear as empty."""
    return tuple(sorted(walk(top, cache=cache, skip_unreadable=True), key=attrgetter("path")))
