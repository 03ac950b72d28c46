"""Times that a log states beside its stamps: of training steps, evaluations and warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Benchmark

_STATING = ("tracked_stats", "throughput")
_EVENTS = ("run_start", "block_start", "eval_start")
_EPOCH_EVENTS = ("run_start", "epoch_start", "epoch_stop", "eval_start")
_BESIDE = (
    ("block_stop", -1),
    ("eval_start", -1),
    ("eval_stop", -1),
    ("init_stop", -1),
    ("init_stop", -2),
)
_EPOCHS_BESIDE = (("epoch_stop", 1), ("epoch_stop", 2), ("eval_stop", -1), ("init_stop", -2))
"""Keys beside whose records logs state times, and how many records away."""

_UNKNOWN = 2  # blocks, or more: a part of the log was not followed
_NAMES = ("warmup_time", "validation_time", "throughput", "train_step_time")
_BY_CHECKPOINT = "stable_diffusion"  # whose evaluations follow later, and not each block
_WHOLE_EPOCHS = frozenset({"resnet", "rnnt"})  # whose throughput is that of an epoch

# In published logs, no interval is more than 15 milliseconds shorter than stated.
_LEAST_SECONDS = 0.1
_LEAST_PART = 0.005
_OTHER_UNIT = 0.6  # of the time that would be needed: below it, the throughput is of something else


class Interval(Struct, frozen=True):
    """A time between two stamps, and what the log states of it.

    ``stated`` is the name of the ``value``; ``samples`` were trained in these ``seconds``. They
    begin with a record of the key ``start``; the record ``number`` states the value.
    """

    number: int
    start: str
    seconds: float
    stated: str
    value: float
    samples: float = 0.0
    batch_size: float = 0.0

    @property
    def needed(self) -> float:
        """The seconds that the statement needs."""
        if self.stated == "throughput":
            return self.samples / self.value
        if self.stated == "train_step_time":
            return self.value * self.samples / self.batch_size
        return self.value

    @property
    def is_too_short(self) -> bool:
        """Whether the stamps leave less than the time that is needed."""
        missing = self.needed - self.seconds
        return missing > max(_LEAST_SECONDS, _LEAST_PART * self.needed)

    @property
    def arithmetic(self) -> str:
        """Why the time is needed, in words."""
        if self.stated == "throughput":
            rate = f"{self.samples:,.0f} samples at a throughput of {self.value:,.2f} a second"
            return f"{rate} take {self.needed:,.1f} seconds"
        if self.stated == "train_step_time":
            steps = self.samples / self.batch_size
            return (
                f"{steps:,.0f} steps of {self.value:,.3f} seconds take {self.needed:,.1f} seconds"
            )
        return f"{self.stated} is {self.value:,.1f} seconds"


class _Statement(Struct, frozen=True):
    number: int
    time_ms: float
    name: str
    value: float


class StatedTimes:
    """Follows what a log states of its times, and the stamps around it.

    ``intervals`` are those of training and evaluation, ``warmup`` that before the clock starts.
    """

    def __init__(self, rules: Benchmark | None) -> None:
        """Start at the head of a log of a benchmark."""
        counts_samples = (
            rules is not None and rules.unit == "samples" and rules.name != _BY_CHECKPOINT
        )
        self._counted_by = rules.counted_by if rules and counts_samples else None
        self._has_epochs = rules is not None and rules.name in _WHOLE_EPOCHS
        self._last: dict[str, Record] = {}
        self._start = "run_start"
        self._start_ms = 0.0
        self._position = 0.0
        self._blocks = 0
        self._statement: _Statement | None = None
        self._intervals: list[Interval] = []
        self.warmup: tuple[int, float, float] | None = None
        """The number of the record, its time, and the seconds that it states."""

    def take_block(self, block: Block) -> None:
        """Take the next records: beginnings, ends, and the statements beside these."""
        indexes = block.indexes
        stating = set(chain.from_iterable([indexes.get(key, ()) for key in _STATING]))
        statements: set[int] = set()
        if stating and (self._counted_by or self._has_epochs):
            for key, offset in _EPOCHS_BESIDE if self._has_epochs else _BESIDE:
                statements |= stating.intersection([i + offset for i in indexes.get(key, ())])
        if not statements:
            if "block_start" in indexes or "eval_start" in indexes:
                self._blocks = _UNKNOWN
            return
        events = list(statements)
        for key in _EPOCH_EVENTS if self._has_epochs else _EVENTS:
            events += indexes.get(key, ())
        events.sort()
        for index, record in zip(events, block.select(events), strict=True):
            if record.key in _STATING:
                self._take_statement(record, block.first + index)
            else:
                self._take_event(record)
                self._last[record.key] = record

    def _take_statement(self, record: Record, number: int) -> None:
        """Take a statement; those of one step, which has a loss, do not count."""
        value = record.value
        if record.key == "throughput":
            value = {"throughput": value}
        if not isinstance(value, dict) or any("loss" in name for name in value):
            return
        name = next((name for name in _NAMES if name in value), None)
        seconds = to_finite(value[name]) if name else None
        if name is None or seconds is None or seconds <= 0:
            return
        statement = _Statement(number, _time(record), name, seconds)
        if name == "warmup_time":
            self.warmup = (number, statement.time_ms, seconds)
        elif name == "validation_time":
            self._add(statement, "eval_start", self._time_of("eval_start"), statement.time_ms)
        elif self._has_epochs:
            self._add_epoch(statement)
        else:
            self._statement = statement

    def _take_event(self, record: Record) -> None:
        """Take a beginning or an end; an evaluation counts the samples that were trained."""
        key = record.key
        if key in ("run_start", "block_start"):
            self._start = key
            self._start_ms = _time(record)
            self._statement = None
            if key == "block_start":
                self._blocks += 1
            else:
                self._blocks = 0
                self._position = 0.0
        elif key == "eval_start" and self._counted_by:
            statement = self._statement
            position = self._position_of(record)
            if statement and position and self._blocks <= 1:
                samples = position - self._position
                self._add(statement, self._start, self._start_ms, statement.time_ms, samples)
            if statement:  # a log that opens no other block measures from here
                self._start = "tracked_stats"
                self._start_ms = statement.time_ms
            self._statement = None
            self._blocks = 0
            self._position = position or self._position

    def _add_epoch(self, statement: _Statement) -> None:
        """Add the epoch that has ended, whose samples are those of the data set."""
        start_ms = self._time_of("epoch_start")
        stop_ms = self._time_of("epoch_stop")
        if stop_ms > start_ms:
            self._add(statement, "epoch_start", start_ms, stop_ms, -1.0)

    def _add(
        self,
        statement: _Statement,
        start: str,
        start_ms: float,
        stop_ms: float,
        samples: float = 0.0,
    ) -> None:
        seconds = (stop_ms - start_ms) / 1000
        number = statement.number
        if start_ms:
            interval = Interval(number, start, seconds, statement.name, statement.value, samples)
            self._intervals.append(interval)

    def _time_of(self, key: str) -> float:
        """Return the time of the last record of a key, 0 if there is none."""
        return _time(self._last[key]) if key in self._last else 0.0

    def _position_of(self, record: Record) -> float | None:
        metadata: Any = record.metadata
        if not isinstance(metadata, Mapping):
            return None
        return to_finite(metadata.get(self._counted_by))

    def too_short(self, batch_size: Any, train_samples: Any) -> list[Interval]:
        """Return the intervals whose stamps leave less than the time that the log states.

        ``batch_size`` and ``train_samples`` are as logged. There are none if most intervals are far
        too short: then the log states the throughput of something else.
        """
        size = to_finite(batch_size) or 0.0
        data_set = to_finite(train_samples) or 0.0
        intervals: list[Interval] = []
        for interval in self._intervals:
            samples = data_set if interval.samples < 0 else interval.samples
            is_known = samples > 0 and (size > 0 or interval.stated == "throughput")
            if is_known or interval.stated == "validation_time":
                intervals.append(replace(interval, samples=samples, batch_size=size))
        parts = sorted([interval.seconds / interval.needed for interval in intervals])
        if not parts or parts[len(parts) // 2] < _OTHER_UNIT:
            return []
        return [interval for interval in intervals if interval.is_too_short]


def _time(record: Record) -> float:
    """Return the time of a record, 0 if it is not finite."""
    return to_finite(record.time_ms) or 0.0
