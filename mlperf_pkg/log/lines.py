"""The numbers of the lines of a log that hold records, counted only on request."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice


class LineNumbers:
    """The line numbers of the records of a log, counted only on request."""

    def __init__(self, first: int) -> None:
        """Start at the head of a log, which is the line ``first`` of its file."""
        self._chunk = b""
        self._first = first
        self._counts = [0]  # of records before each block, and after the last
        self._blocks: list[range | array[int]] = []
        self._later_lines: Iterator[int] = iter(())

    def enter(self, chunk: bytes, size: int, offsets: Iterable[int] | None) -> None:
        """Start the next block, which has ``size`` records.

        They are at the ``offsets``; without these, each of its lines is a record.
        """
        if self._blocks and isinstance(self._blocks[-1], array):
            self._blocks[-1].extend(self._later_lines)
        self._first = self.after
        self._chunk = chunk
        self._counts.append(self._counts[-1] + size)
        if offsets is None:
            self._blocks.append(range(self._first, self._first + size))
        else:
            self._blocks.append(array("Q"))
            self._later_lines = _lines(chunk, self._first, offsets)

    def of(self, number: int) -> int:
        """Return the line of a record by its number in the log."""
        block = bisect_right(self._counts, number) - 1
        lines = self._blocks[block]
        index = number - self._counts[block]
        if isinstance(lines, array) and index >= len(lines):
            lines.extend(islice(self._later_lines, index + 1 - len(lines)))
        return lines[index]

    def at(self, offsets: Iterable[int]) -> Iterator[int]:
        """Yield the number of the line of each offset in the current block; offsets ascend."""
        return _lines(self._chunk, self._first, offsets)

    @property
    def after(self) -> int:
        """The line after the current block."""
        return self._first + self._chunk.count(b"\n")


def _lines(chunk: bytes, line: int, offsets: Iterable[int]) -> Iterator[int]:
    """Yield the number of the line of each offset.

    It is not a method: an object that holds its own generator would be in a reference cycle.
    """
    counted = 0
    for offset in offsets:
        line += chunk.count(b"\n", counted, offset)
        yield line
        counted = offset
