"""What the official summarizer takes from one log besides its minutes.

(mlperf_logging.result_summarizer)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlperf_pkg.convergence import Convergence, ConvergenceReader
from mlperf_pkg.mllog import Record

_CLOCK = ("run_start", "run_stop")
_SCALE = ("number_of_nodes", "accelerators_per_node")
_KEYS = frozenset(_CLOCK + _SCALE)


@dataclass(frozen=True, slots=True)
class LogSummary:
    """Times in milliseconds since the epoch, and what a weak-scaling table needs.

    ``span_ms`` is start and stop as the summarizer reads them, None where one is absent.
    ``instance_scale`` is the number of accelerators that train this model, None where the log does
    not tell. ``epochs`` is the convergence in BERT's epochs where ``Run.convergence`` counts
    ``train_samples``, for which the summarizer never asks; else None.
    """

    span_ms: tuple[float, float] | None
    instance_scale: int | None
    epochs: Convergence | None


class LogSummaryReader:
    """Follows a log line by line; ``result`` is asked at its end."""

    def __init__(self, train_samples: bool, steps: bool) -> None:
        """Start at the head of a log; both arguments as ``ConvergenceReader`` means them."""
        self._epochs = ConvergenceReader(steps=steps) if train_samples else None
        self._times: dict[str, float] = {}
        self._scale: dict[str, Any] = {}

    def see(self, raw: bytes, record: Record | None) -> None:
        """Take the text after a token, and its record where it has one."""
        if self._epochs:
            self._epochs.see(raw, record)
        if record is None or not isinstance(record.key, str) or record.key not in _KEYS:
            return
        # Of each pair the summarizer takes the last values up to where it has both.
        if record.key in _CLOCK and len(self._times) < len(_CLOCK):
            self._times[record.key] = float(record.time_ms)
        elif record.key in _SCALE and len(self._scale) < len(_SCALE):
            self._scale[record.key] = record.value

    def result(self) -> LogSummary:
        """What the whole log says."""
        span = tuple(self._times[key] for key in _CLOCK if key in self._times)
        return LogSummary(
            span_ms=(span[0], span[-1]) if len(span) == len(_CLOCK) else None,
            instance_scale=self._instance_scale(),
            epochs=self._epochs.result() if self._epochs else None,
        )

    def _instance_scale(self) -> int | None:
        nodes, per_node = (self._scale.get(key) for key in _SCALE)
        try:
            return int(nodes) * max(int(per_node), 1)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return None
