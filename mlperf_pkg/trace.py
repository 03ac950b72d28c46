"""What no two runs share: when each evaluation came after the start, and what it measured."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from mlperf_pkg.mllog import Record

EVALUATIONS = ("eval_accuracy", "eval_error")
_LEAST_EVALUATIONS = 2
_KEPT = 256  # evaluations that are hashed together


class Trace:
    """Follows a run's start, stop and evaluations; ``digest`` is equal for copies of one run.

    Times count from ``run_start``, in milliseconds, so that shifting a copy in time or editing its
    seed does not hide it.
    """

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._hash = blake2b(digest_size=16)
        self._said: list[tuple[float, Any]] = []
        self._start: float | None = None
        self._stopped = False
        self._evaluations = 0

    def see(self, record: Record, _: int) -> None:
        """Take the next ``run_start``, ``run_stop`` or evaluation."""
        if record.key == "run_start":
            self._start = self._start or record.time_ms
        elif self._start is not None and not self._stopped:
            self._stopped = record.key == "run_stop"
            self._evaluations += not self._stopped
            value = None if self._stopped else record.value
            self._said.append((record.time_ms - self._start, value))
            if len(self._said) == _KEPT:
                self._settle()

    def _settle(self) -> None:
        try:
            said = msgspec.msgpack.encode(self._said)
        except (OverflowError, UnicodeEncodeError):  # what it cannot hold, most slowly
            said = repr(self._said).encode("utf-8", "backslashreplace")
        self._hash.update(said)
        self._said.clear()

    @property
    def digest(self) -> str | None:
        """The digest of a whole run; None for one without end or with too little to tell it by."""
        if self._said:
            self._settle()
        whole = self._stopped and self._evaluations >= _LEAST_EVALUATIONS
        return self._hash.hexdigest() if whole else None
