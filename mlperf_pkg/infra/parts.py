"""Parts of files, which contain the members of archives."""

from __future__ import annotations

import os
import zlib
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from mlperf_pkg.infra.compression import Compression, DecompressingReader
from mlperf_pkg.infra.opening import open_file
from mlperf_pkg.infra.partial import PartialReader

_BUFFER = 1 << 16
_CHUNK = 1 << 20


class Part(Struct, frozen=True):
    """Consecutive bytes of a file; ``total`` is the size of that file when it was listed."""

    path: Path
    start: int
    size: int
    total: int

    def open(self) -> BufferedReader:
        """Open the bytes as a stream, which is empty if the file has changed.

        Raises:
            OSError: the file cannot be opened.
        """
        file = open_file(self.path)
        changed = os.fstat(file.fileno()).st_size != self.total
        reader = _PartReader(file, self.start, self.size, changed=changed, owned=True)
        return BufferedReader(reader, _BUFFER)


class Spool:
    """A temporary file without a name, for what would have to be decompressed again and again."""

    def __init__(self) -> None:
        """Create the file."""
        from tempfile import TemporaryFile  # noqa: PLC0415 - slow to import

        self.file: BinaryIO = TemporaryFile()  # noqa: SIM115 - closed with this

    def __del__(self) -> None:
        """Close the file, which removes it."""
        self.file.close()

    def append(self, stream: BinaryIO) -> SpooledPart:
        """Copy a stream to the end of the file, and return that part."""
        start = self.file.seek(0, os.SEEK_END)
        while data := stream.read(_CHUNK):
            self.file.write(data)
        self.file.flush()
        return SpooledPart(self, start, self.file.tell() - start)


class SpooledPart(Struct, frozen=True):
    """Consecutive bytes of a spool; where it is sent to another process, its bytes are."""

    spool: Spool
    start: int
    size: int

    def open(self) -> BufferedReader:
        """Open the bytes as a stream."""
        return BufferedReader(_PartReader(self.spool.file, self.start, self.size), _BUFFER)

    def part(self, start: int, size: int) -> SpooledPart:
        """Return a part of this part."""
        return SpooledPart(self.spool, self.start + start, size)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the bytes."""
        return bytes, (self.open().read(),)


class Deflated(Struct, frozen=True):
    """A compressed member of a zip archive; ``size`` is that of its content in bytes."""

    packed: Part | SpooledPart | bytes
    size: int
    checksum: int

    def open(self) -> BufferedReader:
        """Open the content as a stream, which ends early if it is damaged."""
        packed = BytesIO(self.packed) if isinstance(self.packed, bytes) else self.packed.open()
        return BufferedReader(_MemberReader(packed, self), _BUFFER)


class _PartReader(PartialReader):
    """Reads a part of a file, wherever others read it."""

    def __init__(
        self, file: BinaryIO, start: int, size: int, *, changed: bool = False, owned: bool = False
    ) -> None:
        self._file = file
        self._owned = owned
        self._position = start
        self._end = start + size
        if changed:
            self.problem, self._end = "the archive has changed while it was read", start

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._end - self._position)
        data = _read_at(self._file.fileno(), size, self._position)
        if size and not data:
            self.problem = "the archive is cut off"
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        if self._owned:
            self._file.close()
        super().close()


def _read_at(descriptor: int, size: int, position: int) -> bytes:
    """Read a part of a file, wherever others read it."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, position)
    os.lseek(descriptor, position, os.SEEK_SET)  # Windows
    return os.read(descriptor, size)


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
        if self._left < 0 or (not count and not self._sound):
            self.problem = self.problem or "its size or its checksum in the archive is wrong"
            return 0
        return count

    @property
    def _sound(self) -> bool:
        return not self._left and self._checksum == self._member.checksum
