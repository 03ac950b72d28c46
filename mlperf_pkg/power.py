"""Measurements of power, and the energy that the official summarizer makes of them.

Source: mlperf_logging.result_summarizer, _compute_total_power; power_measurement.adoc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

from msgspec import Struct

from mlperf_pkg.mllog import LogReader, Record


class PowerFile(Struct, frozen=True):
    """A log of one node or, if ``switch``, of the interconnect: how to open it, and its path."""

    open: Callable[[], BinaryIO]
    path: str
    switch: bool


class PowerLog(Struct, frozen=True):
    """What one measurement says; times in milliseconds since the epoch, None where absent.

    ``watts`` is the mean power, with the conversion efficiency, that the official summarizer
    multiplies by the time of the run; None where it dies, and ``died`` tells of what. ``readings``
    counts the samples, ``longest_gap_ms`` is the longest time between two of them. ``estimated``
    says that the log of a switch holds the estimate without which it counts as nothing.
    """

    path: str
    switch: bool
    watts: float | None
    died: str | None
    start_ms: float | None
    stop_ms: float | None
    readings: int
    longest_gap_ms: float
    estimated: bool


def read_power_log(file: PowerFile) -> PowerLog:
    """Read one measurement; a file that cannot be opened is one of which the summarizer dies."""
    try:
        with file.open() as stream:
            reader = LogReader(stream, file.path, lambda _: None)
            records = [record for record in reader if record is not None]
        died = reader.died
    except OSError as error:
        records, died = [], f"it cannot be read: {error.strerror}"
    watts = None
    if died is None:
        watts, died = _watts(records, file.switch)
    times = sorted(float(r.time_ms) for r in records if r.key == "power_reading")
    starts = [float(r.time_ms) for r in records if r.key == "power_measurement_start"]
    stops = [float(r.time_ms) for r in records if r.key == "power_measurement_stop"]
    return PowerLog(
        path=file.path,
        switch=file.switch,
        watts=watts,
        died=died,
        start_ms=min(starts, default=None),
        stop_ms=max(stops or times[-1:], default=None),
        readings=len(times),
        longest_gap_ms=max((b - a for a, b in pairwise(times)), default=0.0),
        estimated=any(r.key == "interconnect_power_est" for r in records),
    )


def joules(logs: Iterable[PowerLog], milliseconds: float) -> float:
    """The energy of a run of this length, over all its nodes and switches that can be read."""
    return sum(log.watts for log in logs if log.watts is not None) * milliseconds / 1000


def _watts(records: Sequence[Record], switch: bool) -> tuple[float | None, str | None]:
    """The mean power, or why there is none."""
    try:
        return float(_of_switch(records) if switch else _of_node(records)), None
    except Exception as error:  # noqa: BLE001 - the official summarizer dies of the same
        return None, f"{type(error).__name__}: {error}"


def _of_node(records: Sequence[Record]) -> float:
    integral = _Integral()
    for record in sorted(records, key=lambda each: float(each.time_ms)):
        integral.see(record.key, float(record.time_ms), record.value)
    return integral.watts()


class _Integral:
    """The sum of samples, each times the time since the one before it, as it is made officially.

    The last start and the last stop count, but no sample after the first stop; without any stop
    the last sample is it. The sum is divided by the time from start to stop.
    """

    def __init__(self) -> None:
        self._start: float | None = None
        self._stop: float | None = None
        self._previous = 0.0
        self._last = 0.0
        self._sum: Any = 0
        self._efficiency: Any = 1.0

    def see(self, key: str, time: float, value: Any) -> None:
        if key == "power_measurement_start":
            self._start = self._previous = time
        elif key == "power_reading" and self._stop is None and self._start is not None:
            self._sum += value * (time - self._previous)
            self._previous = time
            self._last = max(self._last, time)
        elif key == "power_measurement_stop":
            self._stop = time
        elif key == "conversion_eff":
            self._efficiency = value

    def watts(self) -> float:
        if self._start is None:
            raise ValueError("it holds no power_measurement_start")
        stop = self._last if self._stop is None else self._stop
        return float(self._efficiency * self._sum * 1.0) / (stop - self._start)


def _of_switch(records: Sequence[Record]) -> float:
    """The first estimate, with the last efficiency before it; nothing without one."""
    efficiency: Any = 1.0
    for record in records:
        if record.key == "conversion_eff":
            efficiency = record.value
        if record.key == "interconnect_power_est":
            return float(efficiency * record.value * 1.0)
    return float(efficiency * 0 * 1.0)
