"""Metrics that a run logs one by one and that are judged together."""

from __future__ import annotations

from typing import Any

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Joined
from mlperf_pkg.run.convergence import MAX_METRICS


class Joiner:
    """Joins the records of a log, as Stable Diffusion's FID and CLIP of one checkpoint.

    They may be calculated offline, by different scripts, and logged in any order.
    (mlperf-logging, key aggregated_eval_accuracy)
    """

    def __init__(self, joined: Joined) -> None:
        """Start at the head of a log."""
        self.key = joined.key
        self.of = joined.of
        self.by = joined.by
        self._joined = joined
        self._values: dict[Any, dict[Any, Any]] = {}
        self._times: dict[Any, tuple[float, int]] = {}
        self._taken = 0

    def see(self, record: Record, line: int) -> None:
        """Take the next record.

        Raises:
            Exception: its metadata is not as expected; the official checker dies of the same.
            OverflowError: there are too many.
        """
        if self._joined.name not in record.metadata:
            return
        self._taken += 1
        if self._taken > MAX_METRICS:
            raise OverflowError(f"more than {MAX_METRICS:,} metrics")
        group = record.metadata[self.by]
        values = self._values.setdefault(group, {self.by: group})
        values[record.metadata[self._joined.name]] = record.value
        self._times[group] = (max(record.time_ms, self._times.get(group, (0.0, 0))[0]), line)

    def records(self) -> list[tuple[Record, int]]:
        """The joint records, in order of first appearance, each with the line of its last part."""
        return [
            (Record(self.key, time_ms, self._values[group], {}), line)
            for group, (time_ms, line) in self._times.items()
        ]
