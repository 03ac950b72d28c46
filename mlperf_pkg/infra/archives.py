"""Read archives as if they were folders, without extracting them: tar, compressed tar, and zip.

Archives come from strangers: numbers and sizes are limited, and members that are not plain files
and folders with plain names are left out, with the reason. A compressed tar is decompressed once,
into a temporary file without a name.
"""

from __future__ import annotations

import re
import stat
import sys
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.errors import ArchiveError
from mlperf_pkg.infra.paths import AnyPath, ListedPath, Opener, PathListing, open_file
from mlperf_pkg.infra.source import Content, stem_of
from mlperf_pkg.infra.streams import Deflated, FilePart, Spool, bomb, problem_of

LARGEST_NUMBER = 100_000

_TOP = "."
_MAC = "__MACOSX"  # what macOS adds to each zip
_LONGEST_PATH = 1024
_LONGEST_NAME = 255
_LONGEST_HEADER = 1 << 20
_LONGEST_DIRECTORY = 128 << 20
_READS_PER_MEMBER = 8
_BLOCK = 512
_LOCAL_HEADER = 30
_LOCAL_MAGIC = b"PK\3\4"
_ENCRYPTED = 1
_OF_WINDOWS = re.compile(
    r"""(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])\ *(\..*)?  # devices
    |.*[\ .]|.*[<>:"|?*\x01-\x1f].*""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


class ArchivePath(ListedPath, frozen=True):
    """A path in an archive; the archive itself is its top folder, and has its name."""

    whereabouts = "an archive"

    def __str__(self) -> str:
        """The path of the archive, and the path in it."""
        archive = str(self.listing.top)
        return archive if str(self.path) == _TOP else f"{archive}/{self.path}"

    @property
    def name(self) -> str:
        """Its last part; of the top, the name of the archive without its suffix."""
        return self.path.name or stem_of(self.listing.top.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the archive's path, without its suffix, and those in it."""
        archive = self.listing.top.resolve()
        return (*archive.parts[:-1], stem_of(archive.name), *self.path.parts)


def open_archive(path: AnyPath, content: Content, spool: Callable[[], Spool]) -> ArchivePath:
    """Return the top of an archive with this ``content``.

    ``spool`` is called where the archive has to be copied or decompressed.

    Raises:
        ArchiveError: it is damaged, or must not be read.
        OSError: it cannot be read.
    """
    with _seekable(path, content, spool) as (file, whole):
        members = zip_members(file, whole) if content.is_zip else tar_members(file, whole)
        listing = PathListing(path, folders={_TOP: {}})
        size = 0
        for number, (name, opener, reason) in enumerate(members):
            if number >= LARGEST_NUMBER:
                raise ArchiveError(f"more than {LARGEST_NUMBER:,} files and folders")
            size += opener.size if opener else 0
            problem = bomb(size, whole.size)
            if problem:
                raise ArchiveError(problem)
            _enter(listing, name, opener, reason)
    for both in listing.folders.keys() & listing.openers.keys():
        _leave_out(listing, both, "both a file and a folder")
    return ArchivePath(PurePosixPath(_TOP), listing)


@contextmanager
def _seekable(
    path: AnyPath, content: Content, spool: Callable[[], Spool]
) -> Iterator[tuple[BinaryIO, FilePart]]:
    """Provide a file at the start of the archive, and the part of it that holds the archive."""
    if isinstance(path, Path) and content.compression is None:
        size = path.stat().st_size
        with open_file(path) as file:
            yield file, FilePart(path, 0, size, size)
        return
    copy = spool()
    with content.open(path) as stream:
        whole = copy.append(stream)
        problem = problem_of(stream)
        if problem:
            raise ArchiveError(problem)
    copy.file.seek(whole.start)
    yield copy.file, whole


def _enter(listing: PathListing, name: str, opener: Opener | None, reason: str | None) -> None:
    path = re.sub(r"\A(\./)+", "", name).removesuffix("/")
    if path in {"", "."} or path.split("/")[0] == _MAC:
        return
    problem = unfit(path) or reason
    if problem:
        listing.left_out[name] = problem
    elif path in listing.openers or path in listing.left_out:
        _leave_out(listing, path, "twice in the archive")
    else:
        if opener is None:
            listing.folders.setdefault(path, {})
        else:
            listing.openers[path] = opener
        _enter_in_parents(listing, path)


def _enter_in_parents(listing: PathListing, path: str) -> None:
    """Enter a path in its folder, and that one in its own, up to the first that is known."""
    while path != _TOP:
        path, name = _split(path)
        entries = listing.folders.setdefault(path, {})
        if name in entries:
            return
        entries[name] = None


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder or _TOP, name


def _leave_out(listing: PathListing, path: str, reason: str) -> None:
    """Remove a file that was entered, if it was."""
    listing.left_out[path] = reason
    listing.openers.pop(path, None)
    if path not in listing.folders:
        parent, name = _split(path)
        listing.folders[parent].pop(name, None)


# ---- the members of tar and zip archives ------------------------------------------------


Member: TypeAlias = tuple[str, Opener | None, str | None]
"""The name of a member, the opener of a file (None for a folder), and why it must not be read."""


def tar_members(file: BinaryIO, whole: FilePart) -> Iterator[Member]:
    """Yield the members of a tar archive, which begins where ``file`` is.

    Raises:
        ArchiveError: it is damaged, or must not be read.
    """
    guarded = _Guarded(file, _LONGEST_HEADER)
    try:
        with tarfile.open(fileobj=guarded, mode="r:", encoding="utf-8") as tar:  # type: ignore[call-overload]
            before = -1
            while (info := tar.next()) is not None:
                tar.members = []  # it keeps all of them
                guarded.renew()
                if tar.offset <= before:
                    raise ArchiveError("the tar archive is damaged (a member of a negative size)")
                before = tar.offset
                reason = _tar_reason(info)
                is_file = not (reason or info.isdir())
                part = replace(whole, start=info.offset_data, size=info.size) if is_file else None
                yield info.name, part, reason
            file.seek(tar.offset)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError(f"the tar archive is damaged ({error})") from error
    end = file.read(_BLOCK)
    if len(end) < _BLOCK or any(end):
        raise ArchiveError("the tar archive is cut off or damaged")


def _tar_reason(info: tarfile.TarInfo) -> str | None:
    """Return why a member is neither a plain file nor a folder."""
    kinds = {
        "a sparse file": info.issparse(),
        "a hard link": info.islnk(),
        "a symbolic link": info.issym(),
        "a device or pipe": info.isdev(),
        "neither a file nor a folder": not (info.isreg() or info.isdir()),
    }
    return next((kind for kind, applies in kinds.items() if applies), None)


def zip_members(file: BinaryIO, whole: FilePart) -> Iterator[Member]:
    """Yield the members of a zip archive, which ends where ``file`` does.

    Raises:
        ArchiveError: it is damaged, or must not be read.
    """
    try:
        with zipfile.ZipFile(_Guarded(file, _LONGEST_DIRECTORY)) as archive:
            for info in archive.infolist():
                yield _zip_member(file, info, whole)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise ArchiveError(f"the zip archive is damaged ({error})") from error


def _zip_member(file: BinaryIO, info: zipfile.ZipInfo, whole: FilePart) -> Member:
    name = info.orig_filename
    reason = _zip_reason(info)
    if reason:
        return name, None, reason
    if info.filename.endswith("/"):  # not is_dir, which raises for an empty name
        return name, None, None
    file.seek(max(0, info.header_offset))
    header = file.read(_LOCAL_HEADER)
    if info.header_offset < 0 or not header.startswith(_LOCAL_MAGIC) or len(header) < _LOCAL_HEADER:
        raise ArchiveError(f"the zip archive is damaged (no member {name} where it should be)")
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    start = info.header_offset + _LOCAL_HEADER + names
    packed = replace(whole, start=start, size=info.compress_size)
    if info.compress_type == zipfile.ZIP_STORED:
        return name, packed, None
    return name, Deflated(packed, info.file_size, info.CRC), None


def _zip_reason(info: zipfile.ZipInfo) -> str | None:
    """Return why a member is not read."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    method = info.compress_type
    is_stored = method == zipfile.ZIP_STORED
    is_foreign = not is_stored and method != zipfile.ZIP_DEFLATED
    reasons = {
        "a symbolic link": kind == stat.S_IFLNK,
        "a device or pipe": kind not in {0, stat.S_IFREG, stat.S_IFDIR},
        "encrypted": info.flag_bits & _ENCRYPTED,
        "compressed with a method other than deflate": is_foreign,
        "contradictory sizes": is_stored and info.compress_size != info.file_size,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


class _Guarded:
    """A file that limits how much, and how often, a library reads from it.

    ``tarfile`` may read a header in parts (Python 3.14), so what counts is their sum.
    """

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        self._left = most
        self._reads = 0
        self.seek = file.seek
        self.tell = file.tell
        self.close = lambda: None

    def read(self, size: int = -1) -> bytes:
        self._reads += 1
        if self._reads > _READS_PER_MEMBER * LARGEST_NUMBER:
            raise ArchiveError("the archive has too many headers")
        data = self._file.read(size if 0 <= size <= self._left else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError(f"a header is larger than {self._most >> 20} MiB")
        return data

    def renew(self) -> None:
        """Allow as much again, for another member."""
        self._left = self._most


# ---- names: every system must be able to unpack them, and none may hide another ------------


def unfit(path: str) -> str | None:
    """Return why a relative path with ``/`` must not be in an archive; None if it may."""
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    parts = path.split("/")
    if path.startswith("/"):
        return "an absolute path"
    if any(part in {"", ".", ".."} for part in parts):
        return "a path with '..', '.' or an empty part"
    if "\0" in path or "\\" in path:
        return "a name with a backslash or a zero byte, which other systems read differently"
    if len(encoded) > _LONGEST_PATH or any(len(part.encode()) > _LONGEST_NAME for part in parts):
        return (
            f"a path longer than {_LONGEST_PATH} bytes, or with a part longer than {_LONGEST_NAME}"
            " bytes"
        )
    return unfit_on_windows(path) if sys.platform == "win32" else None


def unfit_on_windows(path: str) -> str | None:
    """Return why Windows would write another file, a device or a stream; None if it would not."""
    name = next(filter(_OF_WINDOWS.fullmatch, path.split("/")), None)
    return None if name is None else f"{name!r} is not the name of a file on Windows"


class Names(Struct):
    """The files and folders so far; a folder may be added more than once, a file may not."""

    _seen: dict[str, tuple[str, bool]] = field(default_factory=dict)

    def add(self, path: str, *, folder: bool = False) -> str | None:
        """Add a file or folder and its parents; return why one must not be added, else None."""
        reason = unfit(path)
        if reason:
            return reason
        for slash in re.finditer("/", path):
            reason = self._add_one(path[: slash.start()], folder=True)
            if reason:
                return reason
        return self._add_one(path, folder=folder)

    def _add_one(self, path: str, *, folder: bool) -> str | None:
        """Names that differ only in case or composition are one file on some systems."""
        key = unicodedata.normalize("NFC", path).casefold()
        if key not in self._seen:
            self._seen[key] = (path, folder)
            too_many = len(self._seen) > LARGEST_NUMBER
            return f"more than {LARGEST_NUMBER} files and folders" if too_many else None
        earlier, earlier_is_folder = self._seen[key]
        if earlier != path:
            return f"the same name as {earlier} on systems that ignore case or accents"
        return None if folder and earlier_is_folder else "twice in the archive"
