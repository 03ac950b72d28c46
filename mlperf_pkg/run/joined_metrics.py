"""Metrics that a run logs one by one and that are judged together."""

from __future__ import annotations

from typing import Any

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.model import Joined
from mlperf_pkg.run.convergence import MAX_METRICS


class Joiner:
    """Joins records of a log, such as Stable Diffusion's FID and CLIP of one checkpoint.

    Different scripts may calculate them offline and log them in any order.
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
        self._metrics = 0

    def take(self, record: Record, number: int) -> None:
        """Take the next record, by its ``number`` in the log.

        Raises:
            Exception: the metadata lacks a field; the official checker crashes on it too.
            OverflowError: there are too many records.
        """
        if self._joined.name not in record.metadata:
            return
        self._metrics += 1
        if self._metrics > MAX_METRICS:
            raise OverflowError(f"more than {MAX_METRICS:,} metrics")
        group = record.metadata[self.by]
        values = self._values.setdefault(group, {self.by: group})
        values[record.metadata[self._joined.name]] = record.value
        self._times[group] = (max(record.time_ms, self._times.get(group, (0.0, 0))[0]), number)

    def records(self) -> list[tuple[Record, int]]:
        """Return the joint records in order of first appearance, with the numbers of their last."""
        return [
            (Record(self.key, time_ms, self._values[group], {}), number)
            for group, (time_ms, number) in self._times.items()
        ]
