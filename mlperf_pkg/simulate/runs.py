"""The records of a run over time; the runs of a result set, and the logs of power meters."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import ceil, exp
from operator import itemgetter
from random import Random
from statistics import fmean

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.simulate.plan import RunPlan, Setup, Value, metadata_of, require_positive, resolve

# ---- when a run converges ------------------------------------------------------------------

_STEEPNESS = 4.0
_LEAST_GAP = 1e-3
_OVERSHOOT = (2e-4, 2e-3)
_NOISE = 0.05
_DECIMALS = 5
"""Few enough to hide the arithmetic of the platform."""

_EARLY = 1e-6
"""The part of an interval by which an evaluation may come early: arithmetic is not exact."""


class RunCourse(Struct, frozen=True):
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
    default = "each" if setup.benchmark.unit == "epochs" else "none"
    records = setup.recipe.epoch_records or default
    if records == "each":
        return range(int(after) + 1, int(until) + 1)
    if records == "whole":
        return (until,)
    return ()


def draw_course(setup: Setup, rng: Random) -> RunCourse:
    """Return the course of a run; the first number drawn is that of ``_evaluations``."""
    due = _evaluations(setup, rng)
    goal = _grid(setup, due)
    count = ceil(due * setup.outcome.length)
    positions = [_grid(setup, number) for number in range(1, count + 1)]
    evaluations = [(position, _metrics(setup, position / goal, rng)) for position in positions]
    last = positions[-1] if positions else 0
    upcoming = _grid(setup, count + 1)
    overrun = 0.0
    if setup.outcome.interrupted:
        epochs = epochs_between(setup, last, upcoming)
        overrun = (upcoming - last) / max(1, len(epochs)) / 2
    share = (last + overrun) / goal
    return RunCourse(tuple(evaluations), upcoming, overrun, share)


def _evaluations(setup: Setup, rng: Random) -> int:
    """Return the number of evaluations that a run takes to reach the target.

    It is drawn from the runs of the reference. Those faster than its mean are mirrored to be as
    much slower, and all are postponed to the next evaluation, so that any of them passes the RCP
    test with a normalization of 1.
    """
    drawn = rng.choice(setup.point.to_converge)
    slower = max(drawn, 2 * setup.point.mean - drawn)
    first = _grid(setup, 1)
    every = _grid(setup, 2) - _grid(setup, 1)
    return 1 + max(0, ceil((slower - first) / every - _EARLY))


def _grid(setup: Setup, number: int) -> float:
    """Return the position of an evaluation; the first has the number 1."""
    first, every = setup.schedule
    return round(first + (number - 1) * every, _DECIMALS)


def _metrics(setup: Setup, progress: float, rng: Random) -> dict[str, float]:
    """Return each metric at ``progress``: 1 is where the target is due."""
    metrics = {}
    least = setup.outcome.gap
    end = exp(-_STEEPNESS)
    saturation = (exp(-_STEEPNESS * progress) - end) / (1 - end)
    for name, (untrained, target) in setup.tracks.items():
        if progress >= 1 and not least:
            gap = -rng.uniform(*_OVERSHOOT)
        else:  # the part of the way to the target that remains
            gap = max(saturation, least, _LEAST_GAP)
            gap *= rng.uniform(1 - _NOISE, 1 + _NOISE)
        metrics[name] = round(target + gap * (untrained - target), _DECIMALS)
    return metrics


# ---- what it logs --------------------------------------------------------------------------

_EVALUATION = 0.02
"""Time that an evaluation takes, relative to the training since the one before."""

_STAGING = 0.01
"""Time that the copying of data takes, relative to the training up to the last evaluation."""

_JITTER = 0.02


class LogEvent(Struct, frozen=True):
    """One record to log, and the time since the one before it, in any unit of its phase."""

    key: str
    value: Value = None
    metadata: Mapping[str, Value] = field(default_factory=dict)
    after: float = 0.0


def initialisation(setup: Setup, seed: int, rng: Random) -> Iterator[LogEvent]:
    """Yield everything before the clock starts: who submits what, then up to ``init_stop``."""
    yield LogEvent("submission_benchmark", setup.benchmark.name)
    yield LogEvent("submission_division", setup.plan.division)
    yield LogEvent("submission_org", setup.plan.organization)
    yield LogEvent("submission_platform", setup.plan.system)
    if "submission_status" in setup.demanded:
        yield LogEvent("submission_status", "onprem")
    yield LogEvent("init_start")
    for key, value in setup.settings.items():
        metadata = metadata_of(setup.rules.get(key))
        yield LogEvent(key, value, metadata, after=rng.random())
    yield LogEvent("seed", seed, after=rng.random())
    for tensor in _tensors(setup):
        yield LogEvent("weights_initialization", metadata={"tensor": tensor}, after=rng.random())
    yield LogEvent("cache_clear", True, after=rng.random())
    yield LogEvent("init_stop", after=rng.random())


def _tensors(setup: Setup) -> tuple[str, ...]:
    """Return the tensors that a run must list as it initialises them."""
    weights = setup.rules.get("weights_initialization")
    if weights is None:
        return ()
    return weights.rules[0].rule.tensors or ()


def training(setup: Setup, course: RunCourse, rng: Random) -> Iterator[LogEvent]:
    """Yield the timed part, from ``run_start`` to ``run_stop``."""
    yield LogEvent("run_start")
    if "staging_start" in setup.demanded:
        yield LogEvent("staging_start")
        yield LogEvent("staging_stop", after=_STAGING * course.upcoming)
    last: float = 0
    for position, metrics in course.evaluations:
        yield from _block(setup, last, position, metrics, rng)
        last = position
    if course.overrun:  # the beginning of training that does not end
        yield LogEvent("block_start", metadata=_block_start(setup, last, course.upcoming))
        for epoch in epochs_between(setup, last, course.upcoming)[:1]:
            yield LogEvent("epoch_start", metadata={"epoch_num": epoch})
    if setup.outcome.status:
        yield LogEvent("run_stop", metadata={"status": setup.outcome.status}, after=course.overrun)


def spread(
    events: Iterable[LogEvent], start_ms: int, duration_ms: int
) -> list[tuple[int, LogEvent]]:
    """Return the events of a phase with their times, over exactly ``duration_ms``."""
    phase = list(events)
    elapsed = list(accumulate(event.after for event in phase))
    scale = duration_ms / elapsed[-1]
    times = (start_ms + round(scale * moment) for moment in elapsed)
    return list(zip(times, phase, strict=True))


def with_statistics(
    timed: list[tuple[int, LogEvent]], count: int, rng: Random
) -> list[tuple[int, LogEvent]]:
    """Return the training with ``count`` records of its statistics in between.

    No rule asks for them. They make logs as large as real ones, which consist mostly of them.
    """
    start, _ = timed[0]
    stop, _ = timed[-1]
    statistics = []
    for step in range(1, count + 1):
        throughput = 1000 * _jitter(rng)
        loss = 10 / step**0.5 * _jitter(rng)
        value = {"throughput": round(throughput, 3), "train_loss": round(loss, 6)}
        event = LogEvent("tracked_stats", value, {"step": step})
        time_ms = start + (stop - start) * step // (count + 1)
        statistics.append((time_ms, event))
    return sorted([*timed, *statistics], key=itemgetter(0))


def _block(
    setup: Setup, last: float, position: float, metrics: Mapping[str, float], rng: Random
) -> Iterator[LogEvent]:
    """Yield the training between two evaluations, then the second of them."""
    epochs = epochs_between(setup, last, position)
    units = position - last
    durations = [units * _jitter(rng) / len(epochs) for _ in epochs]
    yield LogEvent("block_start", metadata=_block_start(setup, last, position))
    for epoch, duration in zip(epochs, durations, strict=True):
        yield LogEvent("epoch_start", metadata={"epoch_num": epoch})
        for key, value in setup.recipe.in_each_epoch.items():
            yield LogEvent(key, value, {"epoch_num": epoch})
        yield LogEvent("epoch_stop", metadata={"epoch_num": epoch}, after=duration)
    metadata = {setup.benchmark.counted_by: position}
    untimed = 0 if epochs else units * _jitter(rng)
    yield LogEvent("eval_start", metadata=metadata, after=untimed)
    yield from _results(setup, position, metrics, after=units * _EVALUATION)
    yield LogEvent("eval_stop", metadata=metadata)
    yield LogEvent("block_stop", metadata=_block_stop(setup, last, position))


def _jitter(rng: Random) -> float:
    return rng.uniform(1 - _JITTER, 1 + _JITTER)


def _results(
    setup: Setup, position: float, metrics: Mapping[str, float], after: float
) -> Iterator[LogEvent]:
    """Yield the records of an evaluation: one of each metric that is joined later, else of all."""
    joined = setup.benchmark.joined
    for key in setup.metrics:
        needed = metadata_of(setup.demanded.get(key))
        metadata = dict.fromkeys([setup.benchmark.counted_by, *needed], position)
        if joined is None:
            all_metrics = metrics.get("", metrics)
            yield LogEvent(key, all_metrics, metadata, after / len(setup.metrics))
            continue
        for name, value in metrics.items():
            named = {**metadata, joined.name: name}
            yield LogEvent(key, value, named, after / len(metrics))


def _block_start(setup: Setup, last: float, position: float) -> dict[str, Value]:
    if setup.benchmark.counted_by != "epoch_num":
        return {setup.benchmark.counted_by: last}
    count = len(epochs_between(setup, last, position))
    if not count:
        count = max(1, round(position - last))
    return {**_block_stop(setup, last, position), "epoch_count": count}


def _block_stop(setup: Setup, last: float, position: float) -> dict[str, Value]:
    if setup.benchmark.counted_by != "epoch_num":
        return {setup.benchmark.counted_by: position}
    epochs = epochs_between(setup, last, position)
    return {"first_epoch_num": epochs[0] if epochs else last}


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
        UserError: as ``resolve``.
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
    setup = resolve(plan)
    dice = _dice(seed)
    count = runs or setup.benchmark.runs.required
    seeds = dice.sample(range(1, 2**31), count)
    if len(failures) > len(seeds):
        raise UserError(f"{len(failures)} failures; expected at most {len(seeds)}, one per run")
    lengths = [_length(setup, run_seed) * dice.uniform(*_PACE) for run_seed in seeds]
    mean = fmean(lengths)
    simulated: list[SimulatedRun] = []
    start_ms = setup.start_ms
    for index, run_setup in enumerate(_setups(setup, count, failures)):
        minutes = setup.minutes * lengths[index] / mean
        run = _simulated(replace(run_setup, minutes=minutes, start_ms=start_ms), seeds[index])
        simulated.append(run)
        start_ms = run.stop_ms + dice.randint(*_PAUSE_MS)
    return simulated


def _setups(setup: Setup, count: int, failures: Sequence[str]) -> list[Setup]:
    """Return the setup of each run of a set, of which the last ones fail."""
    failing = [resolve(replace(setup.plan, failure=name)) for name in failures]
    return [setup] * (count - len(failing)) + failing


def _length(setup: Setup, seed: int) -> float:
    """Return how far the run with a seed trains until it reaches the target."""
    return _grid(setup, _evaluations(setup, _dice(seed)))


def _simulated(setup: Setup, seed: int) -> SimulatedRun:
    rng = _dice(seed)
    course = draw_course(setup, rng)
    init_ms = rng.randint(*_INIT_MS)
    start_ms = setup.start_ms + init_ms
    run_ms = round(setup.minutes * _MS_PER_MINUTE * course.share)
    trained = spread(training(setup, course, rng), start_ms, run_ms)
    initialised = spread(initialisation(setup, seed, rng), setup.start_ms, init_ms)
    timeline = [*initialised, *with_statistics(trained, setup.plan.statistics, rng)]
    stop_ms, _ = timeline[-1]
    return SimulatedRun(write(timeline, setup.outcome.written), start_ms, stop_ms)


def _dice(seed: int | str) -> Random:
    return Random(seed)  # noqa: S311 - a simulation, not a secret


# ---- lines, as the official logger writes them ----------------------------------------------

_CALLER = {"file": "simulate/writer.py", "lineno": 52}
"""The place in the code that each record names. It stays the same, so that the same seed gives the
same bytes in later versions too."""

_TYPES = {"_start": "INTERVAL_START", "_stop": "INTERVAL_END"}
_MARK = TOKEN.decode()
_ENCODE = json.JSONEncoder().encode


def write(timeline: Iterable[tuple[int, LogEvent]], written: float = 1.0) -> bytes:
    """Return the log of these events at these times, in milliseconds since the epoch.

    Not through the official logger: for every record it walks the stack to look up its caller and
    creates a JSON encoder, which takes nearly all the time of a simulation.
    ``tests/simulate/test_simulate.py`` compares the lines. Where ``written`` is less than 1, return
    that part of the records, and half of the next one.

    Raises:
        TypeError: JSON cannot hold a value.
    """
    lines = [_line(time_ms, event) for time_ms, event in timeline]
    whole = int(len(lines) * written)
    if whole < len(lines):
        cut = lines[whole]
        lines[whole:] = [cut[: len(cut) // 2]]
    return "".join(lines).encode("ascii")


def _line(time_ms: int, event: LogEvent) -> str:
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

_HOST_WATTS = 1500.0
_ACCELERATOR_WATTS = 700.0
_SWITCH_WATTS = 900.0
_POWER_NOISE = (1 - 0.05, 1 + 0.05)
_EFFICIENCY = 0.96
_SAMPLE_MS = 1000
_LEAST_SAMPLES = 60


def simulate_power(plan: RunPlan, seed: int, start_ms: int, stop_ms: int) -> dict[str, bytes]:
    """Return the power logs of one run, by file name: ``node_0.txt``, ``sw_0.txt`` and so on.

    They belong beside ``result_<i>.txt`` in ``power/result_<i>/``. Times are those of the run's
    start and stop in milliseconds since the epoch. A node logs its power in watts at least once a
    second and 60 times; the switch between several nodes logs an estimate.
    """
    length = stop_ms - start_ms
    count = max(_LEAST_SAMPLES, ceil(length / _SAMPLE_MS))
    times = [start_ms + length * number // count for number in range(1, count + 1)]
    watts = _HOST_WATTS + _ACCELERATOR_WATTS * plan.accelerators_per_node
    logs = {}
    for number in range(plan.nodes):
        name = f"node_{number}"
        samples = _samples(f"{seed}/{name}", "power_reading", watts, times)
        logs[f"{name}.txt"] = _power_log(samples, start_ms, stop_ms)
    if plan.nodes > 1:
        samples = _samples(f"{seed}/sw_0", "interconnect_power_est", _SWITCH_WATTS, [start_ms])
        logs["sw_0.txt"] = _power_log(samples, start_ms, stop_ms)
    return logs


def _samples(seed: str, key: str, watts: float, times: Sequence[int]) -> list[tuple[int, LogEvent]]:
    """Return measurements at some times, around a number of watts."""
    dice = _dice(seed)
    return [
        (time_ms, LogEvent(key, round(watts * dice.uniform(*_POWER_NOISE), 1))) for time_ms in times
    ]


def _power_log(samples: list[tuple[int, LogEvent]], start_ms: int, stop_ms: int) -> bytes:
    efficiency = LogEvent("conversion_eff", _EFFICIENCY, {"measurement_type": "AC"})
    timeline = [
        (start_ms, LogEvent("power_measurement_start")),
        (start_ms, efficiency),
        *samples,
        (stop_ms, LogEvent("power_measurement_stop")),
    ]
    return write(timeline)
