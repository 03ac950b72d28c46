"""Simulate one run, or the runs of a result set."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.simulate.convergence import converged_at, draw_course
from mlperf_pkg.simulate.plan import RunPlan, require_positive
from mlperf_pkg.simulate.setup import Setup, resolve
from mlperf_pkg.simulate.timeline import (
    Event,
    initialisation,
    spread,
    training,
    with_statistics,
)
from mlperf_pkg.simulate.writer import write

_MS_PER_MINUTE = 60_000
_INIT_MS = (60_000, 300_000)
_PAUSE_MS = (60_000, 300_000)
_PACE = (0.995, 1.005)


class SimulatedRun(Struct, frozen=True):
    """One run: its log, and when it started and ended, in milliseconds since the epoch."""

    log: bytes
    start_ms: int
    stop_ms: int


def simulate_run(plan: RunPlan, seed: int) -> bytes:
    """Return the log of one run: the same bytes for the same plan and seed, on any machine.

    ``seed`` is logged as the run's own. From ``run_start`` to ``run_stop`` the run takes the
    minutes of the plan, to the millisecond; after a failure it stops early or late, at the same
    pace.

    Raises:
        UserError: as ``setup.resolve``.
    """
    return _simulated(resolve(plan), seed).log


def simulate_set(
    plan: RunPlan, seed: int, runs: int | None = None, failures: Sequence[str] = ()
) -> list[bytes]:
    """Return the logs of ``simulate_runs``."""
    return [run.log for run in simulate_runs(plan, seed, runs, failures)]


def simulate_runs(
    plan: RunPlan, seed: int, runs: int | None = None, failures: Sequence[str] = ()
) -> list[SimulatedRun]:
    """Return the runs of a result set, one after the other, each with a seed of its own.

    The minutes of the plan are the mean of the runs if none fails: a run takes longer or shorter
    as it needs more or fewer epochs, at a pace that differs by at most half a percent. ``runs`` is
    by default the number that the rules require. The last runs fail, one in each way of
    ``failures``; where the plan names a failure, all do.

    Raises:
        UserError: as ``simulate_run``; ``runs`` is not positive or less than the failures.
    """
    require_positive("runs", runs)
    setup, rng = resolve(plan), _dice(seed)
    seeds = rng.sample(range(1, 2**31), runs or setup.benchmark.runs.required)
    if len(failures) > len(seeds):
        raise UserError(f"{len(failures)} runs cannot fail where there are {len(seeds)}")
    lengths = [converged_at(setup, _dice(run_seed)) * rng.uniform(*_PACE) for run_seed in seeds]
    failing = [resolve(replace(plan, failure=name)) for name in failures]
    setups = [setup] * (len(seeds) - len(failing)) + failing
    simulated, start_ms = list[SimulatedRun](), setup.start_ms
    for run_setup, run_seed, length in zip(setups, seeds, lengths, strict=True):
        minutes = setup.minutes * length / fmean(lengths)
        run = _simulated(replace(run_setup, minutes=minutes, start_ms=start_ms), run_seed)
        simulated.append(run)
        start_ms = run.stop_ms + rng.randint(*_PAUSE_MS)
    return simulated


def _simulated(setup: Setup, seed: int) -> SimulatedRun:
    timeline = _timeline(setup, seed)
    start_ms = next(time_ms for time_ms, event in timeline if event.key == "run_start")
    log = write(timeline, setup.outcome.written)
    return SimulatedRun(log, start_ms, timeline[-1][0])


def _timeline(setup: Setup, seed: int) -> list[tuple[int, Event]]:
    """Return every record of a run with its time in milliseconds since the epoch."""
    rng = _dice(seed)
    course = draw_course(setup, rng)
    init_ms = rng.randint(*_INIT_MS)
    run_ms = round(setup.minutes * _MS_PER_MINUTE * course.share)
    timed = spread(training(setup, course, rng), setup.start_ms + init_ms, run_ms)
    return [
        *spread(initialisation(setup, seed, rng), setup.start_ms, init_ms),
        *with_statistics(timed, setup.plan.statistics, rng),
    ]


def _dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a simulation, not a secret
