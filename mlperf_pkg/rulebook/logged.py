"""What a run has logged so far, by key."""

from collections.abc import Mapping
from typing import Any

import msgspec

from mlperf_pkg.log.record import Record

METADATA_NAMES = ("metadata", "previous")
"""The names that formulas have for the metadata of a record, and of the one before it."""

Seen = Mapping[str, "Logged"]
LATEST_MS = 9e99
"""In place of a time that is infinite or NaN."""


class Logged(msgspec.Struct, eq=False, gc=False):
    """The records of one key so far: how many, and the first and last value and number.

    ``same`` says that all values equal the first; ``earliest_ms`` is the least time;
    ``metadata`` is that of the last record.
    """

    first: Any
    last: Any
    first_number: int
    last_number: int
    earliest_ms: float
    metadata: Any
    count: int = 1
    same: bool = True

    def add(self, record: Record, number: int) -> None:
        """Take the next record of the key, by its ``number`` in the log."""
        value = record.value
        self.count += 1
        self.last, self.last_number, self.metadata = value, number, record.metadata
        # As list.count does, identity makes NaN equal to itself.
        if self.same and value is not self.first and value != self.first:
            self.same = False
        if record.time_ms < self.earliest_ms:  # noqa: PLR1730 - min() takes thrice as long
            self.earliest_ms = record.time_ms


def first_logged(record: Record, number: int = 0) -> Logged:
    """Return what the first record of a key says, by its ``number`` in the log."""
    value, time_ms = record.value, record.time_ms
    earliest_ms = time_ms if time_ms < LATEST_MS else LATEST_MS
    # By position, as names take twice as long.
    return Logged(value, value, number, number, earliest_ms, record.metadata)
