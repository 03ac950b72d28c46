"""Several runs in one file: find where each begins, and report that in place of what it causes.

A file that was appended to, or concatenated, breaks dozens of rules on order and number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, in_order, verdicts_of
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.rulebook.load import codes
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.model import LogFile, Run

_FIRST_KEYS = frozenset({"cache_clear", "init_start"})
_MAX_BYTES = 1 << 30  # of a file whose runs are judged one by one
_MAX_LINES = 20  # in a message


class RunCounter(Struct):
    """Counts runs: another begins at a ``run_start`` if an ``init_start`` precedes it.

    Where several ranks log one run, all of them initialise before the first starts.
    """

    count: int = 0
    _may_begin: bool = True

    def take(self, key: str) -> bool:
        """Take the key of the next record; return whether a run begins with it."""
        begins = key == "run_start" and self._may_begin
        self.count += begins
        self._may_begin = (self._may_begin or key == "init_start") and not begins
        return begins

    def take_block(self, block: Block) -> None:
        """Take the next records, of which only the keys are read: many ranks initialise."""
        initialised, before = block.indexes.get("init_start", []), 0
        for start in block.indexes.get("run_start", ()):
            after = bisect_left(initialised, start)
            self._may_begin = self._may_begin or after > before
            before = after
            self.take("run_start")
        self._may_begin = self._may_begin or len(initialised) > before


def with_cause(run: Run, log: LogFile, count: int, read: Callable[[LogFile], Run]) -> Run:
    """Return the run of a file of ``count`` runs, without the findings that only this causes.

    A finding has a cause of its own if one of the runs, which ``read`` reads alone, has one of the
    same code.
    """
    lines = _first_lines(log.source)
    own = {"LOG111"}
    if log.source.size <= _MAX_BYTES:
        for part in _parts(log.source, lines):
            alone = read(replace(log, source=Source(run.path, part), round=run.round))
            own.update(finding.code for finding in alone.findings)
    else:
        own.update(finding.code for finding in run.findings)
    kept = [finding for finding in run.findings if finding.code in own]
    dropped = [finding for finding in run.findings if finding.code not in own]
    official = any(finding.fails(Basis.OFFICIAL) for finding in dropped)
    findings = in_order([*kept, _finding(run.path, count, lines, official=official)])
    verdicts = known_verdicts(verdicts_of(findings), run.usage, run.round)
    return replace(run, findings=findings, verdicts=verdicts)


def _finding(path: str, count: int, lines: list[int], *, official: bool) -> Finding:
    shown = ", ".join(map(str, lines[:_MAX_LINES])) + ", ..." * (len(lines) > _MAX_LINES)
    before = f"line{'s' * (len(lines) > 1)} {shown}"
    return Finding(
        code="LOG111",
        message="the file has {found} runs; expected {expected}: split it into one file per run,"
        f" before {before}",
        path=path,
        line=lines[0] if lines else None,
        basis=Basis.BOTH if official else Basis.RULES,
        found=count,
        expected=1,
        source=codes()["LOG111"].source,
    )


# ---- where runs begin ---------------------------------------------------------------------


def _first_lines(source: Source) -> list[int]:
    """Return the first lines of all runs but the first."""
    with source.open() as stream:
        reader = LogReader(stream, source.label, lambda _: None)
        numbers = list(_first_records(reader))[1:]
        return [reader.line_of(number) for number in numbers]


def _first_records(reader: LogReader) -> Iterator[int]:
    """Yield the number of the first record of each run: up to what is logged before its start."""
    counter, first = RunCounter(), None
    for number, record in enumerate(reader):
        key = record.key if record else ""
        if first is None and (key in _FIRST_KEYS or str(key).startswith("submission_")):
            first = number
        if key == "run_stop":
            first = None
        if counter.take(str(key)):
            yield number if first is None else first
            first = None


def _parts(source: Source, lines: list[int]) -> Iterator[bytes]:
    """Yield the text of each run."""
    with source.open() as stream:
        for start, end in pairwise([1, *lines]):
            yield b"".join(islice(stream, end - start))
        yield stream.read()
