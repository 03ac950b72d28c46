"""Simulate one run, the runs of a result set, or the logs of a run's power meters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from random import Random
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.simulate.plan import RunPlan, require_positive
from mlperf_pkg.simulate.setup import Setup, resolve
from mlperf_pkg.simulate.timeline import (
    Event,
    converged_at,
    draw_course,
    initialisation,
    spread,
    training,
    with_statistics,
)

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
    rng = _dice(seed)
    course = draw_course(setup, rng)
    init_ms = rng.randint(*_INIT_MS)
    run_ms = round(setup.minutes * _MS_PER_MINUTE * course.share)
    timed = spread(training(setup, course, rng), setup.start_ms + init_ms, run_ms)
    timeline = [
        *spread(initialisation(setup, seed, rng), setup.start_ms, init_ms),
        *with_statistics(timed, setup.plan.statistics, rng),
    ]
    start_ms = next(time_ms for time_ms, event in timeline if event.key == "run_start")
    return SimulatedRun(write(timeline, setup.outcome.written), start_ms, timeline[-1][0])


def _dice(seed: int | str) -> Random:
    return Random(seed)  # noqa: S311 - a simulation, not a secret


# ---- lines, as the official logger writes them ----------------------------------------------

_CALLER = {"file": "simulate/writer.py", "lineno": 52}
"""The place in the code that each record names. It stays the same, so that the same seed gives the
same bytes in later versions too."""

_TYPES = {"_start": "INTERVAL_START", "_stop": "INTERVAL_END"}
_MARK = TOKEN.decode()
_ENCODE = json.JSONEncoder().encode


def write(timeline: Iterable[tuple[int, Event]], written: float = 1.0) -> bytes:
    """Return the log of these events at these times, in milliseconds since the epoch.

    Not through the official logger: for every record it walks the stack to look up its caller and
    creates a JSON encoder, which takes nearly all the time of a simulation.
    ``tests/simulate/test_writer.py`` compares the lines. Where ``written`` is less than 1, return
    that part of the records, and half of the next one.

    Raises:
        TypeError: JSON cannot hold a value.
    """
    lines = [_line(time_ms, event) for time_ms, event in timeline]
    whole = int(len(lines) * written)
    cut = "".join(line[: len(line) // 2] for line in lines[whole : whole + 1])
    return ("".join(lines[:whole]) + cut).encode("ascii")


def _line(time_ms: int, event: Event) -> str:
    from mlperf_logging.mllog import constants

    suffix = event.key[event.key.rfind("_") :]
    record = {
        "namespace": constants.DEFAULT_NAMESPACE,
        "time_ms": time_ms,
        "event_type": getattr(constants, _TYPES.get(suffix, "POINT_IN_TIME")),
        "key": event.key,
        "value": event.value,
        "metadata": {**_CALLER, **event.metadata},
    }
    return f"{_MARK}{_ENCODE(record)}\n"


# ---- power (power_measurement.adoc) --------------------------------------------------------

_HOST_WATTS, _ACCELERATOR_WATTS, _SWITCH_WATTS = 1500.0, 700.0, 900.0
_NOISE = 0.05
_EFFICIENCY = 0.96
_SAMPLE_MS = 1000
_LEAST_SAMPLES = 60

Timeline = Iterator[tuple[int, Event]]


def simulate_power(
    plan: RunPlan, seed: int, start_ms: int, stop_ms: int, *, nodes: int, switches: int
) -> dict[str, bytes]:
    """Return the power logs of one run, by file name: ``node_0.txt``, ``sw_0.txt`` and so on.

    They belong beside ``result_<i>.txt`` in ``power/result_<i>/``. Times are those of the run's
    start and stop in milliseconds since the epoch. A node, which has its share of the plan's
    accelerators, logs its power in watts at least once a second and 60 times; a switch logs an
    estimate.

    Raises:
        UserError: the number of nodes is not positive, that of switches is negative, or the run
            does not take any time.
    """
    require_positive("nodes", nodes)
    require_positive("stop_ms - start_ms", stop_ms - start_ms)
    if switches < 0:
        raise UserError(f"switches must not be negative, not {switches}")
    watts = _HOST_WATTS + _ACCELERATOR_WATTS * plan.accelerators / nodes
    timelines = {
        f"node_{number}": _readings(watts, start_ms, stop_ms, _dice(f"{seed}/node_{number}"))
        for number in range(nodes)
    } | {
        f"sw_{number}": _estimate(start_ms, _dice(f"{seed}/sw_{number}"))
        for number in range(switches)
    }
    return {
        f"{name}.txt": write(_measured(timeline, start_ms, stop_ms))
        for name, timeline in timelines.items()
    }


def _measured(timeline: Timeline, start_ms: int, stop_ms: int) -> Timeline:
    yield start_ms, Event("power_measurement_start")
    yield start_ms, Event("conversion_eff", _EFFICIENCY, {"measurement_type": "AC"})
    yield from timeline
    yield stop_ms, Event("power_measurement_stop")


def _readings(watts: float, start_ms: int, stop_ms: int, rng: Random) -> Timeline:
    length = stop_ms - start_ms
    count = max(_LEAST_SAMPLES, ceil(length / _SAMPLE_MS))
    for number in range(1, count + 1):
        yield start_ms + length * number // count, Event("power_reading", _noisy(watts, rng))


def _estimate(start_ms: int, rng: Random) -> Timeline:
    yield start_ms, Event("interconnect_power_est", _noisy(_SWITCH_WATTS, rng))


def _noisy(watts: float, rng: Random) -> float:
    return round(watts * rng.uniform(1 - _NOISE, 1 + _NOISE), 1)
