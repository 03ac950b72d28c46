"""Processes to share work among, which end with this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from multiprocessing.context import BaseContext

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Mapper(Protocol):
    """What shares work among workers, as ``concurrent.futures.Executor`` does."""

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], /, *, chunksize: int = 1
    ) -> Iterator[_Result]:
        """The results of all items, in their order; a worker takes ``chunksize`` at once."""


@contextmanager
def pool(workers: int, context: BaseContext | None = None) -> Iterator[Mapper]:
    """So many processes, which begin as ``context`` says.

    Where the work is broken off, by Ctrl-C or an error, they are stopped at once.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - slow to import
    from multiprocessing import active_children  # noqa: PLC0415

    others = set(active_children())
    executor = ProcessPoolExecutor(workers, context, initializer=_leave_signals_to_the_parent)
    try:
        with _interrupts_wait():  # a process that is just beginning would tell of one
            executor.submit(_begin)
        yield _Pool(executor)
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        executor.shutdown(wait=False)
        raise
    executor.shutdown()


class _Pool:
    """A ``Mapper`` that cancels nothing where the work is broken off.

    ``ProcessPoolExecutor`` trips over cancelled work when its processes are stopped.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], *, chunksize: int = 1
    ) -> Iterator[_Result]:
        parts = [items[start : start + chunksize] for start in range(0, len(items), chunksize)]
        futures = [self._executor.submit(_several, function, part) for part in parts]
        for future in futures:
            yield from future.result()


def _several(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    return [function(item) for item in items]


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    import signal  # noqa: PLC0415 - slow to import

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Nothing: the first task is what starts the processes."""


def _leave_signals_to_the_parent() -> None:
    """A terminal sends Ctrl-C to all processes; one of them is enough to tell of it."""
    import signal  # noqa: PLC0415 - slow to import

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
