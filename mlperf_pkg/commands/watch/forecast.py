"""Forecast when a run ends.

Measured on published logs at half of the run: for most benchmarks, the reference's convergence
predicts the end to within a few percent, and the curve of the metric to within 20 to 50 percent,
mostly too early, as metrics flatten. So the reference decides until a run has trained beyond it,
and the curve only without a reference or after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import pairwise
from math import exp, inf, log
from statistics import linear_regression

from msgspec import Struct

from mlperf_pkg.commands.watch.course import Course
from mlperf_pkg.commands.watch.goal import Goal
from mlperf_pkg.run.evaluations import Evaluation

_MS_PER_MINUTE = 60_000
_DEVIATIONS = 2
_RECENT, _FEWEST = 5, 3  # evaluations that a curve takes at most, and at least
_IN_SAMPLES = ("samples", "tokens")
_FARTHEST = 10  # times the training so far: a curve that needs more predicts nothing


class Method(StrEnum):
    """The method of a forecast."""

    REFERENCE = "reference"
    CURVE = "curve"


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


def forecast(course: Course, goal: Goal) -> Forecast | None:
    """Return the expected end of a run; None if it cannot be predicted, or the target is met."""
    pace, last, start = _pace(course), course.latest, course.start_ms
    if pace is None or last is None or start is None or goal.met(last.values):
        return None
    if not _counts_training(course, last):
        return None
    end = _by_reference(course, last, goal) or _by_curve(course.evaluations, goal)
    if end is None:
        return None
    upcoming = last.position + course.interval

    def minutes(position: float) -> float:
        left = max(position, upcoming) - last.position
        return (last.time_ms + left * pace - start) / _MS_PER_MINUTE

    high = None if end.farthest is None else minutes(end.farthest)
    return Forecast(minutes(end.expected), minutes(end.nearest), high, end.method)


def _pace(course: Course) -> float | None:
    """Return the milliseconds per unit of training, with evaluations; None if unknown."""
    last = course.latest
    if course.start_ms is None or last is None:
        return None
    time_ms, trained = last.time_ms - course.start_ms, last.position
    if len(course.evaluations) > 1:
        first = course.evaluations[0]
        time_ms, trained = last.time_ms - first.time_ms, last.position - first.position
    return time_ms / trained if time_ms > 0 and trained > 0 else None


def _counts_training(course: Course, last: Evaluation) -> bool:
    """Return whether positions count training: some BERT logs repeat one epoch instead."""
    steps = pairwise(course.evaluations)
    rising = all(one.position < other.position for one, other in steps)
    return rising and (last.unit not in _IN_SAMPLES or last.position >= (course.batch_size or 0))


class _End(Struct, frozen=True):
    """The position at which a run should converge: expected, nearest and farthest."""

    method: Method
    expected: float
    nearest: float
    farthest: float | None


def _by_reference(course: Course, last: Evaluation, goal: Goal) -> _End | None:
    point = goal.reference
    if point is None or last.unit != goal.unit or point.mean <= last.position:
        return None
    spread = _DEVIATIONS * point.stdev + (course.interval or last.position)
    return _End(Method.REFERENCE, point.mean, point.mean - spread, point.mean + spread)


def _by_curve(evaluations: Sequence[Evaluation], goal: Goal) -> _End | None:
    """Return the end by the curves; the metric that reaches its bound last decides."""
    recent = evaluations[-_RECENT:]
    if len(recent) < _FEWEST or recent[0].position <= 0:
        return None
    values = recent[-1].values
    short = [
        name
        for name in goal.bounds
        if name in values and goal.limit(name, values[name]) is not None
    ]
    if not short:
        return None
    bent = max(_reached(recent, goal, name, _LOGARITHMIC) for name in short)
    straight = max(_reached(recent, goal, name, _LINEAR) for name in short)
    if max(bent, straight) > _FARTHEST * recent[-1].position:
        return None
    return _End(Method.CURVE, bent, min(bent, straight), None)


def _exp(power: float) -> float:
    try:
        return exp(power)
    except OverflowError:
        return inf


class _Scale(Struct, frozen=True):
    """A scale of training over which values are taken to be a line, and its inverse."""

    of: Callable[[float], float]
    back: Callable[[float], float]


_LINEAR, _LOGARITHMIC = _Scale(float, float), _Scale(log, _exp)


def _reached(recent: Sequence[Evaluation], goal: Goal, name: str, scale: _Scale) -> float:
    """Return the position at which a line through the values reaches the bound, or infinity."""
    measured = [evaluation for evaluation in recent if name in evaluation.values]
    values = [evaluation.values[name] for evaluation in measured]
    limit = goal.limit(name, values[-1])
    if limit is None or len(measured) < _FEWEST:
        return inf
    positions = [scale.of(evaluation.position) for evaluation in measured]
    line = linear_regression(positions, values)
    if line.slope == 0 or (limit - values[-1]) / line.slope <= 0:
        return inf
    return scale.back(positions[-1] + (limit - values[-1]) / line.slope)
