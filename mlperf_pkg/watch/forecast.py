"""When a run should end.

Measured on published logs at half of the run, the reference's convergence tells the end to within
a few percent for most benchmarks, and the curve of the metric to within 20 to 50: metrics rise
late (learning rates that decay) or flatten (losses). So the reference decides as long as a run has
not trained beyond it; the curve only where there is no reference, or where that is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, inf, log
from statistics import linear_regression

from mlperf_pkg.watch.progress import Course, Evaluation, Goal

_MS_PER_MINUTE = 60_000
_DEVIATIONS = 2
_RECENT, _FEWEST = 5, 3
_FARTHEST = 10
"""A curve that needs so many times the training so far tells nothing."""


class Method(StrEnum):
    """What a forecast rests on."""

    REFERENCE = "reference"
    CURVE = "curve"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected minutes from ``run_start`` to ``run_stop``, and between which they may lie.

    By the reference: its mean, and two standard deviations to either side. By the curve: that of
    the last evaluations over the logarithm of the training; the straight line gives the other
    side. Never earlier than the next evaluation.
    """

    minutes: float
    low: float
    high: float
    method: Method


def forecast(course: Course, goal: Goal) -> Forecast | None:
    """When the run should end; None where that cannot be told (yet), or the target is met."""
    pace = _pace(course)
    if pace is None or course.start_ms is None or goal.met(course.evaluations[-1].values):
        return None
    found = _by_reference(course.evaluations, goal) or _by_curve(course.evaluations, goal)
    if found is None:
        return None
    method, positions = found
    last, start = course.evaluations[-1], course.start_ms
    upcoming = last.position + _interval(course.evaluations)
    spent = (max(each, upcoming) - last.position for each in positions)
    minutes, low, high = ((last.time_ms + ms * pace - start) / _MS_PER_MINUTE for ms in spent)
    return Forecast(minutes, low, high, method)


def _pace(course: Course) -> float | None:
    """Milliseconds that one unit of training takes, with its evaluations; None if unknown."""
    if course.start_ms is None or not course.evaluations:
        return None
    first, last = course.evaluations[0], course.evaluations[-1]
    if last is first:
        time_ms, trained = last.time_ms - course.start_ms, last.position
    else:
        time_ms, trained = last.time_ms - first.time_ms, last.position - first.position
    return time_ms / trained if time_ms > 0 and trained > 0 else None


def _interval(evaluations: Sequence[Evaluation]) -> float:
    """The training between the last two evaluations."""
    return evaluations[-1].position - evaluations[-2].position if len(evaluations) > 1 else 0.0


_Found = tuple[Method, tuple[float, float, float]]


def _by_reference(evaluations: Sequence[Evaluation], goal: Goal) -> _Found | None:
    point = goal.reference
    if point is None or point.mean <= evaluations[-1].position:
        return None
    spread = _DEVIATIONS * point.stdev
    return Method.REFERENCE, (point.mean, point.mean - spread, point.mean + spread)


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
    return Method.CURVE, (bent, min(bent, straight), max(bent, straight))


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
