"""The entries of folders, on this machine, in stores and in archives: one type and one walk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.infra.listed_path import AnyPath, ListedPath, Location, below, location_of


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
        return self.path.rpartition("/")[2].startswith(".")


class FolderCache(dict[Location, dict[str, Entry]]):
    """The entries of folders, sorted, by name; a folder is read when it is first looked up.

    The path of an entry is its name.

    Raises:
        OSError: a folder cannot be read.
    """

    def __missing__(self, folder: Location) -> dict[str, Entry]:
        """Read a folder."""
        entries = self[folder] = _entries(folder)
        return entries


def _entries(folder: Location) -> dict[str, Entry]:
    if isinstance(folder, ListedPath):
        return {name: _listed_entry(folder / name) for name in folder.names}
    with os.scandir(folder) as entries:
        return {e.name: _local_entry(e) for e in sorted(entries, key=attrgetter("name"))}


def _listed_entry(path: ListedPath) -> Entry:
    return Entry(path.name, path.is_dir(), path.opener.size if path.opener else 0)


def _local_entry(entry: os.DirEntry[str]) -> Entry:
    if entry.is_symlink():
        # Functions of os.path, as those of DirEntry raise if a link leads to itself.
        folder, resolves = os.path.isdir(entry), os.path.exists(entry)  # noqa: PTH110, PTH112
        special = resolves and not folder and not entry.is_file()
        link = os.readlink(entry.path)  # noqa: PTH115 - the text as written
        return Entry(entry.name, folder, link=link, resolves=resolves, special=special)
    if entry.is_dir():
        return Entry(entry.name, folder=True)
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:  # no permission to enter its folder, or it has vanished
        return Entry(entry.name, folder=False, readable=False)
    return Entry(entry.name, folder=False, size=size, special=not entry.is_file())


def with_slashes(path: object, separator: str = os.sep) -> str:
    """Return a path of this system as reports show it; on Windows ``separator`` is a backslash."""
    return str(path).replace(separator, "/")


def walk(
    top: AnyPath | Location,
    *,
    cache: FolderCache | None = None,
    keep: Callable[[Entry], bool] | None = None,
    follow_links: bool = False,
    unreadable: Callable[[str, OSError], None] | None = None,
) -> Iterator[Entry]:
    """Yield the entries below a folder: siblings by name, a folder before its contents.

    Entries that ``keep`` rejects are neither yielded nor entered. Links to folders are entered
    only with ``follow_links``, where ``keep`` must reject those that lead round in circles.

    Raises:
        OSError: a folder cannot be read. ``unreadable``, if given, is called instead with its
            path and the error, and the folder counts as empty.
    """
    location, cache = location_of(top), FolderCache() if cache is None else cache
    pending = [Entry("", folder=True)]  # a stack: trees may be deeper than Python recurses
    while pending:
        entry = pending.pop()
        if entry.path:
            yield entry
        if entry.folder and (entry.link is None or follow_links):
            try:
                children = _children(location, entry.path, cache)
            except OSError as error:
                if unreadable is None:
                    raise
                unreadable(entry.path, error)
                continue
            pending += reversed(list(filter(keep, children)))


def _children(top: Location, path: str, cache: FolderCache) -> Iterable[Entry]:
    if not path:
        return cache[top].values()
    entries = cache[below(top, path)].items()
    return [replace(entry, path=f"{path}/{name}") for name, entry in entries]


def list_tree(top: AnyPath | Location, cache: FolderCache | None = None) -> tuple[Entry, ...]:
    """Return everything below a folder, sorted by path; unreadable folders appear as empty."""
    entries = sorted(walk(top, cache=cache, unreadable=lambda *_: None), key=attrgetter("path"))
    return tuple([_with_access(location_of(top), entry) for entry in entries])


def _with_access(top: Location, entry: Entry) -> Entry:
    """Return an entry whose ``readable`` says whether this process may open it."""
    path = below(top, entry.path)
    if entry.link is not None or not isinstance(path, str) or os.access(path, os.R_OK):
        return entry
    return replace(entry, readable=False)
