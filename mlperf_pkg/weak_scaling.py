"""Weak scaling (HPC): how long a system takes to train many models at once.

Source: mlperf_logging.result_summarizer, _compute_weak_scaling_scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlperf_pkg.mllog import Record
from mlperf_pkg.scoring import NO_TIME, NOT_CONVERGED, Score

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


def weak_score(
    runs: Sequence[tuple[str, float, float]], failed: Sequence[tuple[str, bool]], required: int
) -> Score:
    """The minutes from the first start to the last stop of all models trained.

    ``runs`` are those that count: path, start and stop in milliseconds. ``failed`` are the
    others: path, and whether they have a time. At least ``required`` must count.
    """
    dropped = tuple((path, NOT_CONVERGED if timed else NO_TIME) for path, timed in failed)
    if len(runs) < required:
        return Score(None, dropped, f"only {len(runs)} of {required} models were trained")
    span = max(stop for _, _, stop in runs) - min(start for _, start, _ in runs)
    return Score(span / 60 / 1000, dropped)
