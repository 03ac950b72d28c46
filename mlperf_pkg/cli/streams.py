"""Standard streams that are closed or full: output is an error, a lost message is not."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUTPUT = "standard output"
_STDIN, _STDOUT, _STDERR = range(3)


class _Lossy(io.FileIO):
    """A file that ignores errors of writing."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write to the file; if that fails, report all bytes as written."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


class _Named(io.FileIO):
    """Standard output, with its name in errors."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write to the file, or raise an error that names it."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = "closed" if error.errno == errno.EBADF else error.strerror
            raise OSError(error.errno, reason, OUTPUT) from error


def prepare_streams() -> None:
    """Reopen closed standard streams, so that no other file gets their numbers.

    Writing to a closed standard output raises an error. Messages that cannot be written to standard
    error are lost and do not change the outcome of the command.
    """
    modes = {_STDIN: os.O_RDWR, _STDOUT: os.O_RDONLY, _STDERR: os.O_RDWR}
    for number, mode in modes.items():
        if not _is_open(number):
            os.dup2(os.open(os.devnull, mode), number)
    if not _is_windows_console(sys.stdout):
        sys.stdout = _text(_Named(_STDOUT, "w", closefd=False), sys.stdout)
    if not _is_windows_console(sys.stderr):
        sys.stderr = _text(_Lossy(_STDERR, "w", closefd=False), sys.stderr)


def _is_windows_console(stream: TextIO | None) -> bool:
    """Return whether Python writes to it by characters: bytes would appear in an old encoding."""
    return sys.platform == "win32" and stream is not None and stream.isatty()


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    """Return a text stream with the encoding of the one ``before``, which may be closed."""
    encoding, errors = (before.encoding, before.errors) if before else ("utf-8", "strict")
    lines = raw.isatty() or raw.fileno() == _STDERR
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, "\n", line_buffering=lines)


def discard_output() -> None:
    """Redirect standard output, so that buffered text does not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
