"""Read archives as if they were folders, without extracting them: tar, compressed tar, and zip.

Archives come from strangers: numbers and sizes are limited, and members that are not plain files
and folders with plain names are left out, with the reason. A compressed tar is decompressed once,
into a temporary file without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from msgspec import Struct, field

from mlperf_pkg.errors import ArchiveError
from mlperf_pkg.infra.archive_members import Member, PartAt, tar_members, zip_members
from mlperf_pkg.infra.archive_names import stem_of
from mlperf_pkg.infra.compression import ALWAYS_ALLOWED, LARGEST_RATIO
from mlperf_pkg.infra.content import Content
from mlperf_pkg.infra.listed_path import AnyPath, ListedPath, Opener
from mlperf_pkg.infra.member_names import LARGEST_NUMBER, unfit
from mlperf_pkg.infra.opening import open_file
from mlperf_pkg.infra.partial import problem_of
from mlperf_pkg.infra.parts import Part, Spool, SpooledPart

_TOP = "."
_MAC = "__MACOSX"  # what macOS adds to each zip


class _Listing(Struct, frozen=True, eq=False):
    """The openers of all files and the names in all folders, by their paths in the archive."""

    archive: AnyPath
    openers: dict[str, Opener] = field(default_factory=dict)
    folders: dict[str, dict[str, None]] = field(default_factory=lambda: {_TOP: {}})
    left_out: dict[str, str] = field(default_factory=dict)


class ArchivePath(ListedPath, frozen=True):
    """A path in an archive; the archive itself is its top folder, and has its name."""

    listing: _Listing

    def __str__(self) -> str:
        """The path of the archive, and the path in it."""
        archive = str(self.listing.archive)
        return archive if str(self.path) == _TOP else f"{archive}/{self.path}"

    @property
    def name(self) -> str:
        """Its last part; of the top, the name of the archive without its suffix."""
        return self.path.name or stem_of(self.listing.archive.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the archive's path, without its suffix, and those in it."""
        archive = self.listing.archive.resolve()
        return (*archive.parts[:-1], stem_of(archive.name), *self.path.parts)

    @property
    def folders(self) -> Mapping[str, Mapping[str, None]]:
        """The names in all folders, by their paths."""
        return self.listing.folders

    @property
    def opener(self) -> Opener | None:
        """What opens this file; None if there is no such file."""
        return self.listing.openers.get(str(self.path))

    @property
    def whereabouts(self) -> str:
        """What its files are in."""
        return "an archive"

    @property
    def left_out(self) -> Mapping[str, str]:
        """The members that are not read, each with the reason."""
        return self.listing.left_out


def open_archive(path: AnyPath, content: Content, spool: Callable[[], Spool]) -> ArchivePath:
    """Return the top of an archive with this ``content``.

    ``spool`` is called where the archive has to be copied or decompressed.

    Raises:
        ArchiveError: it is damaged, or must not be read.
        OSError: it cannot be read.
    """
    with _seekable(path, content, spool) as (file, part_at, packed):
        members = (zip_members if content.is_zip else tar_members)(file, part_at)
        listing = _Listing(path)
        _enter(listing, members, max(ALWAYS_ALLOWED, LARGEST_RATIO * packed))
    return ArchivePath(PurePosixPath(_TOP), listing)


@contextmanager
def _seekable(
    path: AnyPath, content: Content, spool: Callable[[], Spool]
) -> Iterator[tuple[BinaryIO, PartAt, int]]:
    """Provide the archive as a file, its parts, and its size in bytes."""
    if isinstance(path, Path) and content.compression is None:
        size = path.stat().st_size
        with open_file(path) as file:
            yield file, lambda start, length: Part(path, start, length, size), size
        return
    copy = spool()
    with content.open(path) as stream:
        whole = copy.append(stream)
        if problem := problem_of(stream):
            raise ArchiveError(problem)
    copy.file.seek(whole.start)
    yield copy.file, lambda start, length: SpooledPart(copy, start, length), whole.size


def _enter(listing: _Listing, members: Iterable[Member], most: int) -> None:
    """Enter all members, whose contents together are at most ``most`` bytes."""
    size = 0
    for number, member in enumerate(members):
        if number >= LARGEST_NUMBER:
            raise ArchiveError(f"more than {LARGEST_NUMBER:,} files and folders")
        size += member.opener.size if member.opener else 0
        if size > most:
            raise ArchiveError(
                f"it unpacks to more than {ALWAYS_ALLOWED >> 30} GiB and more than"
                f" {LARGEST_RATIO} times its size"
            )
        _enter_member(listing, member)
    for path in listing.folders.keys() & listing.openers.keys():
        _leave_out(listing, path, "both a file and a folder")


def _enter_member(listing: _Listing, member: Member) -> None:
    path = _plain(member.name)
    if not path or path.split("/")[0] == _MAC:
        return
    if reason := unfit(path) or member.reason:
        listing.left_out[member.name] = reason
    elif path in listing.openers or path in listing.left_out:
        _leave_out(listing, path, "twice in the archive")
    else:
        _enter_folders(listing, path if member.opener is None else path.rpartition("/")[0])
        if member.opener is not None:
            listing.openers[path] = member.opener
            parent, _, name = path.rpartition("/")
            listing.folders[parent or _TOP][name] = None


def _enter_folders(listing: _Listing, path: str) -> None:
    """Enter a folder and those above it."""
    if not path or path in listing.folders:
        return
    parent, parts = _TOP, path.split("/")
    for end, name in enumerate(parts, 1):
        folder = "/".join(parts[:end])
        listing.folders[parent][name] = None
        listing.folders.setdefault(folder, {})
        parent = folder


def _leave_out(listing: _Listing, path: str, reason: str) -> None:
    """Remove a file that was entered, if it was."""
    listing.left_out[path] = reason
    listing.openers.pop(path, None)
    if path not in listing.folders:
        parent, _, name = path.rpartition("/")
        listing.folders[parent or _TOP].pop(name, None)


def _plain(name: str) -> str:
    """Return a name without the ``./`` before it and the ``/`` after that of a folder."""
    while name.startswith("./"):
        name = name[2:]
    name = name.removesuffix("/")
    return "" if name == "." else name
