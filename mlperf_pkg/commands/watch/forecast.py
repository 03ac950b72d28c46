"""How far a run has trained, what it is to reach, and a forecast of when it ends.

Measured on published logs at half of the run: for most benchmarks, the reference's convergence
predicts the end to within a few percent, and the curve of the metric to within 20 to 50 percent,
mostly too early, as metrics flatten. So the reference decides until a run has trained beyond it,
and the curve only without a reference or after it.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from math import exp, inf, isfinite, log, nan
from statistics import linear_regression
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.record import TOGETHER_MS, Record
from mlperf_pkg.results.rcp import ReferencePoint, comparison_at, prune, reference_points
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.evaluations import KEYS, MS_PER_MINUTE, Evaluation, evaluation_of, position_of
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import not_finite

_DEVIATIONS = 2
_RECENT = 5  # evaluations that a curve takes at most
_FEWEST = 3  # evaluations that a curve takes at least
_IN_SAMPLES = ("samples", "tokens")
_LARGEST_POWER = 700  # of e in a double
_FARTHEST = 10  # times the training so far: a curve that needs more predicts nothing


# ---- the training so far ------------------------------------------------------------------


class TrainingCourse(Struct):
    """The training so far, from a log that grows; ``take`` gets each complete line once.

    Times are in milliseconds since the epoch. The records are kept as they are, with their lines:
    what they mean depends on rules that are known only later. Lines that are not records are left
    out; the judging of the log reports them.
    """

    start_ms: float | None = None
    last_ms: float | None = None
    batch_size: float | None = None
    _evaluations: list[tuple[Record, int]] = field(default_factory=list)
    _mark: tuple[Record, int] | None = None
    _lines: int = 0

    def take(self, lines: bytes) -> None:
        """Read more complete lines."""
        reader = LogReader(BytesIO(lines), "", lambda _: None)
        for number, record in enumerate(reader):
            if not (record and isinstance(record.key, str) and isfinite(record.time_ms)):
                continue
            time_ms = float(record.time_ms)
            self.last_ms = max(time_ms, self.last_ms or time_ms)
            if record.key == "run_start" and self.start_ms is None:
                self.start_ms = time_ms
            elif record.key == "global_batch_size":
                size = to_finite(record.value)
                if size is not None:
                    self.batch_size = size
            elif self.start_ms is None:
                continue
            elif record.key in KEYS:
                self._evaluations.append((record, self._lines + reader.line_of(number)))
            elif record.key == "tracked_stats" and position_of(record, None):
                self._mark = (record, self._lines + reader.line_of(number))
        self._lines += lines.count(b"\n")

    def evaluations(self, rules: Benchmark | None) -> list[Evaluation]:
        """Return the evaluations, read by the rules of the benchmark if there are any.

        Metrics of one position that are logged in several records are one evaluation, and so are
        equal ones of several processes. What is not a finite number is NaN.
        """
        joined: list[Evaluation] = []
        for record, line in self._evaluations:
            evaluation = evaluation_of(record, rules, line)
            if evaluation is None:
                continue
            if not evaluation.values and not_finite(record.value):
                evaluation = replace(evaluation, values={"": nan})
            if not evaluation.values or _is_repeated(joined, evaluation):
                continue
            if joined and _is_continued(joined[-1], evaluation):
                values = {**joined[-1].values, **evaluation.values}
                joined[-1] = replace(evaluation, values=values)
            else:
                joined.append(evaluation)
        return joined

    def mark(self, rules: Benchmark | None) -> Evaluation | None:
        """Return the last position of ``tracked_stats``, without values; None if there is none."""
        if self._mark is None:
            return None
        record, line = self._mark
        mark = evaluation_of(record, rules, line)
        if mark is None:
            return None
        return replace(mark, values={})


def _is_repeated(joined: Sequence[Evaluation], evaluation: Evaluation) -> bool:
    """Return whether an evaluation is the last one again, as another process logs it."""
    if not joined:
        return False
    again = replace(evaluation, time_ms=joined[-1].time_ms, line=joined[-1].line)
    is_together = abs(evaluation.time_ms - joined[-1].time_ms) <= TOGETHER_MS
    return is_together and repr(again) == repr(joined[-1])  # NaN is not equal to itself


def _is_continued(last: Evaluation, evaluation: Evaluation) -> bool:
    """Return whether an evaluation has other metrics of the same position as the last one."""
    is_there = (last.position, last.unit) == (evaluation.position, evaluation.unit)
    return is_there and last.values.keys().isdisjoint(evaluation.values)


# ---- the goal -----------------------------------------------------------------------------


class Goal(Struct, frozen=True):
    """The bounds of each metric by its name, and the unit of convergence.

    ``reference`` is how far the reference trains at the run's batch size, None if no reference
    point says.
    """

    bounds: Mapping[str, Mapping[str, Any]]
    unit: str
    reference: ReferencePoint | None = None

    def met(self, values: Mapping[str, float]) -> bool:
        """Return whether an evaluation meets each bound."""
        return values.keys() >= self.bounds.keys() and not self.short(values)

    def short(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the bounds that an evaluation violates, by metric."""
        limits = {}
        for name, bounds in self.bounds.items():
            lower = float(bounds.get("at_least", bounds.get("above", -inf)))
            upper = float(bounds.get("at_most", bounds.get("below", inf)))
            if name not in values:
                continue
            if values[name] < lower:
                limits[name] = lower
            elif not values[name] <= upper:  # so is NaN
                limits[name] = upper
        return limits


def goal_of(run: Run, rules: Benchmark, batch_size: float | None) -> Goal:
    """Return the goal of a run, as far as its log describes it, by the rules of its benchmark.

    Raises:
        UserError: the rulebook has no such round.
    """
    bounds = rules.target.get("fields", {"": rules.target})
    return Goal(bounds, rules.unit, _reference(run, rules, batch_size))


def _reference(run: Run, rules: Benchmark, batch_size: float | None) -> ReferencePoint | None:
    """Return the reference point at a batch size, interpolated between two, else the nearest.

    None for Open runs, which may train differently from the reference.
    """
    runs = rules.runs
    ruleset = load_round(run.usage, run.round).ruleset
    reference = reference_points(run.usage, ruleset, rules.name, runs=runs.required, drop=runs.drop)
    points = prune(reference)
    if not points or batch_size is None or run.division != "closed":
        return None
    nearest = min(batch_size, points[-1].batch_size)
    return comparison_at(points, nearest, runs=runs.required).point


# ---- the forecast -------------------------------------------------------------------------


Method = Literal["reference", "curve"]
"""The method of a forecast."""


class Forecast(Struct, frozen=True):
    """The expected minutes from ``run_start`` to ``run_stop``, with the earliest and the latest.

    By the reference: its mean; ``low`` and ``high`` are two standard deviations of its runs and
    one interval of evaluations away (before the second evaluation, the training so far). By the
    curve: the last evaluations continue as a line over the logarithm of the training; ``low``
    is by a straight line if that is earlier, and ``high`` is None, as nothing bounds it. No figure
    is earlier than the next evaluation.
    """

    minutes: float
    low: float
    high: float | None
    method: Method


class _End(Struct, frozen=True):
    """The position at which a run should converge: expected, nearest and farthest, by a method."""

    expected: float
    nearest: float
    farthest: float | None
    method: Method


def forecast(course: TrainingCourse, rules: Benchmark | None, goal: Goal) -> Forecast | None:
    """Return the expected end of a run; None if it cannot be predicted, or the target is met."""
    evaluations = list(filter(_is_finite, course.evaluations(rules)))
    start_ms = course.start_ms
    last = course.mark(rules)  # before the first evaluation, the last position that is logged
    if evaluations:
        last = evaluations[-1]
    if last is None or start_ms is None or goal.met(last.values):
        return None
    if not _counts_training(evaluations, last, course.batch_size):
        return None
    interval = 0.0
    if len(evaluations) > 1:
        interval = last.position - evaluations[-2].position
    end = _by_reference(last, interval, goal) or _by_curve(evaluations, goal)
    pace = _pace(evaluations, last, start_ms)
    if end is None or pace is None:
        return None

    def minutes(position: float) -> float:
        left = max(position, last.position + interval) - last.position
        return (last.time_ms + left * pace - start_ms) / MS_PER_MINUTE

    high = None
    if end.farthest is not None:
        high = minutes(end.farthest)
    return Forecast(minutes(end.expected), minutes(end.nearest), high, end.method)


def _is_finite(evaluation: Evaluation) -> bool:
    return all(map(isfinite, evaluation.values.values()))


def _counts_training(
    evaluations: Sequence[Evaluation], last: Evaluation, batch_size: float | None
) -> bool:
    """Return whether positions count training: some BERT logs repeat one epoch instead."""
    if last.unit in _IN_SAMPLES and last.position < (batch_size or 0):
        return False
    return all(before.position < after.position for before, after in pairwise(evaluations))


def _pace(evaluations: Sequence[Evaluation], last: Evaluation, start_ms: float) -> float | None:
    """Return the milliseconds per unit of training, with evaluations; None if unknown."""
    time_ms = last.time_ms - start_ms
    trained = last.position
    if len(evaluations) > 1:
        first = evaluations[0]
        time_ms = last.time_ms - first.time_ms
        trained = last.position - first.position
    if time_ms > 0 and trained > 0:
        return time_ms / trained
    return None


def _by_reference(last: Evaluation, interval: float, goal: Goal) -> _End | None:
    point = goal.reference
    if point is None or last.unit != goal.unit or point.mean <= last.position:
        return None
    spread = _DEVIATIONS * point.stdev + (interval or last.position)
    return _End(point.mean, point.mean - spread, point.mean + spread, "reference")


def _by_curve(evaluations: Sequence[Evaluation], goal: Goal) -> _End | None:
    """Return the end by the curves; the metric that reaches its bound last decides."""
    recent = evaluations[-_RECENT:]
    if len(recent) < _FEWEST or recent[0].position <= 0:
        return None
    bent = 0.0
    straight = 0.0
    for name, limit in goal.short(recent[-1].values).items():
        points = []
        bent_points = []
        for evaluation in recent:
            if name in evaluation.values:
                value = evaluation.values[name]
                points.append((evaluation.position, value))
                bent_points.append((log(evaluation.position), value))
        straight = max(straight, _reached(points, limit))
        power = _reached(bent_points, limit)
        bent = max(bent, exp(min(power, _LARGEST_POWER)))
    if not 0 < max(bent, straight) <= _FARTHEST * recent[-1].position:
        return None
    return _End(bent, min(bent, straight), None, "curve")


def _reached(points: Sequence[tuple[float, float]], limit: float) -> float:
    """Return where a line through points, moved to the last one, reaches a limit, or infinity."""
    if len(points) < _FEWEST:
        return inf
    slope = linear_regression(*zip(*points, strict=True)).slope
    position, value = points[-1]
    if slope == 0:
        return inf
    left = (limit - value) / slope
    if left <= 0:
        return inf
    return position + left
