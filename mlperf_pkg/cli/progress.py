"""The progress bar of a check, shown on a terminal after a second."""

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
    """An ``Observer`` of checks that shows files and bytes read, the rate and the time left."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = monotonic) -> None:
        """Create a bar that is hidden until a check has taken a second."""
        self._stream = stream
        self._clock = clock
        self._started_s = 0.0
        self._files = self._done = self._size = self._read = 0
        self._bar: Progress | None = None

    def begin(self, files: int, size: int) -> None:
        """Announce the number of files and their total size."""
        self.end()
        self._started_s = self._clock()
        self._files, self._size, self._done, self._read = files, size, 0, 0

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
            self._bar = _start_bar(self._stream, self._size, files)
        self._bar.update(self._bar.task_ids[0], completed=self._read, files=files)


def _start_bar(stream: TextIO, size: int, files: str) -> Progress:
    from rich import progress  # noqa: PLC0415 - slow to import, and seldom needed
    from rich.console import Console  # noqa: PLC0415

    bar = progress.Progress(
        progress.TextColumn("{task.fields[files]}"),
        progress.BarColumn(bar_width=None),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=Console(file=stream),
        transient=True,
        expand=True,
    )
    bar.add_task("", total=size, files=files)
    bar.start()
    return bar


@contextmanager
def progress() -> Iterator[Bar | None]:
    """Yield a bar on standard error if that is a terminal, else None."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Bar(sys.stderr)
    try:
        yield bar
    finally:
        bar.end()
