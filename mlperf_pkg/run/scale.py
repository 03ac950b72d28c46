"""Weak scaling (HPC): how many accelerators train one model."""

from __future__ import annotations

from typing import Any

from mlperf_pkg.log.record import Record

_MAX_NODES = 10**9
KEYS = ("number_of_nodes", "accelerators_per_node")


class InstanceScale:
    """Follows the records of ``KEYS``, for the accelerators that train one model."""

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._values: dict[str, Any] = {}

    def take(self, record: Record, _: int) -> None:
        """Take the next record; once there is a value of both keys, later ones do not count."""
        if any(self._values.get(key) is None for key in KEYS):
            self._values[record.key] = record.value

    def result(self) -> int | None:
        """Return nodes times accelerators of a node, at least one; None if one is not a number."""
        try:
            nodes, accelerators = (int(self._values[key]) for key in KEYS)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        return nodes * max(accelerators, 1)

    @property
    def nodes(self) -> int | None:
        """The number of nodes; None if it is not a number, or one that no system has."""
        try:
            nodes = int(self._values["number_of_nodes"])
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        return nodes if 0 <= nodes <= _MAX_NODES else None
