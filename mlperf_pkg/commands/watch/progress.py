"""How far a run is on its way to the target, from the records that its log holds so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct, field

from mlperf_pkg.log.record import TOKEN, Record
from mlperf_pkg.results.rcp import ReferencePoint, prune, reference_points
from mlperf_pkg.rulebook.explain import describe
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.model import Run

METRICS = frozenset({"eval_accuracy", "eval_error", "averaged_validation_loss"})
_SAMPLES = "samples_count"
_POSITIONS = (_SAMPLES, "epoch_num", "step_num")
_LARGEST = 1e300
_LOWER, _UPPER = ("at_least", "above"), ("at_most", "below")
_decode = msgspec.json.Decoder(Record).decode


class Evaluation(Struct, frozen=True):
    """One evaluation: when (ms since the epoch), after how much training, and what it found.

    ``position`` is in the unit in which the log counts training; ``values`` holds each metric by
    its name, which is empty where there is one alone.
    """

    time_ms: float
    position: float
    values: Mapping[str, float]


class Course(Struct):
    """What a log tells of its training so far; ``take`` is given each complete line once.

    For information only: a line that is no plain record is passed over, as the judging of records
    tells of it.
    """

    start_ms: float | None = None
    last_ms: float | None = None
    batch_size: float | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    _mark: Evaluation | None = None

    @property
    def latest(self) -> Evaluation | None:
        """The last evaluation; before the first, what else tells how far the training is."""
        return self.evaluations[-1] if self.evaluations else self._mark

    @property
    def interval(self) -> float:
        """The training between the last two evaluations; 0 where there are no two."""
        if len(self.evaluations) < 2:  # noqa: PLR2004
            return 0.0
        return self.evaluations[-1].position - self.evaluations[-2].position

    def take(self, lines: bytes) -> None:
        """Read more complete lines."""
        for record in _records(lines):
            self.last_ms = max(record.time_ms, self.last_ms or record.time_ms)
            if record.key == "run_start" and self.start_ms is None:
                self.start_ms = record.time_ms
            elif record.key == "global_batch_size" and _is_number(record.value):
                self.batch_size = record.value
            elif self.start_ms is not None and isinstance(record.metadata, dict):
                if record.key in METRICS:
                    self._evaluate(record, record.metadata)
                elif record.key == "tracked_stats" and _is_number(record.metadata.get(_SAMPLES)):
                    self._mark = Evaluation(record.time_ms, record.metadata[_SAMPLES], {})

    def _evaluate(self, record: Record, metadata: Mapping[str, Any]) -> None:
        positions = (metadata[name] for name in _POSITIONS if _is_number(metadata.get(name)))
        position: float | None = next(positions, None)
        values = _values(record.value, metadata.get("metric"))
        if position is None or not values:
            return
        last = self.evaluations[-1] if self.evaluations else None
        if last and last.position == position and not values.keys() & last.values.keys():
            # metrics that are logged one a record
            values = {**last.values, **values}
            self.evaluations[-1] = Evaluation(record.time_ms, position, values)
        else:
            self.evaluations.append(Evaluation(record.time_ms, position, values))


class Goal(Struct, frozen=True):
    """What a run is to reach: in words, the bounds of each metric by its name, and in which unit.

    ``reference`` is how far the reference trains at the run's batch size, None where no reference
    point tells.
    """

    target: str
    bounds: Mapping[str, Mapping[str, Any]]
    unit: str
    reference: ReferencePoint | None = None

    def met(self, values: Mapping[str, float]) -> bool:
        """Whether an evaluation meets each bound."""
        return all(
            name in values and _violated(values[name], bounds) is None
            for name, bounds in self.bounds.items()
        )

    def limit(self, name: str, value: float) -> float | None:
        """The bound of a metric that ``value`` is on the wrong side of."""
        return _violated(value, self.bounds.get(name, {}))


def goal_of(run: Run, batch_size: float | None) -> Goal | None:
    """The goal of a run as far as its log has described it; None where no rules are known.

    Raises:
        UserError: the rulebook has no such round.
    """
    benchmark = load_benchmark(run.usage, run.round, run.benchmark)
    if benchmark is None:
        return None
    bounds = benchmark.target.get("fields", {"": benchmark.target})
    target = describe.target(benchmark)
    return Goal(target, bounds, benchmark.unit, _reference(run, benchmark, batch_size))


def _reference(run: Run, benchmark: Benchmark, batch_size: float | None) -> ReferencePoint | None:
    """The reference point at a batch size, on the line between two, or else the nearest.

    None for Open runs, which may train in another way than the reference.
    """
    runs, ruleset = benchmark.runs, load_round(run.usage, run.round).ruleset
    points = prune(
        reference_points(run.usage, ruleset, benchmark.name, runs=runs.required, drop=runs.drop)
    )
    if not points or batch_size is None or run.division != "closed":
        return None
    low = next((p for p in reversed(points) if p.batch_size <= batch_size), points[0])
    high = next((p for p in points if p.batch_size >= batch_size), points[-1])
    if low.batch_size >= high.batch_size:
        return low if low.batch_size <= batch_size else high
    return ReferencePoint.between(low, high, batch_size, runs=runs.required)


def _records(lines: bytes) -> Iterator[Record]:
    for line in lines.splitlines():
        _, token, raw = line.rpartition(TOKEN)
        if token:
            try:
                record = _decode(raw)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if isfinite(record.time_ms):
                yield record


def _values(value: Any, name: Any) -> dict[str, float]:
    named = value if isinstance(value, dict) else {name if isinstance(name, str) else "": value}
    return {each: float(number) for each, number in named.items() if _is_number(number)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _violated(value: float, bounds: Mapping[str, Any]) -> float | None:
    lower = next((bounds[name] for name in _LOWER if name in bounds), None)
    upper = next((bounds[name] for name in _UPPER if name in bounds), None)
    if lower is not None and value < lower:
        return float(lower)
    return float(upper) if upper is not None and value > upper else None
