"""The description of a run in its log: identity, batch size and configuration."""

from __future__ import annotations

from collections.abc import Callable
from sys import intern

from mlperf_pkg.findings import bounded
from mlperf_pkg.log.record import Record, shown

_NAMES = ("benchmark", "division", "org", "platform", "status")
SUBMISSION_KEYS = {f"submission_{name}": name for name in _NAMES}
DISTINCT_KEYS = ("global_batch_size", "config_filename")
MAX_DISTINCT = 100  # values of a key that may have one


class Description:
    """Follows the first records of ``SUBMISSION_KEYS``; values that are not strings are empty."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self.values = dict.fromkeys(_NAMES, "")
        self._missing = dict(SUBMISSION_KEYS)

    def take(self, record: Record, _: int) -> None:
        """Take the next record."""
        if name := self._missing.pop(record.key, None):
            value = bounded(record.value)
            # Equal strings of several runs are sent to another process once if they are one object.
            self.values[name] = intern(value) if type(value) is str else ""


class DistinctValues:
    """Follows the records of ``DISTINCT_KEYS``, and keeps the line of each different value."""

    def __init__(self, line_of: Callable[[int], int]) -> None:
        """Start at the head of a log; ``line_of`` returns the line of a record by its number."""
        self._numbers: dict[str, dict[str, int]] = {key: {} for key in DISTINCT_KEYS}
        self._line_of = line_of

    def take(self, record: Record, number: int) -> None:
        """Take the next record, by its ``number`` in the log."""
        numbers = self._numbers[record.key]
        if len(numbers) < MAX_DISTINCT:
            numbers.setdefault(shown(record.value), number)

    def values(self, key: str) -> tuple[str, ...]:
        """Return the different values of a key, as JSON."""
        return tuple(self._numbers[key])

    def lines(self, key: str) -> dict[str, int]:
        """Return the different values of a key, as JSON, each with its first line."""
        return {value: self._line_of(number) for value, number in self._numbers[key].items()}
