"""Paths of this machine, in object stores and in archives: one type, one walk, one way to open.

Only files are opened, and opening never blocks. A name in a folder may be that of a pipe, a device
or a socket, also where it was that of a file when the folder was listed. To open a pipe would wait
for its writer.
"""

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader, FileIO
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_BINARY", 0)  # Windows
_PAGE = 4096


# ---- listings -----------------------------------------------------------------------------------


class Opener(Protocol):
    """A file of a listing: it opens in any process."""

    @property
    def size(self) -> int:
        """Its size in bytes."""

    def open(self) -> io.BufferedReader:
        """Open its bytes as a stream."""


class PathListing(Struct, frozen=True, eq=False):
    """The openers of all files and the names in all folders, by their keys below ``top``.

    ``top`` is the path of an archive or the URL of a store; ``left_out`` are the members of an
    archive that are not read, each with the reason.
    """

    top: Any
    openers: dict[str, Opener] = field(default_factory=dict)
    folders: dict[str, dict[str, None]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


class ListedPath(Struct, frozen=True):
    """A path in a listing, with the methods of ``pathlib.Path`` that we use. It has no links.

    ``whereabouts`` is what its files are in, for messages.
    """

    whereabouts: ClassVar[str]
    path: PurePosixPath
    listing: PathListing

    def __truediv__(self, name: str) -> Self:
        """Return the path of an entry below it."""
        return replace(self, path=self.path / name)

    @property
    def opener(self) -> Opener | None:
        """What opens this file; None if there is no such file."""
        return self.listing.openers.get(str(self.path))

    @property
    def name(self) -> str:
        """Its last part."""
        return self.path.name

    @property
    def stem(self) -> str:
        """Its last part without the suffix."""
        return self.path.stem

    @property
    def suffix(self) -> str:
        """The suffix of its name."""
        return self.path.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        """Its parts, from the top on."""
        return self.path.parts

    @property
    def parent(self) -> Self:
        """The folder that contains it."""
        return replace(self, path=self.path.parent)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in this folder, sorted."""
        return tuple(sorted(self.listing.folders.get(str(self.path), ())))

    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        return str(self.path) in self.listing.folders

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self.opener is not None

    def is_symlink(self) -> bool:
        """Return False."""
        return False

    def exists(self) -> bool:
        """Return whether it is a file or a folder."""
        return self.is_file() or self.is_dir()

    def resolve(self) -> Self:
        """Return itself."""
        return self

    def open(self, _mode: str = "rb") -> io.BufferedReader:
        """Open its bytes as a stream.

        Raises:
            FileNotFoundError: there is no such file.
        """
        if self.opener is None:
            raise FileNotFoundError(str(self))
        return self.opener.open()


AnyPath: TypeAlias = Path | ListedPath

Location: TypeAlias = str | ListedPath
"""A path of this machine as text, with ``/``, or one in a listing.

Most are only joined, never opened: to join ``Path`` objects takes ten times as long.
"""


def location_of(path: AnyPath | Location) -> Location:
    """Return the location of a path."""
    return path.as_posix() if isinstance(path, Path) else path


def below(folder: Location, path: str) -> Location:
    """Return the location of an entry below a folder."""
    return f"{folder.rstrip('/')}/{path}" if isinstance(folder, str) else folder / path


# ---- the entries of folders ---------------------------------------------------------------------


class FolderEntry(Struct, frozen=True, gc=False):
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


class FolderCache(dict[Location, dict[str, FolderEntry]]):
    """The entries of folders, sorted, by name; a folder is read when it is first looked up.

    The path of an entry is its name.

    Raises:
        OSError: a folder cannot be read.
    """

    def __missing__(self, folder: Location) -> dict[str, FolderEntry]:
        """Read a folder."""
        entries = self[folder] = _entries(folder)
        return entries


def _entries(folder: Location) -> dict[str, FolderEntry]:
    if isinstance(folder, ListedPath):
        return {name: _listed_entry(folder / name) for name in folder.names}
    with os.scandir(folder) as entries:
        by_name = sorted(entries, key=attrgetter("name"))
        return {entry.name: _local_entry(entry) for entry in by_name}


def _listed_entry(path: ListedPath) -> FolderEntry:
    size = path.opener.size if path.opener else 0
    return FolderEntry(path.name, path.is_dir(), size)


def _local_entry(entry: os.DirEntry[str]) -> FolderEntry:
    if entry.is_symlink():
        # Functions of os.path, as those of DirEntry raise if a link leads to itself.
        folder = os.path.isdir(entry)  # noqa: PTH112
        resolves = os.path.exists(entry)  # noqa: PTH110
        special = resolves and not folder and not entry.is_file()
        link = os.readlink(entry.path)  # noqa: PTH115 - the text as written
        return FolderEntry(entry.name, folder, link=link, resolves=resolves, special=special)
    if entry.is_dir():
        return FolderEntry(entry.name, folder=True)
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:  # no permission to enter its folder, or it has vanished
        return FolderEntry(entry.name, folder=False, readable=False)
    return FolderEntry(entry.name, folder=False, size=size, special=not entry.is_file())


def with_slashes(path: object, separator: str = os.sep) -> str:
    """Return a path of this system as reports show it; on Windows ``separator`` is a backslash."""
    return str(path).replace(separator, "/")


def walk(
    top: AnyPath | Location,
    *,
    cache: FolderCache | None = None,
    keep: Callable[[FolderEntry], bool] | None = None,
    follow_links: bool = False,
    unreadable: Callable[[str, OSError], None] | None = None,
) -> Iterator[FolderEntry]:
    """Yield the entries below a folder: siblings by name, a folder before its contents.

    Entries that ``keep`` rejects are neither yielded nor entered. Links to folders are entered
    only with ``follow_links``, where ``keep`` must reject those that lead round in circles.

    Raises:
        OSError: a folder cannot be read. ``unreadable``, if given, is called instead with its
            path and the error, and the folder counts as empty.
    """
    location = location_of(top)
    cache = FolderCache() if cache is None else cache
    pending = [FolderEntry("", folder=True)]  # a stack: trees may be deeper than Python recurses
    while pending:
        entry = pending.pop()
        if entry.path:
            yield entry
        if entry.folder and (entry.link is None or follow_links):
            path = entry.path
            try:
                children = list(cache[below(location, path) if path else location].values())
            except OSError as error:
                if unreadable is None:
                    raise
                unreadable(path, error)
                continue
            if path:
                children = [replace(child, path=f"{path}/{child.path}") for child in children]
            pending += reversed(list(filter(keep, children)))


def list_tree(top: AnyPath | Location, cache: FolderCache | None = None) -> tuple[FolderEntry, ...]:
    """Return everything below a folder, sorted by path; unreadable folders appear as empty."""
    entries = sorted(walk(top, cache=cache, unreadable=lambda *_: None), key=attrgetter("path"))
    return tuple([_with_access(location_of(top), entry) for entry in entries])


def _with_access(top: Location, entry: FolderEntry) -> FolderEntry:
    """Return an entry whose ``readable`` says whether this process may open it."""
    path = below(top, entry.path)
    if entry.link is not None or not isinstance(path, str) or os.access(path, os.R_OK):
        return entry
    return replace(entry, readable=False)


# ---- opening ------------------------------------------------------------------------------------


class NotAFileError(OSError):
    """A pipe, a device or a socket."""


class TooLargeError(OSError):
    """A file of more bytes than are read."""


class _LocalFile(FileIO):
    """A file that ends instead of waiting: some files in ``/proc`` are streams.

    The ``path`` is in errors, as where a disk or a server fails.
    """

    path: str

    def readinto(self, buffer: Any) -> int:
        try:
            return super().readinto(buffer) or 0
        except OSError as error:
            error.filename = self.path
            raise

    def readall(self) -> bytes:
        try:
            return super().readall() or b""
        except OSError as error:
            error.filename = self.path
            raise


def open_file(path: AnyPath | Location, *, follow: bool = True) -> BufferedReader:
    """Open a file of this machine or of a listing; without ``follow``, a link is an error.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    if isinstance(path, ListedPath):
        return path.open()
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            reason = "not a file, but a pipe, a device or a socket"
            raise NotAFileError(errno.ENODEV, reason, str(path))
        file = _LocalFile(descriptor)
        file.path = str(path)
        return BufferedReader(file)
    except BaseException:
        os.close(descriptor)
        raise


def is_folder(path: AnyPath | Location) -> bool:
    """Return whether a path is a folder; False if this cannot be determined."""
    return path.is_dir() if isinstance(path, ListedPath) else os.path.isdir(path)  # noqa: PTH112 - Path.is_dir may raise


def read_file(path: AnyPath | Location, limit: int) -> bytes:
    """Return the content of a file of at most ``limit`` bytes.

    Raises:
        TooLargeError: it has more.
        OSError: it cannot be read, or is not a regular file.
    """
    with open_file(path) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(errno.EFBIG, f"larger than {limit >> 20} MiB", str(path))
    return data


def first_line(path: Path) -> bytes:
    """Return the first line of a file or of a pipe, such as ``<(pass show mlperf)``.

    Raises:
        OSError: it cannot be read, or has no end within a page.
    """
    with path.open("rb") as stream:
        data = stream.readline(_PAGE)
    if len(data) == _PAGE:
        raise TooLargeError(errno.EFBIG, f"the first line has more than {_PAGE} bytes", str(path))
    return data.removesuffix(b"\n")


def refuse_larger(stream: BufferedReader, limit: int) -> None:
    """Refuse an open file of more than ``limit`` bytes, which a library is to read.

    Raises:
        TooLargeError: it has more.
    """
    if os.fstat(stream.fileno()).st_size > limit:
        raise TooLargeError(errno.EFBIG, f"larger than {limit >> 20} MiB")
