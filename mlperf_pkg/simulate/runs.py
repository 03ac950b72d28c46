"""One run, and the runs of a result set."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import fmean

from mlperf_pkg.simulate.convergence import converged_at, draw_course
from mlperf_pkg.simulate.plan import RunPlan, require_positive
from mlperf_pkg.simulate.setup import Setup, resolve
from mlperf_pkg.simulate.trace import Event, initialisation, place, training
from mlperf_pkg.simulate.writer import write

_MS_PER_MINUTE = 60_000
_INIT_MS = (60_000, 300_000)
_PAUSE_MS = (60_000, 300_000)
_PACE = (0.995, 1.005)


def simulate_run(plan: RunPlan, seed: int) -> bytes:
    """The log of one run: the same bytes for the same plan and seed, wherever it is made.

    ``seed`` is logged as the run's own. From ``run_start`` to ``run_stop`` it takes the minutes
    of the plan, to the millisecond; after a failure it stops early or late, at the same pace.

    Raises:
        UserError: as ``setup.resolve``: the plan asks for what there is not.
    """
    setup = resolve(plan)
    return write(_timeline(setup, seed), setup.outcome.written)


def simulate_set(plan: RunPlan, seed: int, runs: int | None = None) -> list[bytes]:
    """The logs of a result set, one run after the other, each with a seed of its own.

    The minutes of the plan are the mean of the runs (were none to fail): each takes as much longer
    or shorter as it needs more or fewer epochs, at a pace that differs by at most half a percent.
    ``runs`` is by default the number that the rules require.

    Raises:
        UserError: as ``simulate_run``, or ``runs`` is not positive.
    """
    require_positive("runs", runs)
    setup, rng = resolve(plan), _dice(seed)
    seeds = rng.sample(range(1, 2**31), runs or setup.benchmark.runs.required)
    lengths = [converged_at(setup, _dice(each)) * rng.uniform(*_PACE) for each in seeds]
    logs, start_ms = [], setup.start_ms
    for run_seed, length in zip(seeds, lengths, strict=True):
        minutes = setup.minutes * length / fmean(lengths)
        timeline = _timeline(replace(setup, minutes=minutes, start_ms=start_ms), run_seed)
        logs.append(write(timeline, setup.outcome.written))
        start_ms = timeline[-1][0] + rng.randint(*_PAUSE_MS)
    return logs


def _timeline(setup: Setup, seed: int) -> list[tuple[int, Event]]:
    """Every record of a run with its time in milliseconds since the epoch."""
    rng = _dice(seed)
    course = draw_course(setup, rng)
    init_ms = rng.randint(*_INIT_MS)
    run_ms = round(setup.minutes * _MS_PER_MINUTE * course.share)
    return [
        *place(initialisation(setup, seed, rng), setup.start_ms, init_ms),
        *place(training(setup, course, rng), setup.start_ms + init_ms, run_ms),
    ]


def _dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a simulation, not a secret
