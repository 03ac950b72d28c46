"""Measurements of power, and the energy that the official summarizer computes from them.

Source: mlperf_logging.result_summarizer, _compute_total_power; power_measurement.adoc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import attrgetter, sub
from typing import Any

from msgspec import Struct

from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.numbers import to_finite
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.run.crashes import reason_of


class PowerFile(Struct, frozen=True):
    """The power log of one node or, if ``switch``, of the interconnect."""

    source: Source
    switch: bool


class Impossible(Struct, frozen=True):
    """The value of a key that no measurement gives."""

    key: str
    value: Any


class PowerLog(Struct, frozen=True):
    """One measurement; times are in milliseconds since the epoch, None if not logged.

    ``watts`` is the mean power, with the conversion efficiency, that the official summarizer
    multiplies by the time of the run; None if it crashes, and ``crash`` says why. ``readings`` is
    the number of samples, ``longest_gap_ms`` the longest time between two of them. ``estimated``
    says that the log of a switch holds an estimate; without one, the switch counts as 0 watts.
    ``impossible`` is the first value that no measurement gives.
    ``unchecked`` is the finding in place of a log that could not be read.
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
    impossible: Impossible | None = None
    unchecked: Unchecked | None = None


def unread_power_log(file: PowerFile, finding: Unchecked) -> PowerLog:
    """Return the log of a file that could not be read, of which there is only a finding."""
    label, switch = file.source.label, file.switch
    return PowerLog(label, switch, None, None, None, None, 0, 0.0, True, unchecked=finding)


_START, _READING, _STOP = "power_measurement_start", "power_reading", "power_measurement_stop"
_EFFICIENCY, _ESTIMATE = "conversion_eff", "interconnect_power_est"
MAX_BYTES = 128 << 20  # of a measurement, six days of one sample a second


class _Sample(Struct, frozen=True, gc=False):
    """A record of one of these keys, by its number in the log."""

    number: int
    time_ms: float
    key: str
    value: Any


def read_power_log(file: PowerFile) -> PowerLog:
    """Read one measurement; the summarizer crashes on a file that cannot be opened."""
    try:
        samples, crash = _read(file)
    except OSError as error:
        samples, crash = [], f"it cannot be read: {error.strerror}"
    watts = None
    if crash is None:
        watts, crash = _watts(samples, switch=file.switch)
    times = sorted(_times(samples, _READING))
    stops = _times(samples, _STOP) or times[-1:]
    return PowerLog(
        path=file.source.label,
        switch=file.switch,
        watts=watts,
        crash=crash,
        start_ms=min(_times(samples, _START), default=None),
        stop_ms=max(stops, default=None),
        readings=len(times),
        longest_gap_ms=max(map(sub, times[1:], times), default=0.0),
        estimated=any(sample.key == _ESTIMATE for sample in samples),
        impossible=next((value for s in samples if (value := _impossible(s, file.switch))), None),
    )


def _impossible(sample: _Sample, switch: bool) -> Impossible | None:
    """Return a value that counts and that is not watts or, of the efficiency, not a share."""
    if sample.key not in (_EFFICIENCY, _ESTIMATE if switch else _READING):
        return None
    number = to_finite(sample.value)
    is_share = sample.key == _EFFICIENCY
    possible = number is not None and (0 < number <= 1 if is_share else number >= 0)
    return None if possible else Impossible(sample.key, sample.value)


def _times(samples: Iterable[_Sample], key: str) -> list[float]:
    return [sample.time_ms for sample in samples if sample.key == key]


def _read(file: PowerFile) -> tuple[list[_Sample], str | None]:
    """Return all samples, and why the official parser crashes, if it does."""
    samples: list[_Sample] = []
    size = 0
    with file.source.open() as stream:
        reader = LogReader(stream, file.source.label, lambda _: None)
        for block in reader.blocks():
            size += len(block.text)
            if size > MAX_BYTES:
                return [], f"it is larger than {MAX_BYTES >> 20} MiB, the most that is read"
            samples += _samples(block)
    return samples, reader.crash


def _samples(block: Block) -> list[_Sample]:
    """Return the samples of a block, in order."""
    samples: list[_Sample] = []
    for key in (_START, _READING, _STOP, _EFFICIENCY, _ESTIMATE):
        indexes = block.indexes.get(key)
        if not indexes:
            continue
        numbers = [block.first + index for index in indexes]
        times = map(float, block.times(indexes))
        samples += map(_Sample, numbers, times, repeat(key), block.values(indexes))
    return sorted(samples, key=attrgetter("number"))


def joules(logs: Iterable[PowerLog], milliseconds: float) -> float:
    """Return the energy of a run of this length, of all its nodes and switches that can be read."""
    return sum(log.watts for log in logs if log.watts is not None) * milliseconds / 1000


def _watts(samples: Sequence[_Sample], *, switch: bool) -> tuple[float | None, str | None]:
    """Return the mean power, or why the official summarizer crashes."""
    try:
        return float(_of_switch(samples) if switch else _of_node(samples)), None
    except Exception as error:  # noqa: BLE001 - the official summarizer crashes
        return None, reason_of(error)


def _of_node(samples: Sequence[_Sample]) -> float:
    """Return the mean power: each sample times the interval before it, over the whole time.

    As in the official summarizer, the last start and the last stop count, but no sample after the
    first stop; without a stop, the last sample is the stop.
    """
    start: float | None = None
    stop: float | None = None
    previous = last = 0.0
    total: Any = 0
    efficiency: Any = 1.0
    for sample in sorted(samples, key=attrgetter("time_ms")):
        key, time = sample.key, sample.time_ms
        if key == _READING:
            if stop is None and start is not None:
                total += sample.value * (time - previous)
                previous, last = time, max(last, time)
        elif key == _START:
            start = previous = time
        elif key == _STOP:
            stop = time
        elif key == _EFFICIENCY:
            efficiency = sample.value
    if start is None:
        raise ValueError("it has no power_measurement_start")
    return float(efficiency * total * 1.0) / ((last if stop is None else stop) - start)


def _of_switch(samples: Sequence[_Sample]) -> float:
    """Return the first estimate, with the last efficiency before it; 0 without an estimate."""
    efficiency: Any = 1.0
    for sample in samples:
        if sample.key == _EFFICIENCY:
            efficiency = sample.value
        if sample.key == _ESTIMATE:
            return float(efficiency * sample.value * 1.0)
    return float(efficiency * 0 * 1.0)
