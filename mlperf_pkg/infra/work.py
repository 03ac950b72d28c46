"""Work for several processes: what they are given, and what becomes of their results."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

SIGNALS = {signal.SIGINT, signal.SIGTERM}
_REASON = 300  # characters of a reason


class WorkerLostError(RuntimeError):
    """A worker that ended before it sent its results; ``reason`` names the signal."""

    def __init__(self, reason: str) -> None:
        """Keep the reason as ``args``, so that the error survives pickling."""
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        """Return a message."""
        return f"a worker process ended before its work was done: {self.reason}"


Instead = Callable[[WorkerLostError], _Result]
"""Return what takes the place of the result of an item whose worker was lost."""


class Mapper(Protocol):
    """Shares work among workers, as ``concurrent.futures.Executor`` does."""

    def map(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        /,
        *,
        chunksize: int = 1,
        instead: Instead[_Result] | None = None,
    ) -> Iterator[_Result]:
        """Yield the results of all items in their order; a worker takes ``chunksize`` at once.

        Raises:
            WorkerLostError: a worker was lost, and ``instead`` does not say what to do then.
        """


def parts_of(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    """Return the items in parts of this size."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def packed_results(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> bytes:
    """Return the results of all items as bytes, or the exception of one of them."""
    try:
        return pickle.dumps([function(item) for item in items], -1)
    except (pickle.PicklingError, RecursionError, MemoryError) as error:
        return pickle.dumps(WorkerLostError(f"its results cannot be sent: {error!r}"[:_REASON]))
    except Exception as error:  # noqa: BLE001 - raised again where the results are read
        import traceback  # noqa: PLC0415 - only a defect needs it

        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return pickle.dumps(error, -1)


def outcome_of(
    outcome: bytes | WorkerLostError, size: int, instead: Instead[_Result] | None
) -> list[_Result]:
    """Return the results of a part of this size, or ``instead`` of each.

    Raises:
        Exception: that of the function.
    """
    results = pickle.loads(outcome) if isinstance(outcome, bytes) else outcome  # noqa: S301 - ours
    if isinstance(results, WorkerLostError) and instead is not None:
        return [instead(results)] * size
    if isinstance(results, Exception):
        raise results
    return cast(list[_Result], results)


@contextmanager
def blocked(signals: set[signal.Signals]) -> Iterator[None]:
    """Hold back signals for a while, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_the_parent() -> None:
    """A terminal sends Ctrl-C to all processes, of which one is to report it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
