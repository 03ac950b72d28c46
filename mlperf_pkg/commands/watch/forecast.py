"""When a run should end.

Measured on published logs at half of the run, the reference's convergence tells the end to within
a few percent for most benchmarks, and the curve of the metric to within 20 to 50, mostly too
early: metrics flatten. So the reference decides as long as a run has not trained beyond it; the
curve only where there is no reference, or where that is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import pairwise
from math import exp, inf, log
from statistics import linear_regression

from msgspec import Struct

from mlperf_pkg.commands.watch.progress import Course, Evaluation, Goal

_MS_PER_MINUTE = 60_000
_DEVIATIONS = 2
_RECENT, _FEWEST = 5, 3
_IN_SAMPLES = ("samples", "tokens")
_FARTHEST = 10
"""A curve that needs so many times the training so far tells nothing."""


class Method(StrEnum):
    """What a forecast rests on."""

    REFERENCE = "reference"
    CURVE = "curve"


class Forecast(Struct, frozen=True):
    """The expected minutes from ``run_start`` to ``run_stop``, and between which they may lie.

    By the reference: its mean, and to either side two standard deviations of its runs and the
    interval of evaluations (before the second one, the training so far). By the curve: the last
    evaluations go on as a line over the logarithm of the training, or at the earliest as a
    straight one; ``high`` is None, as nothing bounds it. Never earlier than the next evaluation.
    """

    minutes: float
    low: float
    high: float | None
    method: Method


def forecast(course: Course, goal: Goal) -> Forecast | None:
    """When the run should end; None where that cannot be told (yet), or the target is met."""
    pace, last, start = _pace(course), course.latest, course.start_ms
    if pace is None or last is None or start is None or goal.met(last.values):
        return None
    if not _counted(course, last, goal):
        return None
    found = _by_reference(course, last, goal) or _by_curve(course.evaluations, goal)
    if found is None:
        return None
    upcoming = last.position + course.interval

    def ends(position: float) -> float:
        left = max(position, upcoming) - last.position
        return (last.time_ms + left * pace - start) / _MS_PER_MINUTE

    method, expected, low, high = found
    return Forecast(ends(expected), ends(low), None if high is None else ends(high), method)


def _pace(course: Course) -> float | None:
    """Milliseconds that one unit of training takes, with its evaluations; None if unknown."""
    last = course.latest
    if course.start_ms is None or last is None:
        return None
    time_ms, trained = last.time_ms - course.start_ms, last.position
    if len(course.evaluations) > 1:
        first = course.evaluations[0]
        time_ms, trained = last.time_ms - first.time_ms, last.position - first.position
    return time_ms / trained if time_ms > 0 and trained > 0 else None


def _counted(course: Course, last: Evaluation, goal: Goal) -> bool:
    """Whether positions count training; some logs of BERT repeat one epoch in place of samples."""
    positions = [each.position for each in course.evaluations]
    rising = all(one < other for one, other in pairwise(positions))
    return rising and (goal.unit not in _IN_SAMPLES or last.position >= (course.batch_size or 0))


_Found = tuple[Method, float, float, float | None]
"""By what, and the position that is expected, the nearest and the farthest."""


def _by_reference(course: Course, last: Evaluation, goal: Goal) -> _Found | None:
    point = goal.reference
    if point is None or point.mean <= last.position:
        return None
    spread = _DEVIATIONS * point.stdev + (course.interval or last.position)
    return Method.REFERENCE, point.mean, point.mean - spread, point.mean + spread


def _by_curve(evaluations: Sequence[Evaluation], goal: Goal) -> _Found | None:
    """The metric that is the last to reach its bound decides."""
    recent = evaluations[-_RECENT:]
    if len(recent) < _FEWEST or recent[0].position <= 0:
        return None
    names = [n for n in goal.bounds if n in recent[-1].values]
    needed = [n for n in names if goal.limit(n, recent[-1].values[n]) is not None]
    if not needed:
        return None
    bent = max(_reached(recent, goal, name, log, _exp) for name in needed)
    straight = max(_reached(recent, goal, name, float, float) for name in needed)
    if max(bent, straight) > _FARTHEST * recent[-1].position:
        return None
    return Method.CURVE, bent, min(bent, straight), None


def _exp(power: float) -> float:
    try:
        return exp(power)
    except OverflowError:
        return inf


def _reached(
    recent: Sequence[Evaluation],
    goal: Goal,
    name: str,
    scale: Callable[[float], float],
    back: Callable[[float], float],
) -> float:
    """The position at which a line through the values reaches the bound; infinite if it never."""
    known = [each for each in recent if name in each.values]
    last = known[-1]
    limit = goal.limit(name, last.values[name])
    if limit is None or len(known) < _FEWEST:
        return inf
    line = linear_regression(
        [scale(each.position) for each in known], [each.values[name] for each in known]
    )
    if line.slope == 0 or (limit - last.values[name]) / line.slope <= 0:
        return inf
    return back(scale(last.position) + (limit - last.values[name]) / line.slope)
