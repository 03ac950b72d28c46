"""When a run converges, what it logs, in order, and how its records spread over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil, exp
from operator import itemgetter
from random import Random

from msgspec import Struct, field

from mlperf_pkg.simulate.hyperparameters import metadata_of
from mlperf_pkg.simulate.recipe import EpochRecords, Value
from mlperf_pkg.simulate.setup import Setup

# ---- when a run converges ------------------------------------------------------------------

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
    """Return each metric at ``progress``: 1 is where the target is due."""
    metrics = {}
    for name, track in setup.tracks.items():
        gap = _remaining(progress, setup.outcome.gap, rng)
        metrics[name] = round(track.target + gap * (track.untrained - track.target), _DECIMALS)
    return metrics


def _remaining(progress: float, least: float, rng: Random) -> float:
    """Return the part of the way to the target that remains, negative where it is overshot."""
    if progress >= 1 and not least:
        return -rng.uniform(*_OVERSHOOT)
    saturation = (exp(-_STEEPNESS * progress) - exp(-_STEEPNESS)) / (1 - exp(-_STEEPNESS))
    return max(saturation, least, _LEAST_GAP) * rng.uniform(1 - _NOISE, 1 + _NOISE)


# ---- what it logs --------------------------------------------------------------------------

_EVALUATION = 0.02
"""Time that an evaluation takes, relative to the training since the one before."""

_STAGING = 0.01
"""Time that the copying of data takes, relative to the training up to the last evaluation."""

_JITTER = 0.02


class Event(Struct, frozen=True):
    """One record to log, and the time since the one before it, in any unit of its phase."""

    key: str
    value: Value = None
    metadata: Mapping[str, Value] = field(default_factory=dict)
    after: float = 0.0


def initialisation(setup: Setup, seed: int, rng: Random) -> Iterator[Event]:
    """Yield everything before the clock starts: who submits what, then up to ``init_stop``."""
    yield from _identity(setup)
    yield Event("init_start")
    for key, value in setup.settings.items():
        yield Event(key, value, metadata_of(setup.rules.get(key)), after=rng.random())
    yield Event("seed", seed, after=rng.random())
    for tensor in _tensors(setup):
        yield Event("weights_initialization", metadata={"tensor": tensor}, after=rng.random())
    yield Event("cache_clear", True, after=rng.random())
    yield Event("init_stop", after=rng.random())


def training(setup: Setup, course: Course, rng: Random) -> Iterator[Event]:
    """Yield the timed part, from ``run_start`` to ``run_stop``."""
    yield Event("run_start")
    if "staging_start" in setup.demanded:
        yield Event("staging_start")
        yield Event("staging_stop", after=_STAGING * course.upcoming)
    last: float = 0
    for position, metrics in course.evaluations:
        yield from _block(setup, last, position, metrics, rng)
        last = position
    if course.overrun:
        yield from _unfinished(setup, last, course.upcoming)
    if setup.outcome.status:
        yield Event("run_stop", metadata={"status": setup.outcome.status}, after=course.overrun)


def spread(events: Iterable[Event], start_ms: int, duration_ms: int) -> list[tuple[int, Event]]:
    """Return the events of a phase with their times, over exactly ``duration_ms``."""
    phase = list(events)
    elapsed = list(accumulate(event.after for event in phase))
    scale = duration_ms / elapsed[-1]
    times = (start_ms + round(scale * moment) for moment in elapsed)
    return list(zip(times, phase, strict=True))


def with_statistics(
    timed: list[tuple[int, Event]], count: int, rng: Random
) -> list[tuple[int, Event]]:
    """Return the training with ``count`` records of its statistics in between.

    No rule asks for them. They make logs as large as real ones, which consist mostly of them.
    """
    (start, _), (stop, _) = timed[0], timed[-1]
    statistics = [
        (start + (stop - start) * step // (count + 1), Event("tracked_stats", *_tracked(step, rng)))
        for step in range(1, count + 1)
    ]
    return sorted([*timed, *statistics], key=itemgetter(0))


def _tracked(step: int, rng: Random) -> tuple[Value, dict[str, Value]]:
    """Return value and metadata that the callback of a framework logs after a step."""
    throughput, loss = 1000 * _jitter(rng), 10 / step**0.5 * _jitter(rng)
    return {"throughput": round(throughput, 3), "train_loss": round(loss, 6)}, {"step": step}


def _identity(setup: Setup) -> Iterator[Event]:
    yield Event("submission_benchmark", setup.benchmark.name)
    yield Event("submission_division", setup.plan.division)
    yield Event("submission_org", setup.plan.organization)
    yield Event("submission_platform", setup.plan.system)
    if "submission_status" in setup.demanded:
        yield Event("submission_status", "onprem")


def _tensors(setup: Setup) -> Sequence[str]:
    key_rules = setup.rules.get("weights_initialization")
    return (key_rules.rules[0].rule.tensors or ()) if key_rules else ()


def _block(
    setup: Setup, last: float, position: float, metrics: Mapping[str, float], rng: Random
) -> Iterator[Event]:
    """Yield the training between two evaluations, then the second of them."""
    epochs, units = epochs_between(setup, last, position), position - last
    durations = [units * _jitter(rng) / len(epochs) for _ in epochs]
    yield Event("block_start", metadata=_block_start(setup, last, position))
    for epoch, duration in zip(epochs, durations, strict=True):
        yield Event("epoch_start", metadata={"epoch_num": epoch})
        for key, value in setup.recipe.in_each_epoch.items():
            yield Event(key, value, {"epoch_num": epoch})
        yield Event("epoch_stop", metadata={"epoch_num": epoch}, after=duration)
    metadata = {setup.position: position}
    yield Event("eval_start", metadata=metadata, after=0 if durations else units * _jitter(rng))
    yield from _results(setup, position, metrics, after=units * _EVALUATION)
    yield Event("eval_stop", metadata=metadata)
    yield Event("block_stop", metadata=_block_stop(setup, last, position))


def _jitter(rng: Random) -> float:
    return rng.uniform(1 - _JITTER, 1 + _JITTER)


def _results(
    setup: Setup, position: float, metrics: Mapping[str, float], after: float
) -> Iterator[Event]:
    """Yield the records of an evaluation: one of each metric that is joined later, else of all."""
    joined = setup.benchmark.joined
    for key in setup.metrics:
        names = (setup.position, *metadata_of(setup.demanded.get(key)))
        metadata = dict.fromkeys(names, position)
        if joined:
            for name, value in metrics.items():
                yield Event(key, value, {**metadata, joined.name: name}, after / len(metrics))
        else:
            yield Event(key, metrics.get("", metrics), metadata, after / len(setup.metrics))


def _unfinished(setup: Setup, last: float, position: float) -> Iterator[Event]:
    """Yield the beginning of training that does not end."""
    yield Event("block_start", metadata=_block_start(setup, last, position))
    for epoch in epochs_between(setup, last, position)[:1]:
        yield Event("epoch_start", metadata={"epoch_num": epoch})


def _block_start(setup: Setup, last: float, position: float) -> dict[str, Value]:
    if setup.position != "epoch_num":
        return {setup.position: last}
    count = len(epochs_between(setup, last, position)) or max(1, round(position - last))
    return {**_block_stop(setup, last, position), "epoch_count": count}


def _block_stop(setup: Setup, last: float, position: float) -> dict[str, Value]:
    if setup.position != "epoch_num":
        return {setup.position: position}
    return {"first_epoch_num": next(iter(epochs_between(setup, last, position)), last)}
