"""The curve of a run, for charts and tables: its evaluations, and phases with their times.

Nothing is judged here: records that cannot be drawn are left out, as the check reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from math import isfinite
from typing import Any

from msgspec import Struct

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run import evaluations
from mlperf_pkg.run.evaluations import Evaluation, evaluation_of

MS_PER_MINUTE = 60_000


class Phase(StrEnum):
    """A phase of a run; a block takes the place of epochs if none are logged."""

    INIT = "initialisation"
    EPOCH = "epoch"
    BLOCK = "block"
    EVALUATION = "evaluation"


_PHASES = {"init": Phase.INIT, "epoch": Phase.EPOCH, "block": Phase.BLOCK, "eval": Phase.EVALUATION}
_EDGES = {f"{name}_{edge}" for name in _PHASES for edge in ("start", "stop")}


class Span(Struct, frozen=True):
    """A phase of a run, in minutes from its start; initialisation is before it."""

    phase: Phase
    start: float
    stop: float


class Curve(Struct, frozen=True):
    """The evaluations of one run in the order of its log, and its phases in that of their ends."""

    evaluations: tuple[Evaluation, ...] = ()
    spans: tuple[Span, ...] = ()


def goal(target: Mapping[str, Any]) -> float | None:
    """Return the bound that training works towards; None if a target has no such bound.

    A bound at 0 or 1 does not count: it is the end of the metric's own range. ``at_least`` and
    ``at_most`` come before ``above`` and ``below``, which only exclude what is too good.
    """
    bounds = [target[name] for name in ("at_least", "at_most", "above", "below") if name in target]
    return next((float(bound) for bound in bounds if bound not in (0, 1)), None)


def goals(rules: Benchmark | None) -> dict[str, float]:
    """Return the ``goal`` of each metric by its name, which is empty for the only one."""
    if rules is None:
        return {}
    targets = rules.target.get("fields") or {"": rules.target}
    bounds = {name: goal(target) for name, target in targets.items()}
    return {name: bound for name, bound in bounds.items() if bound is not None}


class _Interval(Struct, frozen=True):
    """A phase of a run, in milliseconds since the epoch."""

    phase: Phase
    start_ms: float
    stop_ms: float

    def after(self, start_ms: float) -> Span:
        """Return the phase in minutes from the start of the run."""
        start, stop = self.start_ms - start_ms, self.stop_ms - start_ms
        return Span(self.phase, start / MS_PER_MINUTE, stop / MS_PER_MINUTE)


class CurveReader:
    """Follows the records of ``keys``; ``rules`` are those of the benchmark, if it has any.

    ``line_of`` returns the line of a record by its number in the log.
    """

    keys = frozenset({*evaluations.KEYS, *_EDGES, "run_start"})

    def __init__(self, rules: Benchmark | None, line_of: Callable[[int], int]) -> None:
        """Start at the head of a log."""
        self._rules = rules
        self._line_of = line_of
        self._start_ms: float | None = None
        self._evaluations: list[Evaluation] = []
        self._intervals: list[_Interval] = []
        self._began_ms: dict[str, float] = {}

    def take(self, record: Record, number: int) -> None:
        """Read the next record."""
        if record.key in evaluations.KEYS:
            evaluation = evaluation_of(record, self._rules, self._line_of(number))
            if evaluation and evaluation.values:
                self._evaluations.append(evaluation)
        elif record.key in _EDGES:
            self._edge(record)
        elif self._start_ms is None:
            self._start_ms = float(record.time_ms)

    def curve(self) -> Curve:
        """Return what was read so far; an empty curve before ``run_start``."""
        if self._start_ms is None:
            return Curve()
        spans = (interval.after(self._start_ms) for interval in self._shown_intervals())
        finite = (span for span in spans if isfinite(span.start) and isfinite(span.stop))
        return Curve(tuple(self._evaluations), tuple(finite))

    def _shown_intervals(self) -> Iterator[_Interval]:
        """Yield the phases, without blocks if epochs are logged."""
        epochs = any(interval.phase is Phase.EPOCH for interval in self._intervals)
        for interval in self._intervals:
            if not (epochs and interval.phase is Phase.BLOCK):
                yield interval

    def _edge(self, record: Record) -> None:
        name, _, edge = record.key.partition("_")
        if edge == "start":
            self._began_ms.setdefault(name, float(record.time_ms))
        elif (start_ms := self._began_ms.pop(name, None)) is not None:
            self._intervals.append(_Interval(_PHASES[name], start_ms, float(record.time_ms)))
