"""Worker processes that are started from scratch, where this process cannot be forked."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import TypeVar

from mlperf_pkg.infra.resources import RulesContext, rules_context, set_rules_context
from mlperf_pkg.infra.work import (
    Instead,
    Mapper,
    WorkerLostError,
    blocked,
    leave_signals_to_the_parent,
    outcome_of,
    packed_results,
    parts_of,
)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def spawned(workers: int) -> Iterator[Mapper]:
    """Provide worker processes that are started from scratch."""
    others = set(active_children())
    workers_pool = _Pool(workers)
    try:
        yield workers_pool
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        workers_pool.shut_down(wait=False)
        raise
    workers_pool.shut_down()


class _Pool:
    """A ``Mapper`` that cancels no work where it is broken off.

    ``ProcessPoolExecutor`` raises on cancelled work when its processes are stopped. It is of no use
    once one of its processes was lost: another then takes its place.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._executor = _executor(workers)
        self._is_broken = False

    def shut_down(self, *, wait: bool = True) -> None:
        self._executor.shutdown(wait=wait)

    def map(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        *,
        chunksize: int = 1,
        instead: Instead[_Result] | None = None,
    ) -> Iterator[_Result]:
        if self._is_broken:
            self.shut_down()
            self._executor, self._is_broken = _executor(self._workers), False
        parts = parts_of(items, chunksize)
        futures = [self._submit(function, part) for part in parts]
        for future, part in zip(futures, parts, strict=True):
            yield from outcome_of(self._result_of(future), len(part), instead)

    def _submit(
        self, function: Callable[[_Item], _Result], part: Sequence[_Item]
    ) -> Future[bytes] | None:
        try:
            return self._executor.submit(packed_results, function, part)
        except RuntimeError:  # a process has ended before all work was submitted
            return None

    def _result_of(self, future: Future[bytes] | None) -> bytes | WorkerLostError:
        try:
            if future is not None:
                return future.result()
        except BrokenExecutor:
            pass
        self._is_broken = True
        return WorkerLostError("a signal")


def _executor(workers: int) -> Executor:
    executor = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_begin, initargs=(rules_context(),)
    )
    with blocked({signal.SIGINT}):  # a process that is just beginning would report one
        executor.submit(_nothing)  # the first task starts the processes
    return executor


def _begin(rules: RulesContext) -> None:
    """Prepare a process that was started from scratch."""
    leave_signals_to_the_parent()
    set_rules_context(rules)
    Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """Without this a worker waits for work for ever once the parent was killed."""
    if parent := parent_process():
        parent.join()
        os._exit(1)


def _nothing() -> None:
    """Do nothing."""
