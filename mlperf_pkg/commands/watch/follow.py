"""The bytes of a file that another process writes, as they come.

Polled, not notified: network storage, where logs of clusters lie, tells nobody of what another
machine writes. The file is opened anew each time, as NFS promises fresh contents only then, and
the one read last is kept open, so that nothing is lost where it is moved away.
"""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.log.reader import MAX_LINE_BYTES
from mlperf_pkg.log.record import TOKEN

BLOCK_BYTES = 16 << 20
_LIKE_TOKEN = TOKEN[:6]
_MARK_BYTES = 256
_GONE = frozenset({errno.ESTALE, errno.ENOENT, errno.ENOTDIR})


class Change(StrEnum):
    """What became of a file since it was looked at last."""

    NONE = "none"
    GROWN = "grown"
    MISSING = "missing"
    TRUNCATED = "truncated"
    REPLACED = "replaced"


class News(Struct, frozen=True):
    """A change, and the bytes that came; of TRUNCATED and REPLACED they are the new file's."""

    change: Change
    data: bytes = b""


class Follower:
    """Follows one file, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        """Start before the first byte."""
        self._path = path
        self._stream: BinaryIO | None = None
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._mark = b""

    def poll(self) -> News:
        """Read what is new, at most ``BLOCK_BYTES`` of it.

        A file of another inode takes the place of the old one when that is read to its end. One
        that is shorter than it was, or whose last bytes read are others, was truncated.

        Raises:
            UserError: it is no regular file.
            OSError: it cannot be read now.
        """
        opened = self._open()
        if opened is None:
            return self._rest(Change.MISSING)
        found = os.fstat(opened.fileno())
        identity = (found.st_dev, found.st_ino)
        if self._identity in (None, identity):
            self._hold(opened, identity)
            changed = found.st_size < self._offset or not self._unchanged(opened)
            return self._restart(Change.TRUNCATED) if changed else self._rest(Change.NONE)
        rest = self._rest(Change.NONE)
        if rest.data:
            opened.close()
            return rest
        self._hold(opened, identity)
        return self._restart(Change.REPLACED)

    def close(self) -> None:
        """Read no more."""
        if self._stream:
            self._stream.close()
            self._stream = None

    def _open(self) -> BinaryIO | None:
        try:
            if not S_ISREG(self._path.stat().st_mode):  # to open a pipe would wait for its writer
                raise UserError(f"{self._path}: not a file")
            return self._path.open("rb")
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise

    def _hold(self, stream: BinaryIO, identity: tuple[int, int]) -> None:
        self.close()
        self._stream, self._identity = stream, identity

    def _unchanged(self, stream: BinaryIO) -> bool:
        stream.seek(self._offset - len(self._mark))
        return stream.read(len(self._mark)) == self._mark

    def _restart(self, change: Change) -> News:
        self._offset, self._mark = 0, b""
        return News(change, self._read())

    def _rest(self, otherwise: Change) -> News:
        data = self._read()
        return News(Change.GROWN if data else otherwise, data)

    def _read(self) -> bytes:
        if self._stream is None:
            return b""
        try:
            self._stream.seek(self._offset)
            data = self._stream.read(BLOCK_BYTES)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            data = b""
        self._offset += len(data)
        self._mark = (self._mark + data[-_MARK_BYTES:])[-_MARK_BYTES:]
        return data


class Lines:
    """The complete lines of a growing log; of those without a record only that they were there.

    ``text`` is what a reader of logs is given: each record stands on its true line. ``partial`` is
    the line that is being written. A line end is CR, LF or CRLF, as in the reader of logs.
    """

    def __init__(self) -> None:
        """Start at the head of a log."""
        self.text = bytearray()
        self.partial = b""
        self.too_long = 0
        self._skipping = False

    def add(self, data: bytes) -> bytes:
        """Take more bytes, and give the lines that they complete."""
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not cut:
            self._hold(data)
            return b""
        whole = self.partial + data[:cut]
        if self._skipping:
            _, whole = _first_line(whole)
        self._skipping = False
        self.partial = b""
        self._hold(data[cut:])
        lines = b"".join(map(_kept, whole.splitlines(keepends=True)))
        self.text += lines
        return lines

    def _hold(self, data: bytes) -> None:
        if self._skipping:
            return
        self.partial += data
        if len(self.partial) > MAX_LINE_BYTES:
            self.partial, self._skipping = b"", True
            self.too_long += 1


def _first_line(data: bytes) -> tuple[bytes, bytes]:
    first, *rest = data.splitlines(keepends=True)
    end = b"\n" if first.endswith(b"\n") else b""
    return first, end + b"".join(rest)


def _kept(line: bytes) -> bytes:
    """A line, or where it holds no record its line end, by which lines are counted."""
    if _LIKE_TOKEN in line:
        return line
    return b"\n" if line.endswith(b"\n") else b""
