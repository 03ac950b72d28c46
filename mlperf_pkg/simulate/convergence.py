"""When a run converges, and the results of its evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, exp
from random import Random

from msgspec import Struct

from mlperf_pkg.simulate.model import EpochRecords
from mlperf_pkg.simulate.setup import Setup, Track

_STEEPNESS = 4.0
_LEAST_GAP = 1e-3
_OVERSHOOT = (2e-4, 2e-3)
_NOISE = 0.05
_DECIMALS = 5
"""Few enough to hide the arithmetic of the platform."""

_EARLY = 1e-6
"""The part of an interval by which an evaluation may come early: arithmetic is not exact."""


class Course(Struct, frozen=True):
    """How far a run trains, and its evaluations.

    ``evaluations`` holds the position of each and its metrics by name, ``upcoming`` the position
    of the next. ``overrun`` is the training after the last evaluation, in the benchmark's unit;
    ``share`` is all training, relative to a run that reaches the target.
    """

    evaluations: tuple[tuple[float, Mapping[str, float]], ...]
    upcoming: float
    overrun: float
    share: float


def epochs_between(setup: Setup, after: float, until: float) -> Sequence[float]:
    """Return the ``epoch_num`` of each epoch that is logged between two evaluations."""
    if setup.epoch_records is EpochRecords.NONE:
        return ()
    whole = setup.epoch_records is EpochRecords.WHOLE
    return (until,) if whole else range(int(after) + 1, int(until) + 1)


def converged_at(setup: Setup, rng: Random) -> float:
    """Return the position at which a run reaches the target, in the benchmark's unit."""
    return _grid(setup, _evaluations(setup, rng))


def draw_course(setup: Setup, rng: Random) -> Course:
    """Return the course of a run; the first number drawn is that of ``converged_at``."""
    due = _evaluations(setup, rng)
    goal = _grid(setup, due)
    count = ceil(due * setup.outcome.length)
    positions = [_grid(setup, number) for number in range(1, count + 1)]
    evaluations = tuple((at, _metrics(setup, at / goal, rng)) for at in positions)
    last, upcoming = (positions[-1] if positions else 0), _grid(setup, count + 1)
    epoch = (upcoming - last) / max(1, len(epochs_between(setup, last, upcoming)))
    overrun = epoch / 2 if setup.outcome.interrupted else 0.0
    return Course(evaluations, upcoming, overrun, share=(last + overrun) / goal)


def _evaluations(setup: Setup, rng: Random) -> int:
    """Return the number of evaluations that a run takes to reach the target.

    It is drawn from the runs of the reference. Those faster than its mean are mirrored to be as
    much slower, and all are postponed to the next evaluation, so that any of them passes the RCP
    test with a normalization of 1.
    """
    drawn = rng.choice(setup.point.to_converge)
    slower = max(drawn, 2 * setup.point.mean - drawn)
    first, every = _grid(setup, 1), _grid(setup, 2) - _grid(setup, 1)
    return 1 + max(0, ceil((slower - first) / every - _EARLY))


def _grid(setup: Setup, number: int) -> float:
    """Return the position of an evaluation; the first has the number 1."""
    return round(setup.schedule.first + (number - 1) * setup.schedule.every, _DECIMALS)


def _metrics(setup: Setup, progress: float, rng: Random) -> dict[str, float]:
    return {name: _metric(setup, track, progress, rng) for name, track in setup.tracks.items()}


def _metric(setup: Setup, track: Track, progress: float, rng: Random) -> float:
    """Return the metric at ``progress``: 1 is where the target is due."""
    gap = _remaining(progress, setup.outcome.gap, rng)
    return round(track.target + gap * (track.untrained - track.target), _DECIMALS)


def _remaining(progress: float, least: float, rng: Random) -> float:
    """Return the part of the way to the target that remains, negative where it is overshot."""
    if progress >= 1 and not least:
        return -rng.uniform(*_OVERSHOOT)
    saturation = (exp(-_STEEPNESS * progress) - exp(-_STEEPNESS)) / (1 - exp(-_STEEPNESS))
    return max(saturation, least, _LEAST_GAP) * rng.uniform(1 - _NOISE, 1 + _NOISE)
