"""The members of tar and zip archives: what each is, and where its content is in the archive."""

from __future__ import annotations

import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeAlias

from msgspec import Struct

from mlperf_pkg.errors import ArchiveError
from mlperf_pkg.infra.listed_path import Opener
from mlperf_pkg.infra.member_names import LARGEST_NUMBER
from mlperf_pkg.infra.parts import Deflated, Part, SpooledPart

PartAt: TypeAlias = Callable[[int, int], Part | SpooledPart]
"""Return the part of an archive from an offset in bytes, and of a size in bytes."""

_LONGEST_HEADER = 1 << 20
_LONGEST_DIRECTORY = 128 << 20
_READS_PER_MEMBER = 8
_BLOCK = 512
_LOCAL_HEADER = 30
_LOCAL_MAGIC = b"PK\3\4"
_ENCRYPTED = 1


class Member(Struct, frozen=True):
    """A member of an archive: a file with its ``opener``, or a folder.

    ``reason`` says why it is neither, or must not be read.
    """

    name: str
    opener: Opener | None = None
    reason: str | None = None


def tar_members(file: BinaryIO, part_at: PartAt) -> Iterator[Member]:
    """Yield the members of a tar archive, which begins where ``file`` is.

    Raises:
        ArchiveError: it is damaged, or must not be read.
    """
    guarded = _Guarded(file, _LONGEST_HEADER)
    try:
        with tarfile.open(fileobj=guarded, mode="r:", encoding="utf-8") as tar:  # type: ignore[call-overload]
            yield from _tar_members(tar, part_at)
            file.seek(tar.offset)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError(f"the tar archive is damaged ({error})") from error
    end = file.read(_BLOCK)
    if len(end) < _BLOCK or any(end):
        raise ArchiveError("the tar archive is cut off or damaged")


def _tar_members(tar: tarfile.TarFile, part_at: PartAt) -> Iterator[Member]:
    before = -1
    while (info := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined] # it keeps all of them
        if tar.offset <= before:
            raise ArchiveError("the tar archive is damaged (a member of a negative size)")
        before = tar.offset
        if reason := _tar_reason(info):
            yield Member(info.name, reason=reason)
        elif info.isdir():
            yield Member(info.name)
        else:
            yield Member(info.name, part_at(info.offset_data, info.size))


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


def zip_members(file: BinaryIO, part_at: PartAt) -> Iterator[Member]:
    """Yield the members of a zip archive, which ends where ``file`` does.

    Raises:
        ArchiveError: it is damaged, or must not be read.
    """
    try:
        with zipfile.ZipFile(_Guarded(file, _LONGEST_DIRECTORY)) as archive:
            for info in archive.infolist():
                yield _zip_member(file, info, part_at)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise ArchiveError(f"the zip archive is damaged ({error})") from error


def _zip_member(file: BinaryIO, info: zipfile.ZipInfo, part_at: PartAt) -> Member:
    name = info.orig_filename
    if reason := _zip_reason(info):
        return Member(name, reason=reason)
    if info.filename.endswith("/"):  # not is_dir, which raises for an empty name
        return Member(name)
    file.seek(max(0, info.header_offset))
    header = file.read(_LOCAL_HEADER)
    if info.header_offset < 0 or not header.startswith(_LOCAL_MAGIC) or len(header) < _LOCAL_HEADER:
        raise ArchiveError(f"the zip archive is damaged (no member {name} where it should be)")
    names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    packed = part_at(info.header_offset + _LOCAL_HEADER + names, info.compress_size)
    if info.compress_type == zipfile.ZIP_STORED:
        return Member(name, packed)
    return Member(name, Deflated(packed, info.file_size, info.CRC))


def _zip_reason(info: zipfile.ZipInfo) -> str | None:
    """Return why a member is not read."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "a symbolic link"
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "a device or pipe"
    if info.flag_bits & _ENCRYPTED:
        return "encrypted"
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return "compressed with a method other than deflate"
    if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
        return "contradictory sizes"
    return None


class _Guarded:
    """A file that limits how much, and how often, a library reads from it."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file = file
        self._most = most
        self._reads = 0
        self.seek, self.tell, self.close = file.seek, file.tell, lambda: None

    def read(self, size: int = -1) -> bytes:
        self._reads += 1
        if self._reads > _READS_PER_MEMBER * LARGEST_NUMBER:
            raise ArchiveError("too many headers")
        data = self._file.read(size if 0 <= size <= self._most else self._most + 1)
        if len(data) > self._most:
            raise ArchiveError(f"a header of more than {self._most >> 20} MiB")
        return data
