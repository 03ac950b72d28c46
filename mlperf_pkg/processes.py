"""Processes to share work among, which end with this one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def pool(workers: int) -> Iterator[Executor]:
    """An executor of so many processes.

    Where the work is broken off, by Ctrl-C or an error, they are stopped at once.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - slow to import
    from multiprocessing import active_children  # noqa: PLC0415

    others = set(active_children())
    executor = ProcessPoolExecutor(workers, initializer=_leave_signals_to_the_parent)
    try:
        with _interrupts_wait():  # a process that is just beginning would tell of one
            executor.submit(_begin)
        yield executor
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        executor.shutdown(wait=False)
        raise
    executor.shutdown()


def spread(
    executor: Executor, work: Callable[[_Item], _Result], items: Sequence[_Item], at_once: int = 1
) -> Iterator[_Result]:
    """The results of all items, in their order; a process takes so many of them ``at_once``.

    As ``Executor.map``, but nothing is cancelled where the work is broken off: the executor trips
    over cancelled work when its processes are stopped.
    """
    parts = [items[start : start + at_once] for start in range(0, len(items), at_once)]
    futures = [executor.submit(_several, work, part) for part in parts]
    for future in futures:
        yield from future.result()


def _several(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    return [work(item) for item in items]


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Nothing: the first task is what starts the processes."""


def _leave_signals_to_the_parent() -> None:
    """A terminal sends Ctrl-C to all processes; one of them is enough to tell of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
