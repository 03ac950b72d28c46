"""Time-to-train: from ``run_start`` to ``run_stop``, by the rules and by the official summarizer.

Source: training_rules, Benchmark run: timing; mlperf_logging.result_summarizer.
"""

from __future__ import annotations

from sys import intern

import msgspec

from mlperf_pkg.log.record import Record

KEYS = ("run_start", "run_stop")


class Clock(msgspec.Struct, eq=False):
    """The clock of a run: by the rules, and ``official`` as the result summarizer reads it.

    Times are in milliseconds since the epoch. ``status`` is that of ``run_stop``, whose number in
    the log is ``stop_number``.
    """

    start_ms: float | None = None
    stop_ms: float | None = None
    status: str | None = None
    stop_number: int | None = None
    official: dict[str, float] = {}

    def take(self, record: Record, number: int) -> None:
        """Take the next ``run_start`` or ``run_stop``, by its ``number`` in the log."""
        time_ms = float(record.time_ms)
        if len(self.official) < len(KEYS):
            self.official[record.key] = time_ms
        if record.key == "run_start":
            self.start_ms = time_ms if self.start_ms is None else self.start_ms
        elif self.start_ms is not None and self.stop_ms is None:
            self.stop_ms, self.stop_number = time_ms, number
            status = record.metadata.get("status") if isinstance(record.metadata, dict) else None
            # Equal strings of several runs are sent to another process once if they are one object.
            self.status = intern(status) if type(status) is str else None

    @property
    def ending(self) -> str:
        """How the run ended, as the template of a message about its status."""
        if self.stop_ms is None:
            return "no run_stop after run_start"
        return "run_stop says {found}"

    @property
    def stopped(self) -> bool:
        """Whether a ``run_stop`` was logged, also one without a ``run_start``."""
        return "run_stop" in self.official

    @property
    def backwards(self) -> bool:
        """Whether the run stopped before it started."""
        return self.start_ms is not None and self.stop_ms is not None and self.minutes is None

    @property
    def minutes(self) -> float | None:
        """Minutes from the first start to the first stop after it; None if one is missing."""
        if self.start_ms is None or self.stop_ms is None or self.stop_ms < self.start_ms:
            return None
        return (self.stop_ms - self.start_ms) / 60 / 1000

    @property
    def official_span_ms(self) -> tuple[float, float] | None:
        """The last start before both were logged, and the stop, which may be before it."""
        if len(self.official) < len(KEYS):
            return None
        return self.official["run_start"], self.official["run_stop"]
