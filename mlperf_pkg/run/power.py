"""Measurements of power, and the energy that the official summarizer computes from them.

Source: mlperf_logging.result_summarizer, _compute_total_power; power_measurement.adoc.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from math import inf
from operator import attrgetter, sub
from typing import Any, TypeAlias

from msgspec import Struct

from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.source import Source
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.run.convergence import reason_of


class PowerFile(Struct, frozen=True):
    """The power log of one node or, if ``switch``, of the interconnect."""

    source: Source
    switch: bool


class PowerLog(Struct, frozen=True):
    """One measurement; times are in milliseconds since the epoch, None if not logged.

    ``watts`` is the mean power, with the conversion efficiency, that the official summarizer
    multiplies by the time of the run; None if it crashes, and ``crash`` says why. ``readings`` is
    the number of samples, ``longest_gap_ms`` the longest time between two of them, ``first_ms`` and
    ``last_ms`` are the times of the first and the last. ``missing`` is the share of samples missing
    between these, or of the seconds without one, whichever is more. ``estimated`` says that the log
    of a switch holds an estimate; without one, the switch counts as 0 watts. ``impossible`` is the
    first value that cannot be measured, after its key, or else the first that is a string with a
    number. ``unchecked`` is the finding in place of a log that could not be read.
    """

    path: str
    switch: bool
    watts: float | None = None
    crash: str | None = None
    start_ms: float | None = None
    stop_ms: float | None = None
    first_ms: float | None = None
    last_ms: float | None = None
    readings: int = 0
    longest_gap_ms: float = 0.0
    missing: float = 0.0
    estimated: bool = False
    impossible: tuple[str, Any] | None = None
    unchecked: Unchecked | None = None


def unread_power_log(file: PowerFile, finding: Unchecked) -> PowerLog:
    """Return the log of a file that could not be read, of which there is only a finding."""
    return PowerLog(file.source.label, file.switch, estimated=True, unchecked=finding)


_START = "power_measurement_start"
_READING = "power_reading"
_STOP = "power_measurement_stop"
_EFFICIENCY = "conversion_eff"
_ESTIMATE = "interconnect_power_est"
MAX_GAP_MS = 1000  # between two samples
_LONG_GAP_MS = MAX_GAP_MS + 1000  # by which times are wrong: some meters log whole seconds
MAX_BYTES = 128 << 20  # of a measurement, six days of one sample a second


class _Sample(Struct, frozen=True, gc=False):
    """A record of one of these keys, by its number in the log."""

    number: int
    time_ms: float
    key: str
    value: Any


_Samples: TypeAlias = defaultdict[str, list[_Sample]]  # by key, in the order of the log
_KEYS = frozenset({_START, _READING, _STOP, _EFFICIENCY, _ESTIMATE})


def read_power_log(file: PowerFile) -> PowerLog:
    """Read one measurement; the summarizer crashes on a file that cannot be opened."""
    watts = None
    try:
        samples, crash = _read(file)
    except OSError as error:
        samples = defaultdict(list)
        crash = f"the file cannot be read ({error.strerror})"
    if crash is None:
        watts, crash = _watts(samples, switch=file.switch)
    times = sorted(_times(samples, _READING))
    gaps = list(map(sub, times[1:], times))
    return PowerLog(
        path=file.source.label,
        switch=file.switch,
        watts=watts,
        crash=crash,
        start_ms=min(_times(samples, _START), default=None),
        stop_ms=max(_times(samples, _STOP), default=None),
        first_ms=times[0] if times else None,
        last_ms=times[-1] if times else None,
        readings=len(times),
        longest_gap_ms=max(gaps, default=0.0),
        missing=_missing(gaps),
        estimated=bool(samples[_ESTIMATE]),
        impossible=_impossible(samples, _ESTIMATE if file.switch else _READING),
    )


def _impossible(samples: _Samples, watts: str) -> tuple[str, Any] | None:
    """Return the first power that is not a number of watts, or efficiency that is not a share.

    A string with such a number comes after all others.
    """
    # Of a thousand values, few are left for the functions.
    unusual = [s for s in samples[watts] if type(s.value) is not float or not 0 <= s.value < inf]
    text = None
    for sample in sorted(unusual + samples[_EFFICIENCY], key=attrgetter("number")):
        if not is_possible(sample.key, sample.value):
            return sample.key, sample.value
        if text is None and isinstance(sample.value, str):
            text = (sample.key, sample.value)
    return text


def is_possible(key: str, value: Any) -> bool:
    """Return whether a value, or the number in a string, is a share or a number of watts."""
    try:
        number = to_finite(float(value) if isinstance(value, str) else value)
    except ValueError:
        return False
    if number is None:
        return False
    if key == _EFFICIENCY:
        return 0 < number <= 1
    return number >= 0


def _missing(gaps: Sequence[float]) -> float:
    """Return the share of samples that are missing, or of the time without one."""
    if not any(gaps):
        return 0.0
    few_ms = sum(gaps) - len(gaps) * MAX_GAP_MS
    # Of a thousand gaps, few are long; one that is NaN counts.
    without_ms = sum([gap - _LONG_GAP_MS for gap in gaps if not gap <= _LONG_GAP_MS])
    return max(few_ms, without_ms) / sum(gaps)


def _times(samples: _Samples, key: str) -> list[float]:
    return [sample.time_ms for sample in samples[key]]


def _read(file: PowerFile) -> tuple[_Samples, str | None]:
    """Return all samples, and why the official parser crashes, if it does."""
    samples: _Samples = defaultdict(list)
    size = 0
    with file.source.open() as stream:
        reader = LogReader(stream, file.source.label, lambda _: None)
        for block in reader.blocks():
            size += len(block.text)
            if size > MAX_BYTES:
                reason = (
                    f"the file is larger than {MAX_BYTES >> 20} MiB, the largest size that is read"
                )
                return defaultdict(list), reason
            for key in _KEYS & block.indexes.keys():
                indexes = block.indexes[key]
                numbers = [block.first + index for index in indexes]
                times = map(float, block.times(indexes))
                samples[key] += map(_Sample, numbers, times, repeat(key), block.values(indexes))
    return samples, reader.crash


def joules(logs: Iterable[PowerLog], milliseconds: float) -> float:
    """Return the energy of a run of this length, of all its nodes and switches that can be read."""
    return sum(log.watts for log in logs if log.watts is not None) * milliseconds / 1000


def _watts(samples: _Samples, *, switch: bool) -> tuple[float | None, str | None]:
    """Return the mean power, or why the official summarizer crashes."""
    in_order = sorted(chain.from_iterable(samples.values()), key=attrgetter("number"))
    mean_of = _of_switch if switch else _of_node
    try:
        return float(mean_of(in_order)), None
    except Exception as error:  # noqa: BLE001 - the official summarizer crashes
        return None, reason_of(error)


def _of_node(samples: Sequence[_Sample]) -> float:
    """Return the mean power: each sample times the interval before it, over the whole time.

    As in the official summarizer, the last start and the last stop count, but no sample after the
    first stop; without a stop, the last sample is the stop.
    """
    start: float | None = None
    stop: float | None = None
    previous = 0.0
    last = 0.0
    total: Any = 0
    efficiency: Any = 1.0
    for sample in sorted(samples, key=attrgetter("time_ms")):
        key = sample.key
        time = sample.time_ms
        if key == _READING:
            if stop is None and start is not None:
                total += sample.value * (time - previous)
                previous = time
                last = time if time > last else last  # max() takes thrice as long
        elif key == _START:
            start = previous = time
        elif key == _STOP:
            stop = time
        elif key == _EFFICIENCY:
            efficiency = sample.value
    if start is None:
        raise ValueError("power_measurement_start is not logged")
    if stop is None:
        stop = last
    return float(efficiency * total * 1.0) / (stop - start)


def _of_switch(samples: Sequence[_Sample]) -> float:
    """Return the first estimate, with the last efficiency before it; 0 if there is none."""
    efficiency: Any = 1.0
    for sample in samples:
        if sample.key == _EFFICIENCY:
            efficiency = sample.value
        if sample.key == _ESTIMATE:
            return float(efficiency * sample.value * 1.0)
    return float(efficiency * 0 * 1.0)
