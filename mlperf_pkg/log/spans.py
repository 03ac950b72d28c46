"""Find the runs in a file: where each begins and ends, and whether its clock ever started.

A run begins after a ``run_stop``, or at another header: ``submission_benchmark`` and what belongs
to it. Neither the ``run_start`` of another process nor that of a run resumed from a checkpoint
begins one; nor does the header that another process logs before the run starts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import BinaryIO

from msgspec import Struct

from mlperf_pkg.log.record import TOKEN, Record, has_started, record_in

_HEADER = "submission_benchmark"
_START = "run_start"
_STOP = "run_stop"
_OPENING = ("submission_", "init_start", "cache_clear")  # how the keys begin that a run begins with
_WORDS = (b"submission_", b"init_start", b"cache_clear", b"run_st")
_LINE_BYTES = 1 << 20
_MOST_RUNS = 1000  # of a file; one that seems to have more is not divided
_SUCCESSION_MS = 60_000  # between the headers that the processes of one run log


class RunSpan(Struct, frozen=True):
    """What one run wrote into a file: its first and last line, from 1, and its bytes.

    ``started`` says that its text names an evaluation, or the start or the stop of a run.
    """

    lines: tuple[int, int]
    start: int
    size: int
    started: bool


def spans_of(stream: BinaryIO) -> list[RunSpan]:
    """Return what each run wrote into a file, in order; together they are the whole file."""
    lines = list(_marked_lines(stream))
    end = lines.pop()
    firsts = [_MarkedLine(0, 1), *islice(_first_lines(lines), _MOST_RUNS)]
    if len(firsts) > _MOST_RUNS:
        firsts = firsts[:1]
    started = [line.start for line in lines if line.is_started]
    spans: list[RunSpan] = []
    for first, following in pairwise([*firsts, end]):
        span = RunSpan(
            lines=(first.number, following.number - 1),
            start=first.start,
            size=following.start - first.start,
            started=bisect_left(started, first.start) < bisect_left(started, following.start),
        )
        spans.append(span)
    return spans


class _MarkedLine(Struct, frozen=True):
    """A line that may begin or end a run: its first byte, its number, and its record, if any."""

    start: int
    number: int
    record: Record | None = None
    is_started: bool = False


def _marked_lines(stream: BinaryIO) -> Iterator[_MarkedLine]:
    """Yield the lines that may begin or end a run, and one after the last line of the stream.

    A run may begin with the key of the first record.
    """
    start = 0
    number = 1
    is_whole = True
    words = [TOKEN]
    while text := stream.readline(_LINE_BYTES):
        is_started = has_started(text)
        if is_whole and (is_started or any(word in text for word in words)):
            record = _record(text)
            yield _MarkedLine(start, number, record, is_started)
            if record and words == [TOKEN]:
                words = [*_WORDS, str(record.key).encode("latin-1", "replace")]
        start += len(text)
        is_whole = text.endswith(b"\n")
        number += is_whole
    yield _MarkedLine(start, number if is_whole else number + 1)


def _record(line: bytes) -> Record | None:
    """Return the record that the last token of a line begins, whatever follows it."""
    _, token, tail = line.rpartition(TOKEN)
    whole = record_in(tail.decode("latin-1")) if token else None
    return whole[0] if whole else None


class _Clock(Struct):
    """A run so far: when its last header, its first start and its last stop were logged.

    ``has_evaluated`` says that it evaluated since it started.
    """

    header_ms: float | None = None
    start_ms: float | None = None
    stop_ms: float | None = None
    has_evaluated: bool = False

    def take(self, record: Record) -> None:
        """Take the time of a record of the run."""
        if record.key == _HEADER:
            self.header_ms = record.time_ms
        elif record.key == _STOP:
            self.stop_ms = record.time_ms
        elif record.key == _START and self.start_ms is None:
            self.start_ms = record.time_ms
        elif record.key.startswith("eval_") and self.start_ms is not None:
            self.has_evaluated = True

    def is_of_next_run(self, record: Record) -> bool:
        """Return whether a record cannot be of this run."""
        is_header = record.key == _HEADER and self.header_ms is not None
        if self.stop_ms is not None:
            return is_header or (record.key == _START and record.time_ms >= self.stop_ms)
        if not is_header:
            return False
        if self.start_ms is not None:
            return self.has_evaluated or record.time_ms > self.start_ms
        return record.time_ms > (self.header_ms or 0) + _SUCCESSION_MS


def _first_lines(lines: Iterable[_MarkedLine]) -> Iterator[_MarkedLine]:
    """Yield the first line of each run but the first.

    A run begins with the key with which the first one of the file begins, if it is there. After a
    stop, it begins with the first record of what is logged before a start.
    """
    clock = _Clock()
    openings: list[str] = []
    first: _MarkedLine | None = None  # since the last header, start or stop
    for line in lines:
        record = line.record
        if record is None or not isinstance(record.key, str):
            continue
        is_opening = record.key.startswith(_OPENING)
        if not openings or (is_opening and not openings[-1].startswith(_OPENING)):
            openings.append(record.key)
        begins = record.key == openings[-1]
        if clock.stop_ms is not None:
            begins = is_opening or record.key in openings
        if first is None and begins:
            first = line
        if clock.is_of_next_run(record):
            yield first or line
            clock = _Clock()
        clock.take(record)
        if record.key in (_HEADER, _START, _STOP):
            first = None
