"""Times that a log states beside its stamps: of training, evaluations and warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan, nan
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Benchmark

_STATING = frozenset({
    "bert", "flux1", "llama2_70b_lora", "llama31_405b", "llama31_8b", "resnet", "rnnt",
    "stable_diffusion",
})  # fmt: skip
"""The benchmarks whose published logs state times of samples. Others count batches or tokens."""

_STATEMENTS = frozenset({"throughput", "tracked_stats"})
_OPENINGS = ("run_start", "block_start", "epoch_start", "eval_start")
"""Keys of records from which the next statement counts."""

_BY_STATEMENT = "stable_diffusion"  # whose statements count from the one before, by its blocks
_HEAD = ("init_start", "global_batch_size", "train_samples")  # logged once, or by each process
_ENDS = ("epoch_stop", "block_stop", "eval_start", "eval_stop", "init_stop")
_NEAR = 2  # records from an end, within which logs state what has ended
_MOST_RECORDS = 400  # that are followed; published logs have up to 307

# In published logs, no interval is more than 15 milliseconds shorter than stated.
_LEAST_SECONDS = 0.1
_LEAST_PART = 0.005
_OTHER_UNIT = 0.6  # of the time that would be needed: below it, the throughput is of something else

_WORDS = {
    "throughput": (
        "{amount:,.0f} samples at a throughput of {value:,.2f} a second take {needed:,.1f} seconds"
    ),
    "train_step_time": "{amount:,.0f} steps of {value:,.3f} seconds take {needed:,.1f} seconds",
    "validation_time": "validation_time is {needed:,.1f} seconds",
    "warmup_time": "warmup_time is {needed:,.1f} seconds",
}
"""The arithmetic of what is stated. Of several statements in one record, the first counts."""

_SINCE = {"validation_time": "eval_start", "warmup_time": "init_start"}


class Interval(Struct, frozen=True):
    """A time between two stamps, and what the log states of it.

    ``stated`` is the name of the ``value`` that the record ``number`` states. It counts ``amount``
    samples, steps, or the time itself. The ``seconds`` begin with a record of the key ``start``.
    """

    number: int
    start: str
    seconds: float
    stated: str
    value: float
    amount: float = 1.0

    @property
    def needed(self) -> float:
        """The seconds that the statement needs."""
        if self.stated == "throughput":
            return self.amount / self.value
        return self.amount * self.value

    @property
    def is_too_short(self) -> bool:
        """Whether the stamps leave less than the time that is needed."""
        missing = self.needed - self.seconds
        return missing > max(_LEAST_SECONDS, _LEAST_PART * self.needed)

    @property
    def arithmetic(self) -> str:
        """Why the time is needed, in words."""
        words = _WORDS[self.stated]
        return words.format(amount=self.amount, value=self.value, needed=self.needed)


class StatedTimes:
    """Follows what a log states of its times, and the stamps around it."""

    def __init__(self, rules: Benchmark | None) -> None:
        """Start at the head of a log of a benchmark."""
        self._counted_by = rules.counted_by if rules and rules.name in _STATING else None
        self._counting = "eval_start"
        self._openings = _OPENINGS
        if rules and rules.name == _BY_STATEMENT:
            self._counting = "block_start"
            self._openings = ("tracked_stats",)
        self._records = 0
        self._last: dict[str, Record] = {}
        self._opening = ""
        self._position = 0.0
        self._statement: Interval | None = None
        self._intervals: list[Interval] = []

    def take_block(self, block: Block) -> None:
        """Take the next records: beginnings, and the statements near an end."""
        if self._counted_by is None or self._records >= _MOST_RECORDS:
            return
        indexes = block.indexes
        near: set[int] = set()
        for key in _ENDS:
            for index in indexes.get(key, ()):
                near.update(range(index - _NEAR, index + _NEAR + 1))
        followed: set[int] = set()
        for key in _STATEMENTS:
            followed |= near.intersection(indexes.get(key, ()))
        for key in _OPENINGS:
            followed.update(indexes.get(key, ()))
        for key in _HEAD:
            followed.update(indexes.get(key, ())[:1])
        in_order = sorted(followed)[: _MOST_RECORDS - self._records]
        self._records += len(in_order)
        for index, record in zip(in_order, block.select(in_order), strict=True):
            self._take(record, block.first + index)

    def _take(self, record: Record, number: int) -> None:
        key = record.key
        if key in _STATEMENTS and not self._take_statement(record, number):
            return
        self._last[key] = record
        if key == self._counting:
            self._take_position(record, number)
        elif key == self._opening == "block_start":  # without an evaluation between them
            self._position = nan
        if key in self._openings:
            self._opening = key

    def _take_statement(self, record: Record, number: int) -> bool:
        """Take a statement, and return whether it is one; that of a step, with a loss, is not."""
        values = record.value
        if record.key == "throughput":
            values = {"throughput": values}
        if not isinstance(values, dict) or any("loss" in name for name in values):
            return False
        for name in _WORDS:
            value = to_finite(values.get(name))
            if value is not None and value > 0:
                start = _SINCE.get(name, self._opening)
                seconds = (_number(record.time_ms) - self._time_of(start)) / 1000
                amount = 1.0 if name in _SINCE else nan
                if start == "epoch_start":
                    amount = self._value_of("train_samples")
                self._statement = Interval(number, start, seconds, name, value, amount)
                self._intervals.append(self._statement)
                return True
        return False

    def _take_position(self, record: Record, number: int) -> None:
        """Take a record that counts the samples of the statement before it."""
        metadata: Any = record.metadata
        position = nan
        if isinstance(metadata, Mapping):
            position = _number(metadata.get(self._counted_by))
        statement = self._statement
        if statement and isnan(statement.amount) and number - statement.number <= _NEAR:
            amount = position - self._position
            if statement.stated == "train_step_time":
                amount /= self._value_of("global_batch_size") or nan
            self._intervals.append(replace(statement, amount=amount))
        self._position = position

    def _time_of(self, key: str) -> float:
        return _number(self._last[key].time_ms) if key in self._last else nan

    def _value_of(self, key: str) -> float:
        return _number(self._last[key].value) if key in self._last else nan

    def too_short(self) -> list[Interval]:
        """Return the intervals whose stamps leave less than the time that the log states.

        There are none if most intervals are far too short: then the log states the throughput of
        something else.
        """
        intervals: list[Interval] = []
        for interval in self._intervals:
            if interval.needed > 0 and not isnan(interval.seconds):
                intervals.append(interval)
        parts = sorted([interval.seconds / interval.needed for interval in intervals])
        if not parts or parts[len(parts) // 2] < _OTHER_UNIT:
            return []
        return [interval for interval in intervals if interval.is_too_short]


def _number(value: Any) -> float:
    """Return a value as a finite number, else NaN."""
    number = to_finite(value)
    return nan if number is None else number
