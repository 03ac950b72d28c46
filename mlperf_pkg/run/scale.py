"""Weak scaling (HPC): how many accelerators train one model."""

from __future__ import annotations

from typing import Any

from mlperf_pkg.log.record import Record

KEYS = ("number_of_nodes", "accelerators_per_node")


class InstanceScale:
    """The accelerators that train one model, as far as a log tells them."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._seen: dict[str, Any] = {}

    def see(self, record: Record, _: int) -> None:
        """Take the next record of ``KEYS``; the first two values that stand together count."""
        if any(self._seen.get(each) is None for each in KEYS):
            self._seen[record.key] = record.value

    def result(self) -> int | None:
        """Nodes times accelerators of each, at least one; None where that is no number."""
        try:
            nodes, accelerators = (int(self._seen[key]) for key in KEYS)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        return nodes * max(accelerators, 1)
