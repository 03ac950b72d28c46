"""What a run logs, in order, and how its records spread over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from random import Random

import yaml

from mlperf_pkg.braces import expand_braces
from mlperf_pkg.resources import data_folder
from mlperf_pkg.simulate.convergence import Course
from mlperf_pkg.simulate.model import Benchmark, Value
from mlperf_pkg.simulate.plan import Setup

_EVALUATION = 0.02
"""Time that an evaluation takes, relative to the training since the one before."""

_JITTER = 0.02


@dataclass(frozen=True, slots=True)
class Event:
    """One record to be logged, and the time since the one before, in any unit of its phase."""

    key: str
    value: Value | None = None
    metadata: Mapping[str, Value] = field(default_factory=dict)
    after: float = 0.0


def initialisation(setup: Setup, seed: int, rng: Random) -> Iterator[Event]:
    """Everything before the clock starts, from the submission's identity to ``init_stop``."""
    yield from _identity(setup)
    yield Event("init_start")
    for key, value in setup.settings().items():
        yield Event(key, value, after=rng.random())
    yield Event("seed", seed, after=rng.random())
    for tensor in _tensors(setup.benchmark.name):
        yield Event("weights_initialization", metadata={"tensor": tensor}, after=rng.random())
    yield Event("cache_clear", True, after=rng.random())
    yield Event("init_stop", after=rng.random())


def training(setup: Setup, course: Course, rng: Random) -> Iterator[Event]:
    """The timed part, from ``run_start`` to ``run_stop``."""
    yield Event("run_start")
    last = 0
    for point, metric in course.evaluations:
        yield from _block(setup.benchmark, last, point, metric, rng)
        last = point
    if course.overrun:
        yield from _unfinished(setup.benchmark.laps(last, course.upcoming))
    yield Event("run_stop", metadata={"status": setup.outcome.status}, after=course.overrun)


def place(events: Iterable[Event], start_ms: int, duration_ms: int) -> list[tuple[int, Event]]:
    """Spread a phase over exactly ``duration_ms``: each event with its time in ms."""
    listed = list(events)
    elapsed = list(accumulate(event.after for event in listed))
    scale = duration_ms / elapsed[-1]
    times = (start_ms + round(scale * moment) for moment in elapsed)
    return list(zip(times, listed, strict=True))


def _identity(setup: Setup) -> Iterator[Event]:
    yield Event("submission_benchmark", setup.benchmark.name)
    yield Event("submission_division", setup.plan.division)
    yield Event("submission_org", setup.plan.organization)
    yield Event("submission_platform", setup.plan.system)
    yield Event("submission_status", "onprem")


@cache
def _tensors(name: str) -> tuple[str, ...]:
    patterns = yaml.safe_load((data_folder("rules") / "tensors.yaml").read_text(encoding="utf-8"))
    return tuple(tensor for pattern in patterns[name] for tensor in expand_braces(pattern))


def _block(
    benchmark: Benchmark, last: int, point: int, metric: float, rng: Random
) -> Iterator[Event]:
    """The training between two evaluations, then the second of them."""
    laps, units = benchmark.laps(last, point), point - last
    yield _block_start(laps)
    for lap in laps:
        share = rng.uniform(1 - _JITTER, 1 + _JITTER) / len(laps)
        yield Event("epoch_start", metadata={"epoch_num": lap})
        yield Event("epoch_stop", metadata={"epoch_num": lap}, after=units * share)
    yield Event("eval_start", metadata={"epoch_num": point})
    yield Event("eval_accuracy", metric, metadata={"epoch_num": point}, after=units * _EVALUATION)
    yield Event("eval_stop", metadata={"epoch_num": point})
    yield Event("block_stop", metadata={"first_epoch_num": laps[0]})


def _unfinished(laps: Sequence[int]) -> Iterator[Event]:
    """Training that has begun and does not end."""
    yield _block_start(laps)
    yield Event("epoch_start", metadata={"epoch_num": laps[0]})


def _block_start(laps: Sequence[int]) -> Event:
    metadata: dict[str, Value] = {"first_epoch_num": laps[0], "epoch_count": len(laps)}
    return Event("block_start", metadata=metadata)
