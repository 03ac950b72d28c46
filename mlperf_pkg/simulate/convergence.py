"""When a run converges, and what its evaluations find on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, exp
from random import Random

from msgspec import Struct

from mlperf_pkg.simulate.model import Laps
from mlperf_pkg.simulate.setup import Setup, Track

_STEEPNESS = 4.0
_LEAST_GAP = 1e-3
_OVERSHOOT = (2e-4, 2e-3)
_NOISE = 0.05
_DECIMALS = 5
"""Few enough that no platform's arithmetic shows."""

_EARLY = 1e-6
"""By what part of an interval an evaluation may come early, for want of exact arithmetic."""


class Course(Struct, frozen=True):
    """How far a run trains and what it finds.

    ``evaluations`` holds the position and the metrics, by name, of each one, ``upcoming`` the
    position of the next. ``overrun`` is the training after the last evaluation, in the
    benchmark's unit; ``share`` all of it, relative to a run that reaches the target.
    """

    evaluations: tuple[tuple[float, Mapping[str, float]], ...]
    upcoming: float
    overrun: float
    share: float


def laps(setup: Setup, after: float, until: float) -> Sequence[float]:
    """The ``epoch_num`` of each stretch of training that is logged between two evaluations."""
    each = range(int(after) + 1, int(until) + 1)
    return {Laps.EACH: each, Laps.WHOLE: (until,), Laps.NONE: ()}[setup.recipe.laps]


def converged_at(setup: Setup, rng: Random) -> float:
    """The evaluation at which a run reaches the target, in the benchmark's unit."""
    return _grid(setup, _evaluations(setup, rng))


def draw_course(setup: Setup, rng: Random) -> Course:
    """A run's course; the first draw is that of ``converged_at``."""
    due = _evaluations(setup, rng)
    goal = _grid(setup, due)
    made = ceil(due * setup.outcome.length)
    points = [_grid(setup, number) for number in range(1, made + 1)]
    found = tuple((at, _metrics(setup, at / goal, rng)) for at in points)
    last, upcoming = (points[-1] if points else 0), _grid(setup, made + 1)
    lap = (upcoming - last) / max(1, len(laps(setup, last, upcoming)))
    overrun = lap / 2 if setup.outcome.interrupted else 0.0
    return Course(found, upcoming, overrun, share=(last + overrun) / goal)


def _evaluations(setup: Setup, rng: Random) -> int:
    """How many evaluations it takes a run to reach the target.

    Drawn from the runs of the reference, those faster than its mean mirrored to be as much slower
    and all postponed to the next evaluation: whatever is drawn passes the RCP test, unscaled.
    """
    drawn = rng.choice(setup.point.to_converge)
    slower = max(drawn, 2 * setup.point.mean - drawn)
    first, every = _grid(setup, 1), _grid(setup, 2) - _grid(setup, 1)
    return 1 + max(0, ceil((slower - first) / every - _EARLY))


def _grid(setup: Setup, number: int) -> float:
    """The position of an evaluation, the first being 1.

    A free offset is chosen as submitters do: an evaluation follows at once on the mean at which
    the reference converges.
    """
    recipe, batch_size = setup.recipe, setup.batch_size
    every = recipe.every(batch_size)
    first = recipe.first(batch_size) if recipe.first else every
    if recipe.free_offset:
        first = (ceil(setup.point.mean) - 1) % every + 1
    return round(first + (number - 1) * every, _DECIMALS)


def _metrics(setup: Setup, progress: float, rng: Random) -> dict[str, float]:
    return {name: _metric(setup, track, progress, rng) for name, track in setup.tracks.items()}


def _metric(setup: Setup, track: Track, progress: float, rng: Random) -> float:
    """The metric at ``progress``, which is 1 where the target is due and not before."""
    gap = _remaining(progress, setup.outcome.gap, rng)
    return round(track.target + gap * (track.untrained - track.target), _DECIMALS)


def _remaining(progress: float, least: float, rng: Random) -> float:
    """The part of the way to the target that remains; negative where it is overshot."""
    if progress >= 1 and not least:
        return -rng.uniform(*_OVERSHOOT)
    saturation = (exp(-_STEEPNESS * progress) - exp(-_STEEPNESS)) / (1 - exp(-_STEEPNESS))
    return max(saturation, least, _LEAST_GAP) * rng.uniform(1 - _NOISE, 1 + _NOISE)
