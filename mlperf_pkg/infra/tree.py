"""The entries of folders, on this machine, in stores and in archives: one type and one walk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
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


class FolderCache:
    """The entries of folders, each read once."""

    def __init__(self) -> None:
        """Begin without any folder."""
        self._entries: dict[str, dict[str, Entry]] = {}

    def entries(self, folder: Location) -> Mapping[str, Entry]:
        """Return the entries of a folder by name, sorted; their paths are their names.

        Raises:
            OSError: the folder cannot be read.
        """
        key = str(folder)
        if key not in self._entries:
            self._entries[key] = (
                _local_entries(folder) if isinstance(folder, str) else _listed_entries(folder)
            )
        return self._entries[key]


def _listed_entries(folder: ListedPath) -> dict[str, Entry]:
    return {name: _listed_entry(folder / name) for name in folder.names}


def _listed_entry(path: ListedPath) -> Entry:
    return Entry(path.name, path.is_dir(), path.opener.size if path.opener else 0)


def _local_entries(folder: str) -> dict[str, Entry]:
    with os.scandir(folder) as entries:
        return {e.name: _local_entry(e) for e in sorted(entries, key=attrgetter("name"))}


def _local_entry(entry: os.DirEntry[str]) -> Entry:
    folder, path = _is_folder(entry), entry.path
    if entry.is_symlink():
        resolves = os.path.exists(path)  # noqa: PTH110 - a loop does not resolve, and raises nothing
        special = resolves and not folder and not entry.is_file()
        link = os.readlink(path)  # noqa: PTH115 - the text as written
        return Entry(entry.name, folder, link=link, resolves=resolves, special=special)
    if folder:
        return Entry(entry.name, folder)
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:  # no permission to enter its folder, or it has vanished
        return Entry(entry.name, folder, readable=False)
    return Entry(entry.name, folder, size, special=not entry.is_file())


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def with_slashes(path: object, separator: str = os.sep) -> str:
    """Return a path of this system as reports show it; on Windows ``separator`` is a backslash."""
    return str(path).replace(separator, "/")


def skip(path: str, error: OSError) -> None:
    """Do nothing about a folder that ``walk`` cannot read."""


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
        OSError: a folder cannot be read; with ``unreadable``, which is called with its path, it
            counts as empty.
    """
    cache, location = cache or FolderCache(), location_of(top)
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
        return cache.entries(top).values()
    entries = cache.entries(below(top, path))
    return [replace(entry, path=f"{path}/{name}") for name, entry in entries.items()]


def list_tree(top: AnyPath | Location, cache: FolderCache | None = None) -> tuple[Entry, ...]:
    """Return everything below a folder, sorted by path; unreadable folders appear as empty."""
    entries = sorted(walk(top, cache=cache, unreadable=skip), key=attrgetter("path"))
    return tuple([_tried(location_of(top), entry) for entry in entries])


def _tried(top: Location, entry: Entry) -> Entry:
    """Return an entry that says whether this process may open it."""
    path = below(top, entry.path)
    if entry.link is not None or not isinstance(path, str) or os.access(path, os.R_OK):
        return entry
    return replace(entry, readable=False)
