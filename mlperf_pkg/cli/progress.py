"""How far a check has come, on a terminal and where it takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

SHOWN_AFTER_S = 1.0


class Bar:
    """Files and bytes done, the rate, and the time that remains; an ``Observer`` of checks."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = monotonic) -> None:
        """Nothing is shown until a check has taken a second."""
        self._stream = stream
        self._clock = clock
        self._begun = 0.0
        self._files = self._done = self._size = self._read = 0
        self._shown: Progress | None = None

    def begin(self, files: int, size: int) -> None:
        """So many files, of so many bytes, will be read."""
        self.end()
        self._begun = self._clock()
        self._files, self._size, self._done, self._read = files, size, 0, 0

    def advance(self, size: int) -> None:
        """A file of so many bytes was read."""
        self._done += 1
        self._read += size
        if self._done >= self._files:
            self.end()
        elif self._shown or self._clock() - self._begun >= SHOWN_AFTER_S:
            self._show()

    def end(self) -> None:
        """Leave nothing on the terminal."""
        if self._shown:
            self._shown.stop()
            self._shown = None

    def _show(self) -> None:
        files = f"{self._done}/{self._files} files"
        if self._shown is None:
            self._shown = _started(self._stream, self._size, files)
        self._shown.update(self._shown.task_ids[0], completed=self._read, files=files)


def _started(stream: TextIO, size: int, files: str) -> Progress:
    from rich import progress  # noqa: PLC0415 - slow to import, and seldom needed
    from rich.console import Console  # noqa: PLC0415

    shown = progress.Progress(
        progress.TextColumn("{task.fields[files]}"),
        progress.BarColumn(bar_width=None),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(file=stream),
        transient=True,
        expand=True,
    )
    shown.add_task("", total=size, files=files)
    shown.start()
    return shown


@contextmanager
def progress() -> Iterator[Bar | None]:
    """A bar on standard error if that is a terminal; in a pipe, silence."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Bar(sys.stderr)
    try:
        yield bar
    finally:
        bar.end()
