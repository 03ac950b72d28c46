"""Streams of bytes: decompressed ones, parts of files, and ones that end before their file does.

Whoever only looks for something in a file reads such a stream to its end. Whoever judges the file
asks for the problem then, so that each file has one finding for it. Compressed data (gzip, bzip2,
xz and zstd, recognised by their first bytes) is read with bounded memory and size.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import astuple

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.paths import open_file

_CHUNK = 1 << 20
_PIECE = 1 << 18
_READ = 1 << 16
MOST_IN_MEMORY = 1 << 24
_ALWAYS_ALLOWED = 1 << 30  # bytes
_LARGEST_RATIO = 100
_LZMA_MEMORY = 1 << 28
_ZSTD_WINDOW_LOG = 27  # what zstd itself decompresses without --long


class PartialReader(io.RawIOBase):
    """A raw stream that ends early where something is wrong; ``problem`` then gives the reason."""

    problem: str | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, _: Any) -> int:
        """Read nothing."""
        return 0


def problem_of(stream: BinaryIO) -> str | None:
    """Return why a stream ended before its file did; None if it did not."""
    raw = stream.raw if isinstance(stream, BufferedReader) else None
    return raw.problem if isinstance(raw, PartialReader) else None


def unreadable(problem: str) -> BinaryIO:
    """Return an empty stream in place of a file that cannot be opened."""
    reader = PartialReader()
    reader.problem = problem
    return BufferedReader(reader)


# ---- compressed data ----------------------------------------------------------------------


class Compression(Enum):
    """A format of compressed data, by its first bytes; DEFLATE, which zip contains, has none."""

    GZIP = b"\x1f\x8b\x08"
    BZIP2 = b"BZh"
    XZ = b"\xfd7zXZ\0"
    ZSTD = b"\x28\xb5\x2f\xfd"
    DEFLATE = b""


def compression_of(head: bytes) -> Compression | None:
    """Return the format of a file by its first six bytes; None if it is not compressed."""
    return next((f for f in Compression if f.value and head.startswith(f.value)), None)


def bomb(unpacked: int, packed: int) -> str | None:
    """Return why data of these sizes in bytes must not be unpacked; None if it may be."""
    if unpacked <= max(_ALWAYS_ALLOWED, _LARGEST_RATIO * packed):
        return None
    limits = f"{_ALWAYS_ALLOWED >> 30} GiB and more than {_LARGEST_RATIO} times its size"
    return f"the data unpacks to more than {limits}"


class DamagedError(Exception):
    """Compressed data that cannot, or must not, be read further; the message is the reason."""


class Decompressor:
    """Decompresses data that is fed in portions: one or more gzip members, xz streams or frames."""

    def __init__(self, format_: Compression) -> None:
        """Start at the first byte."""
        self._format = format_
        self._stream: Any = None  # as lzma.LZMADecompressor is
        self._packed = self._unpacked = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes decompress to, in pieces.

        Raises:
            DamagedError: the data is damaged, or decompresses to more than is allowed.
        """
        self._packed += len(data)
        while data or self._stream:
            if self._stream is None:
                data = data.lstrip(b"\0")  # padding between and after streams
                if not data:
                    return
                self._stream = _DECOMPRESSORS[self._format]()
            piece = self._piece(data)
            if piece:
                yield piece
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data
                self._stream = None
            elif self._stream.needs_input:
                return

    def finish(self) -> None:
        """Check that the data is complete.

        Raises:
            DamagedError: the data is cut off.
        """
        if self._stream or not self._packed:
            raise DamagedError(f"the {self._format.name.lower()} data is cut off")

    def _piece(self, data: bytes) -> bytes:
        try:
            piece: bytes = self._stream.decompress(data, _PIECE)
        except Exception as error:  # each library has errors of its own
            reason = f"the {self._format.name.lower()} data is damaged ({error})"
            raise DamagedError(reason) from error
        self._unpacked += len(piece)
        problem = bomb(self._unpacked, self._packed)
        if problem:
            raise DamagedError(problem)
        return piece


class DecompressingReader(PartialReader):
    """Reads what a compressed stream contains; it ends where the data is damaged."""

    def __init__(self, packed: BinaryIO, format_: Compression) -> None:
        """Read compressed bytes from ``packed``, which is closed with this stream."""
        self._packed = packed
        self._pieces = self._decompressed(Decompressor(format_))
        self._rest = memoryview(b"")

    def readinto(self, buffer: Any) -> int:
        """Read up to one piece."""
        if not self._rest:
            try:
                self._rest = memoryview(next(self._pieces, b""))
            except DamagedError as error:
                self.problem = problem_of(self._packed) or str(error)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        """Close both streams."""
        self._packed.close()
        super().close()

    def _decompressed(self, decompressor: Decompressor) -> Iterator[bytes]:
        while data := self._packed.read(_READ):
            yield from decompressor.feed(data)
        decompressor.finish()


def decompressed(packed: BinaryIO, format_: Compression) -> BufferedReader:
    """Return a stream of what a compressed stream contains; ``problem_of`` it may say more."""
    return BufferedReader(DecompressingReader(packed, format_), _READ)


class _Zlib:
    """The interface of ``lzma.LZMADecompressor`` for zlib."""

    def __init__(self, bits: int) -> None:
        self._inflate = zlib.decompressobj(bits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        piece = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self.needs_input = len(piece) < max_length
        return piece


def _bzip2() -> Any:
    import bz2

    return bz2.BZ2Decompressor()


def _xz() -> Any:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_LZMA_MEMORY)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - few logs need it
    else:
        from backports import zstd
    options = {int(zstd.DecompressionParameter.window_log_max): _ZSTD_WINDOW_LOG}
    return zstd.ZstdDecompressor(options=options)


_DECOMPRESSORS: dict[Compression, Callable[[], Any]] = {
    Compression.GZIP: lambda: _Zlib(16 + zlib.MAX_WBITS),
    Compression.BZIP2: _bzip2,
    Compression.XZ: _xz,
    Compression.ZSTD: _zstd,
    Compression.DEFLATE: lambda: _Zlib(-zlib.MAX_WBITS),
}


# ---- parts of files, which contain the members of archives --------------------------------


@contextmanager
def temporary_files() -> Iterator[Path]:
    """Provide the folder for temporary files, for what is written there meanwhile.

    Raises:
        UserError: there is no such folder, or it is full.
    """
    from tempfile import gettempdir  # noqa: PLC0415 - slow to import

    remedy = "name a folder with more space in the variable TMPDIR"
    try:
        folder = Path(gettempdir())
    except FileNotFoundError as error:
        raise UserError(f"temporary files cannot be written anywhere; {remedy}") from error
    try:
        yield folder
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(f"{folder}: no space is left for temporary files; {remedy}") from error


class Spool:
    """A temporary file without a name, for what would have to be decompressed again and again."""

    def __init__(self) -> None:
        """Create the file."""
        from tempfile import TemporaryFile  # noqa: PLC0415 - slow to import

        with temporary_files() as folder:
            self.file: BinaryIO = TemporaryFile(dir=folder)  # noqa: SIM115 - closed with this

    def __del__(self) -> None:
        """Close the file, which removes it, if it could be created."""
        if hasattr(self, "file"):
            self.file.close()

    def append(self, stream: BinaryIO) -> FilePart:
        """Copy a stream to the end of the file, and return that part."""
        start = self.file.seek(0, os.SEEK_END)
        with temporary_files():
            while data := stream.read(_CHUNK):
                self.file.write(data)
            self.file.flush()
        return FilePart(self, start, self.file.tell() - start)


class Keeper:
    """Keeps bytes for later: the first 16 MiB in memory, all others in a temporary file.

    ``size`` is how many it keeps.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.size = 0
        self._spool: Spool | None = None

    def keep(self, data: bytes) -> bytes | FilePart:
        """Return where the bytes are kept, for ``kept``.

        Raises:
            UserError: there is no place for a temporary file.
        """
        self.size += len(data)
        if self.size <= MOST_IN_MEMORY:
            return data
        if self._spool is None:
            self._spool = Spool()
        return self._spool.append(BytesIO(data))


def kept(data: bytes | FilePart) -> bytes:
    """Return the bytes that a ``Keeper`` keeps."""
    if isinstance(data, bytes):
        return data
    with data.open() as stream:
        return stream.read()


class FilePart(Struct, frozen=True):
    """Consecutive bytes of a file or a spool; those of a spool are sent to other processes.

    ``total`` is the size of a file when it was listed.
    """

    file: Path | Spool
    start: int
    size: int
    total: int = 0

    def open(self) -> BufferedReader:
        """Open the bytes as a stream, which is empty if the file has changed.

        Raises:
            OSError: the file cannot be opened.
        """
        if isinstance(self.file, Spool):
            return BufferedReader(_PartReader(self.file.file, self.start, self.size), _READ)
        file = open_file(self.file)
        is_same = os.fstat(file.fileno()).st_size == self.total
        reader = _PartReader(file, self.start, self.size if is_same else 0, owned=True)
        reader.problem = None if is_same else "the file has changed while it was read"
        return BufferedReader(reader, _READ)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the bytes of a spool."""
        if isinstance(self.file, Spool):
            return bytes, (self.open().read(),)
        return FilePart, astuple(self)


class Deflated(Struct, frozen=True):
    """A compressed member of a zip archive; ``size`` is that of its content in bytes."""

    packed: FilePart | bytes
    size: int
    checksum: int

    def open(self) -> BufferedReader:
        """Open the content as a stream, which ends early if it is damaged."""
        packed = BytesIO(self.packed) if isinstance(self.packed, bytes) else self.packed.open()
        return BufferedReader(_MemberReader(packed, self), _READ)


class _PartReader(PartialReader):
    """Reads a part of a file, wherever others read it."""

    def __init__(self, file: BinaryIO, start: int, size: int, *, owned: bool = False) -> None:
        self._file = file
        self._owned = owned
        self._position = start
        self._end = start + size

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._end - self._position)
        if hasattr(os, "pread"):
            data = os.pread(self._file.fileno(), size, self._position)
        else:  # Windows
            os.lseek(self._file.fileno(), self._position, os.SEEK_SET)
            data = os.read(self._file.fileno(), size)
        if size and not data:
            self.problem = "the archive is cut off"
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        if self._owned:
            self._file.close()
        super().close()


class _MemberReader(DecompressingReader):
    """Reads a member of a zip archive, and compares its size and checksum."""

    def __init__(self, packed: BinaryIO, member: Deflated) -> None:
        super().__init__(packed, Compression.DEFLATE)
        self._member = member
        self._left = member.size
        self._checksum = 0

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(memoryview(buffer)[: max(self._left, 1)])
        self._left -= count
        self._checksum = zlib.crc32(buffer[:count], self._checksum)
        is_sound = not self._left and self._checksum == self._member.checksum
        if self._left < 0 or (not count and not is_sound):
            self.problem = self.problem or (
                "the size or the checksum of the file in the archive is wrong"
            )
            return 0
        return count
