"""The fingerprint of a run: when each evaluation came after the start, and what it measured."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from mlperf_pkg.log.block import Block

if TYPE_CHECKING:
    from hashlib import blake2b

_KEYS = ("run_start", "eval_accuracy", "eval_error", "run_stop")
_LEAST_EVALUATIONS = 2
_MOST_UNHASHED = 64  # evaluations


class Fingerprint:
    """Follows a run's start, stop and evaluations; ``digest`` is equal for copies of one run.

    Times count from ``run_start``, in milliseconds, so that shifting a copy in time or editing its
    seed does not hide it.
    """

    def __init__(self) -> None:
        """Start at the head of a log."""
        self._hash: blake2b | None = None
        self._events: list[tuple[float, Any]] = []  # not hashed yet
        self._start: float | None = None
        self._stopped = False

    def take_block(self, block: Block) -> None:
        """Take the next records: ``run_start``, ``run_stop`` and evaluations."""
        indexes = sorted(chain.from_iterable([block.indexes.get(key, ()) for key in _KEYS]))
        for record in block.select(indexes):
            if record.key == "run_start":
                self._start = self._start or record.time_ms
            elif self._start is not None and not self._stopped:
                self._stopped = record.key == "run_stop"
                value = None if self._stopped else record.value
                self._events.append((record.time_ms - self._start, value))
        while len(self._events) >= _MOST_UNHASHED:
            self._update_hash()

    @property
    def digest(self) -> bytes | None:
        """The fingerprint; None for a run without an end or with too few evaluations."""
        if not self._stopped or (not self._hash and len(self._events) <= _LEAST_EVALUATIONS):
            return None
        if not self._hash:
            return self._encoded(self._events)
        if self._events:
            self._update_hash()
        return self._hash.digest()

    def _update_hash(self) -> None:
        from hashlib import blake2b  # noqa: PLC0415 - slow to import; few runs are as long

        self._hash = self._hash or blake2b(digest_size=16)
        self._hash.update(self._encoded(self._events[:_MOST_UNHASHED]))
        del self._events[:_MOST_UNHASHED]

    @staticmethod
    def _encoded(events: list[tuple[float, Any]]) -> bytes:
        try:
            return msgspec.msgpack.encode(events)
        except (OverflowError, UnicodeEncodeError):  # msgpack cannot encode the value
            return repr(events).encode("utf-8", "backslashreplace")
