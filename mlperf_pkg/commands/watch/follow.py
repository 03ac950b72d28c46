"""Read a file while another process writes it.

The file is polled: network storage, on which clusters keep logs, does not notify a machine of
changes by another one. It is opened again each time, as NFS guarantees current contents only then.
The previous stream stays open until then, so that nothing is lost if the file is moved away.
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
from mlperf_pkg.infra.paths import open_file
from mlperf_pkg.log.reader import MAX_LINE_BYTES
from mlperf_pkg.log.record import TOKEN

BLOCK_BYTES = 16 << 20
_LIKE_TOKEN = TOKEN[:6]
_MARK_BYTES = 256
_GONE = frozenset({errno.ESTALE, errno.ENOENT, errno.ENOTDIR})


class Change(StrEnum):
    """What happened to a file since the last poll."""

    NONE = "none"
    GROWN = "grown"
    MISSING = "missing"
    TRUNCATED = "truncated"
    REPLACED = "replaced"


class News(Struct, frozen=True):
    """A change and the new bytes; after TRUNCATED and REPLACED, those of the new contents."""

    change: Change
    data: bytes = b""


class Follower:
    """Follows one file, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        """Start before the first byte."""
        self._path = path
        self._stream: BinaryIO | None = None
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._mark = b""

    def poll(self) -> News:
        """Read the new bytes, at most ``BLOCK_BYTES``.

        A file with another inode replaces the old one once that is read to its end. A file that is
        shorter than before, or whose last bytes read differ now, was truncated.

        Raises:
            UserError: the path is not a regular file.
            OSError: the file cannot be read now.
        """
        opened = self._open()
        if opened is None:
            return self._rest(Change.MISSING)
        status = os.fstat(opened.fileno())
        identity = (status.st_dev, status.st_ino)
        if self._identity in (None, identity):
            self._hold(opened, identity)
            changed = status.st_size < self._offset or not self._unchanged(opened)
            return self._restart(Change.TRUNCATED) if changed else self._rest(Change.NONE)
        rest = self._rest(Change.NONE)
        if rest.data:
            opened.close()
            return rest
        self._hold(opened, identity)
        return self._restart(Change.REPLACED)

    def close(self) -> None:
        """Stop reading."""
        if self._stream:
            self._stream.close()
            self._stream = None

    def _open(self) -> BinaryIO | None:
        try:
            if not S_ISREG(self._path.stat().st_mode):
                raise UserError(f"{self._path}: not a file")
            return open_file(self._path)
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
    """The complete lines of a growing log, without the text of those that hold no record.

    ``text`` is what ``LogReader`` reads: each record is on its true line. ``partial`` is the line
    that is being written, ``too_long`` the number of lines over ``MAX_LINE_BYTES``, which are
    skipped. A line ends with CR, LF or CRLF, as in ``LogReader``.
    """

    def __init__(self) -> None:
        """Start at the beginning of a log."""
        self.text = bytearray()
        self.partial = b""
        self.too_long = 0
        self._skipping = False

    def add(self, data: bytes) -> bytes:
        """Take more bytes, and return the lines that they complete, as in ``text``."""
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
    """Return a line if it may hold a record, else its LF, by which lines are counted."""
    if _LIKE_TOKEN in line:
        return line
    return b"\n" if line.endswith(b"\n") else b""
