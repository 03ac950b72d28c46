"""Files to be read, wherever they are: on this machine, in a shared folder, a store, an archive."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import AnyPath, ListedPath, NotAFileError, Opener, open_file
from mlperf_pkg.infra.stores import REQUEST_BYTES, Object
from mlperf_pkg.infra.streams import (
    Compression,
    Deflated,
    FilePart,
    compression_of,
    decompressed,
    problem_of,
    unreadable,
)
from mlperf_pkg.infra.text import FROM_UTF_16, utf_16_of

NO_PERMISSION = "no permission to read it"
SUFFIXES = (
    ".tar",
    ".tar.bz2",
    ".tar.gz",
    ".tar.xz",
    ".tar.zst",
    ".tbz2",
    ".tgz",
    ".txz",
    ".tzst",
    ".zip",
)

_PACKED_BYTES = 1 << 18
_UNPACKED_BYTES = 1 << 20
_ZIP = (b"PK\3\4", b"PK\5\6")
_TAR = b"ustar"
_TAR_AT = 257
_ENCRYPTED = (b"age-encryption.org/", b"Salted__")
_LINE_BYTES = 1 << 20  # of a line


class SharedFile(Struct, frozen=True):
    """A file that other machines open too, with its size in bytes as this machine sees it."""

    path: Path
    size: int

    def open(self) -> BufferedReader:
        """Open the file, if it has the same size here.

        Raises:
            UserError: it is missing, has another size, or cannot be read.
        """
        try:
            if self.path.stat().st_size == self.size:
                return open_file(self.path)
            reason = f"on the machine of the worker, it does not have {self.size} bytes"
        except OSError as error:
            reason = str(error.strerror)
        raise UserError(
            f"{self.path}: a worker does not see this file ({reason}); with --scheduler, inputs"
            " must be in a folder that all machines share, or in a store (s3://...)"
        )


def words_of_lines(lines: tuple[int, int] | None) -> str:
    """Return what follows the path of a file where only these lines of it are meant."""
    return f", lines {lines[0]} to {lines[1]}" if lines else ""


Origin: TypeAlias = str | Path | Opener | bytes


class Source(Struct, frozen=True):
    """A file to be read by any process: its path in reports, and where its bytes are.

    With a ``compression`` the bytes are read decompressed; ``size`` is then that on the disk.
    ``listed_size`` is the size in the listing of its folder, None if it is not known. ``lines`` are
    the first and the last line of a part of a file, None for a whole one.
    """

    label: str
    origin: Origin
    compression: Compression | None = None
    listed_size: int | None = None
    lines: tuple[int, int] | None = None

    def open(self) -> BinaryIO:
        """Open the file; one that this process may not read opens as empty.

        Such a file, and one whose compressed data is damaged, ends early: ``problem_of`` its
        stream is the reason.

        Raises:
            OSError: the file cannot be opened.
            UserError: the object cannot be read; a shared file differs on this machine.
        """
        stream = _open(self.origin)
        return stream if self.compression is None else decompressed(stream, self.compression)

    @property
    def size(self) -> int:
        """The number of bytes.

        Raises:
            OSError: the file does not exist.
        """
        if self.listed_size is not None:
            return self.listed_size
        if isinstance(self.origin, str | Path):
            return os.stat(self.origin).st_size  # noqa: PTH116 - Path.stat takes twice as long
        return len(self.origin) if isinstance(self.origin, bytes) else self.origin.size

    @property
    def first_line(self) -> int:
        """The number of its first line in the file."""
        return self.lines[0] if self.lines else 1

    @property
    def stored(self) -> bool:
        """Whether the file is in an object store."""
        return isinstance(self.origin, Object)

    def fetched(self) -> Source:
        """Return the source with its bytes, if it is a small object: one request then reads it."""
        if isinstance(self.origin, Object) and self.size <= REQUEST_BYTES:
            return replace(self, origin=self.origin.open().read())
        return self

    def shared(self) -> Source:
        """Return the source for other machines, which refuse a file that differs there."""
        match self.origin:
            case str() | Path() as path if os.access(path, os.R_OK):
                file = Path(path).absolute()
                return replace(self, origin=SharedFile(file, file.stat().st_size))
            case str() | Path():
                return replace(self, origin=b"", compression=None)
            case FilePart() as part:
                return replace(self, origin=part.open().read())
            case Deflated(packed=FilePart() as part) as member:
                return replace(self, origin=replace(member, packed=part.open().read()))
        return self


def source_of(
    path: AnyPath | str, label: str, compression: Compression | None = None, size: int | None = None
) -> Source:
    """Return the source of a file of this machine or of a listing.

    Raises:
        FileNotFoundError: the listing has no such file.
    """
    origin = path.opener if isinstance(path, ListedPath) else path
    if origin is None:
        raise FileNotFoundError(str(path))
    return Source(label, origin, compression, size)


def _open(origin: Origin) -> BinaryIO:
    if not isinstance(origin, str | Path):
        return BytesIO(origin) if isinstance(origin, bytes) else origin.open()
    try:
        return open_file(origin)
    except (PermissionError, NotAFileError) as error:
        is_closed = isinstance(error, PermissionError)
        return unreadable(NO_PERMISSION if is_closed else str(error.strerror))


# ---- what a file holds, by its first bytes and by its name ---------------------------------


class Content(Struct, frozen=True):
    """The first bytes of a file: ``head``, decompressed if it has a ``compression``.

    ``problem`` is the reason why compressed data cannot be decompressed even at its start.
    """

    head: bytes
    compression: Compression | None = None
    problem: str | None = None

    @property
    def is_zip(self) -> bool:
        """Whether it is a zip archive."""
        return self.compression is None and self.head.startswith(_ZIP)

    @property
    def is_archive(self) -> bool:
        """Whether it is a tar archive, compressed or not, or a zip archive."""
        return self.is_zip or self.head[_TAR_AT:].startswith(_TAR)

    @property
    def is_encrypted(self) -> bool:
        """Whether it is encrypted in a form that ``mlperf-pkg pack`` writes."""
        return self.compression is None and self.head.startswith(_ENCRYPTED)

    @property
    def text(self) -> bytes:
        """The head as UTF-8, if it is UTF-16."""
        encoding = utf_16_of(self.head)
        return self.head.decode(encoding, "replace").encode() if encoding else self.head

    def open(self, path: AnyPath) -> BinaryIO:
        """Open the file with this content, decompressed."""
        return source_of(path, path.name, self.compression).open()


class ForeignText(Struct, frozen=True):
    """What a file is that should be text in UTF-8, and how to make that of it.

    ``encoding`` is that of text; empty if it is not text.
    """

    name: str
    remedy: str
    encoding: str = ""


def foreign_text(head: bytes) -> ForeignText | None:
    """Return what a file is by its first bytes if it is UTF-16, compressed or an archive."""
    encoding = utf_16_of(head)
    if encoding:
        return ForeignText("UTF-16 text", FROM_UTF_16.replace("UTF-16", encoding), encoding)
    compression = compression_of(head)
    if compression:
        tool = compression.name.lower()
        return ForeignText(f"{tool} data", f"decompress it with {tool} -d")
    if Content(head).is_archive:
        return ForeignText("an archive", "unpack it")
    return None


def content_of(path: AnyPath, size: int) -> Content:
    """Return the content of a file by its first ``size`` bytes, or by more if it is compressed.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as stream:
        head = stream.read(size)
        compression = compression_of(head)
        if compression is None:
            return Content(head)
        head += stream.read(max(0, _PACKED_BYTES - len(head)))
    with decompressed(BytesIO(head), compression) as unpacked:
        text = unpacked.read(_UNPACKED_BYTES)
        return Content(text, compression, None if text else problem_of(unpacked))


def is_archive_name(name: str) -> bool:
    """Return whether a name has the suffix of an archive."""
    return name.lower().endswith(SUFFIXES)


def stem_of(name: str) -> str:
    """Return a name without the suffix of an archive."""
    suffix = next(filter(name.lower().endswith, SUFFIXES), "")
    return name[: len(name) - len(suffix)] or name


# ---- single lines of a file, as text to show -------------------------------------------------


def raw_lines(source: Source, numbers: Collection[int], limit: int) -> dict[int, str]:
    """Return the text of the lines of these ``numbers``, each up to ``limit`` characters.

    Raises:
        OSError: the file cannot be read.
    """
    lines: dict[int, str] = {}
    last = max(numbers, default=0)
    for number, line in numbered_lines(source):
        if number > last:
            break
        if number in numbers:
            text = line.decode("utf-8", "replace").strip()
            lines[number] = text if len(text) <= limit else f"{text[: limit - 3]}..."
    return lines


def numbered_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers in the file, each up to ``_LINE_BYTES``.

    Raises:
        OSError: the file cannot be read.
    """
    line = source.first_line
    start = True
    with source.open() as stream:
        while piece := stream.readline(_LINE_BYTES):
            if start:
                yield line, piece
            start = piece.endswith(b"\n")
            line += start
