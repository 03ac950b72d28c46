"""Standard streams that are closed or full, ending early, and the progress bar on a terminal."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.progress import Progress

OUTPUT = "standard output"
_STDIN, _STDOUT, _STDERR = range(3)


# ---- standard streams ---------------------------------------------------------------------


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
        try:
            os.fstat(number)
        except OSError:
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


# ---- ending early -------------------------------------------------------------------------


@contextmanager
def stop_cleanly() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that nothing partial is left, and no cursor hidden.

    One that is ignored, as by nohup, stays ignored.
    """
    import signal  # noqa: PLC0415 - only commands that pack, unpack and watch need it

    changed = []
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
            changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


# ---- progress -----------------------------------------------------------------------------

SHOWN_AFTER_S = 1.0


class Bar:
    """An ``Observer`` of checks that shows files and bytes read, the rate and the time left."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = monotonic) -> None:
        """Create a bar that is hidden until a check has taken a second."""
        self._stream = stream
        self._clock = clock
        self._bar: Progress | None = None

    def begin(self, files: int, size: int) -> None:
        """Announce the number of files and their total size."""
        self.end()
        self._started_s = self._clock()
        self._files = files
        self._size = size
        self._done = 0
        self._read = 0

    def advance(self, size: int) -> None:
        """Count one file, and its size in bytes, as read."""
        self._done += 1
        self._read += size
        if self._done >= self._files:
            self.end()
        elif self._bar or self._clock() - self._started_s >= SHOWN_AFTER_S:
            self._show()

    def end(self) -> None:
        """Remove the bar from the terminal."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def _show(self) -> None:
        files = f"{self._done}/{self._files} files"
        if self._bar is None:
            from rich import progress as rich
            from rich.console import Console

            self._bar = rich.Progress(
                rich.TextColumn("{task.fields[files]}"),
                rich.BarColumn(bar_width=None),
                *(rich.DownloadColumn(), rich.TransferSpeedColumn(), rich.TimeRemainingColumn()),
                console=Console(file=self._stream),
                transient=True,
                expand=True,
            )
            self._bar.add_task("", total=self._size, files=files)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self._read, files=files)


@contextmanager
def progress() -> Iterator[Bar | None]:
    """Yield a bar on standard error if that is a terminal, else None."""
    bar = Bar(sys.stderr) if sys.stderr.isatty() else None
    try:
        yield bar
    finally:
        if bar:
            bar.end()
