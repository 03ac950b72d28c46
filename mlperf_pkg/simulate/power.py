"""The logs of the power meters of a run (power_measurement.adoc)."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from random import Random

from mlperf_pkg.errors import UserError
from mlperf_pkg.simulate.plan import RunPlan, require_positive
from mlperf_pkg.simulate.timeline import Event
from mlperf_pkg.simulate.writer import write

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
        f"node_{number}": _readings(watts, start_ms, stop_ms, _dice(seed, f"node_{number}"))
        for number in range(nodes)
    } | {
        f"sw_{number}": _estimate(start_ms, _dice(seed, f"sw_{number}"))
        for number in range(switches)
    }
    return {
        f"{name}.txt": write(_measured(timeline, start_ms, stop_ms))
        for name, timeline in timelines.items()
    }


def _dice(seed: int, name: str) -> Random:
    return Random(f"{seed}/{name}")  # noqa: S311 - a simulation, not a secret


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
