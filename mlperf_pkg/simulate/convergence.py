"""When a run converges, and what its evaluations find on the way."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp
from random import Random

from mlperf_pkg.simulate.plan import Setup

_STEEPNESS = 4.0
_LEAST_GAP = 1e-4
_MOST_OVERSHOOT = 2e-3
_NOISE = 0.05
_DECIMALS = 5
"""Few enough that no platform's arithmetic shows."""


@dataclass(frozen=True, slots=True)
class Course:
    """How far a run trains and what it finds.

    ``evaluations`` holds the ``epoch_num`` and the metric of each one, ``upcoming`` the
    ``epoch_num`` of the next. ``overrun`` is the training after the last evaluation, in the
    benchmark's unit; ``share`` all of it, relative to a run that reaches the target.
    """

    evaluations: tuple[tuple[int, float], ...]
    upcoming: int
    overrun: float
    share: float


def converged_at(setup: Setup, rng: Random) -> int:
    """The evaluation at which a run reaches the target, in the benchmark's unit.

    Drawn from the runs of the reference, those faster than its mean mirrored to be as much slower
    and all postponed to the next evaluation: whatever is drawn passes the RCP test, unscaled.
    """
    drawn = rng.choice(setup.reference.to_converge)
    slower = max(drawn, 2 * setup.reference.mean - drawn)
    first, every = _grid(setup)
    return first + every * max(0, ceil((slower - first) / every))


def draw_course(setup: Setup, rng: Random) -> Course:
    """A run's course; the first draw is that of ``converged_at``."""
    goal = converged_at(setup, rng)
    first, every = _grid(setup)
    made = ceil(((goal - first) // every + 1) * setup.outcome.length)
    points = range(first, first + made * every, every)
    found = tuple((at, _metric(setup, at / goal, rng)) for at in points)
    last, upcoming = (points[-1] if points else 0), first + made * every
    lap = (upcoming - last) / len(setup.benchmark.laps(last, upcoming))
    overrun = lap / 2 if setup.outcome.interrupted else 0.0
    return Course(found, upcoming, overrun, share=(last + overrun) / goal)


def _grid(setup: Setup) -> tuple[int, int]:
    """The first evaluation and the interval between evaluations.

    A free offset is chosen as submitters do: an evaluation follows at once on the mean at which
    the reference converges.
    """
    every = setup.benchmark.evaluate_every(setup.batch_size)
    if not setup.benchmark.free_offset:
        return every, every
    return (ceil(setup.reference.mean) - 1) % every + 1, every


def _metric(setup: Setup, progress: float, rng: Random) -> float:
    """The metric at ``progress``, which is 1 where the target is due and not before."""
    gap = _remaining(progress, setup.outcome.gap, rng)
    untrained, target = setup.benchmark.untrained, setup.benchmark.target
    return round(target + gap * (untrained - target), _DECIMALS)


def _remaining(progress: float, least: float, rng: Random) -> float:
    """The part of the way to the target that remains; negative where it is overshot."""
    if progress >= 1 and not least:
        return -rng.uniform(0, _MOST_OVERSHOOT)
    saturation = (exp(-_STEEPNESS * progress) - exp(-_STEEPNESS)) / (1 - exp(-_STEEPNESS))
    return max(saturation, least, _LEAST_GAP) * rng.uniform(1 - _NOISE, 1 + _NOISE)
