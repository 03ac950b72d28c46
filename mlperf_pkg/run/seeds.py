"""The seeds that a run logs, as the official seed checker reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mlperf_pkg.log.record import Record
from mlperf_pkg.run.crashes import reason_of

KEY = "seed"
OTHER_RECORDS = "records that cannot be read"
"""Why the official seed checker refuses a log whose seeds can be read."""

MAX_SEEDS = 10_000  # of one log; the most in any published one is 64


class Seed(msgspec.Struct, frozen=True):
    """A logged seed and the source line that logged it; ``line`` is its line in the log."""

    value: int
    file: Any
    lineno: Any
    line: int


class SeedReader:
    """Follows the records of ``KEY``.

    ``unreadable`` says why the official seed checker refuses the log, if it does.
    """

    def __init__(self, line_of: Callable[[int], int]) -> None:
        """Start at the head of a log; ``line_of`` returns the line of a record by its number."""
        self.seeds: list[Seed] = []
        self.unreadable: str | None = None
        self._line_of = line_of

    def take(self, record: Record, number: int) -> None:
        """Take the next seed, by its ``number`` in the log."""
        line = self._line_of(number)
        try:
            file, lineno = record.metadata["file"], record.metadata["lineno"]
            seed = Seed(int(record.value), file, lineno, line)
            hash((file, lineno))
        except Exception as error:  # noqa: BLE001 - the official seed checker refuses the log
            self.unreadable = self.unreadable or f"line {line}: {reason_of(error)}"
        else:
            self._keep(seed)

    def _keep(self, seed: Seed) -> None:
        if len(self.seeds) < MAX_SEEDS:
            self.seeds.append(seed)
        else:
            self.unreadable = f"more than {MAX_SEEDS:,} seeds"
