"""Measurements of power, and the energy that the official summarizer makes of them.

Source: mlperf_logging.result_summarizer, _compute_total_power; power_measurement.adoc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import itemgetter, sub
from typing import Any, TypeAlias

from msgspec import Struct

from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import LogReader


class PowerFile(Struct, frozen=True):
    """The power log of one node or, if ``switch``, of the interconnect."""

    source: Source
    switch: bool


class PowerLog(Struct, frozen=True):
    """What one measurement says; times in milliseconds since the epoch, None where absent.

    ``watts`` is the mean power, with the conversion efficiency, that the official summarizer
    multiplies by the time of the run; None where it dies, and ``crash`` tells of what. ``readings``
    counts the samples, ``longest_gap_ms`` is the longest time between two of them. ``estimated``
    says that the log of a switch holds the estimate without which it counts as nothing.
    """

    path: str
    switch: bool
    watts: float | None
    crash: str | None
    start_ms: float | None
    stop_ms: float | None
    readings: int
    longest_gap_ms: float
    estimated: bool


_START, _READING, _STOP = "power_measurement_start", "power_reading", "power_measurement_stop"
_EFFICIENCY, _ESTIMATE = "conversion_eff", "interconnect_power_est"
MAX_BYTES = 128 << 20  # of a measurement, six days of one sample a second


# A record of one of these keys: its number in the log, time in milliseconds, key and value.
_Sample: TypeAlias = tuple[int, float, str, Any]


def read_power_log(file: PowerFile) -> PowerLog:
    """Read one measurement; a file that cannot be opened is one of which the summarizer dies."""
    try:
        samples, crash = _read(file)
    except OSError as error:
        samples, crash = [], f"it cannot be read: {error.strerror}"
    watts = None
    if crash is None:
        watts, crash = _watts(samples, file.switch)
    times = sorted([time for _, time, key, _ in samples if key == _READING])
    starts = [time for _, time, key, _ in samples if key == _START]
    stops = [time for _, time, key, _ in samples if key == _STOP]
    return PowerLog(
        path=file.source.label,
        switch=file.switch,
        watts=watts,
        crash=crash,
        start_ms=min(starts, default=None),
        stop_ms=max(stops or times[-1:], default=None),
        readings=len(times),
        longest_gap_ms=max(map(sub, times[1:], times), default=0.0),
        estimated=any(key == _ESTIMATE for _, _, key, _ in samples),
    )


def _read(file: PowerFile) -> tuple[list[_Sample], str | None]:
    """All that counts, and why the official parser dies, if it does."""
    samples: list[_Sample] = []
    size = 0
    with file.source.open() as stream:
        reader = LogReader(stream, file.source.label, lambda _: None)
        for block in reader.blocks():
            size += len(block.text)
            if size > MAX_BYTES:
                return [], f"it has more than {MAX_BYTES >> 20} MiB, which are not kept"
            samples += _samples(block)
    return samples, reader.crash


def _samples(block: Block) -> list[_Sample]:
    """What counts, in order."""
    found: list[_Sample] = []
    for key in (_START, _READING, _STOP, _EFFICIENCY, _ESTIMATE):
        indexes = block.indexes.get(key)
        if not indexes:
            continue
        numbers = [block.first + index for index in indexes]
        times = map(float, block.times(indexes))
        found += zip(numbers, times, repeat(key), block.values(indexes), strict=False)
    return sorted(found, key=itemgetter(0))


def joules(logs: Iterable[PowerLog], milliseconds: float) -> float:
    """The energy of a run of this length, over all its nodes and switches that can be read."""
    return sum(log.watts for log in logs if log.watts is not None) * milliseconds / 1000


def _watts(samples: Sequence[_Sample], switch: bool) -> tuple[float | None, str | None]:
    """The mean power, or why there is none."""
    try:
        return float(_of_switch(samples) if switch else _of_node(samples)), None
    except Exception as error:  # noqa: BLE001 - the official summarizer dies of the same
        return None, f"{type(error).__name__}: {error}"


def _of_node(samples: Sequence[_Sample]) -> float:
    """The sum of samples, each times the time since the one before it, as it is made officially.

    The last start and the last stop count, but no sample after the first stop; without any stop
    the last sample is it. The sum is divided by the time from start to stop.
    """
    start: float | None = None
    stop: float | None = None
    previous = last = 0.0
    total: Any = 0
    efficiency: Any = 1.0
    for _, time, key, value in sorted(samples, key=itemgetter(1)):
        if key == _READING:
            if stop is None and start is not None:
                total += value * (time - previous)
                previous, last = time, max(last, time)
        elif key == _START:
            start = previous = time
        elif key == _STOP:
            stop = time
        elif key == _EFFICIENCY:
            efficiency = value
    if start is None:
        raise ValueError("it holds no power_measurement_start")
    return float(efficiency * total * 1.0) / ((last if stop is None else stop) - start)


def _of_switch(samples: Sequence[_Sample]) -> float:
    """The first estimate, with the last efficiency before it; nothing without one."""
    efficiency: Any = 1.0
    for _, _, key, value in samples:
        if key == _EFFICIENCY:
            efficiency = value
        if key == _ESTIMATE:
            return float(efficiency * value * 1.0)
    return float(efficiency * 0 * 1.0)
