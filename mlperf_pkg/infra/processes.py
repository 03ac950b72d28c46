"""Processes to share work among, which end with this one."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_MOST_PARTS = 1000  # a ticket of each has room in the smallest of pipes
_TICKET_BYTES, _LENGTH_BYTES = 4, 8
_ENDING = {signal.SIGINT, signal.SIGTERM}


class Mapper(Protocol):
    """What shares work among workers, as ``concurrent.futures.Executor`` does."""

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], /, *, chunksize: int = 1
    ) -> Iterator[_Result]:
        """The results of all items, in their order; a worker takes ``chunksize`` at once."""


@contextmanager
def pool(workers: int, *, forked: bool = True) -> Iterator[Mapper]:
    """So many processes: forks of this one, where it can be forked and has no threads.

    Where the work is broken off, by Ctrl-C or an error, they are stopped at once.
    """
    if not forked or sys.platform != "linux":
        with _spawned(workers) as executor:
            yield executor
        return
    forks = _Forks(workers)
    try:
        yield forks
    finally:
        forks.stop()


# ---- forks --------------------------------------------------------------------------------


class _Forks:
    """A ``Mapper`` whose workers have all items already: only results are handed over.

    Each takes the next part of the work by a ticket from a pipe that all of them read, and sends
    what came of it through a pipe of its own.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._children: dict[int, int] = {}  # by the end of the pipe that is read here

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], *, chunksize: int = 1
    ) -> Iterator[_Result]:
        size = max(chunksize, -(-len(items) // _MOST_PARTS))
        parts = _parted(items, size)
        tickets, end = os.pipe()
        try:
            os.write(end, b"".join(map(_ticket, range(len(parts)))))
            os.close(end)
            for _ in range(min(self._workers, len(parts))):
                self._fork(tickets, function, parts)
        finally:
            os.close(tickets)
        early: dict[int, list[_Result]] = {}
        results = self._results()
        for index in range(len(parts)):
            while index not in early:
                early.update([next(results)])
            yield from early.pop(index)

    def stop(self) -> None:
        """End those that are not at their end yet."""
        for child in self._children.values():
            os.kill(child, signal.SIGTERM)
        for end in list(self._children):
            self._leave(end)

    def _fork(
        self, tickets: int, function: Callable[[_Item], _Result], parts: Sequence[Sequence[_Item]]
    ) -> None:
        here, there = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # of which a fork would tell
        try:
            child = os.fork()
            if not child:
                for end in (here, *self._children):  # or nobody here would be missed
                    os.close(end)
                _work(tickets, there, function, parts)
            self._children[here] = child
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(there)

    def _results(self) -> Iterator[tuple[int, Any]]:
        """The number of each part and its results, as they come."""
        ready = select.poll()
        for end in self._children:
            ready.register(end, select.POLLIN)
        while self._children:
            for end, _ in ready.poll():
                if not (head := _exactly(end, _LENGTH_BYTES)):
                    ready.unregister(end)
                    self._leave(end)
                    continue
                index, found = pickle.loads(_exactly(end, int.from_bytes(head)))  # noqa: S301 - made by our own fork
                if isinstance(found, Exception):
                    raise found
                yield index, found
        raise RuntimeError("a process was ended before its work was done")

    def _leave(self, end: int) -> None:
        os.waitpid(self._children.pop(end), 0)
        os.close(end)


def _ticket(index: int) -> bytes:
    return index.to_bytes(_TICKET_BYTES)


def _exactly(end: int, size: int) -> bytes:
    """So many bytes of a pipe; nothing at its end, also where that comes too early."""
    data = b""
    while len(data) < size:
        if not (more := os.read(end, size - len(data))):
            return b""
        data += more
    return data


def _work(
    tickets: int, end: int, function: Callable[[_Item], _Result], parts: Sequence[Sequence[_Item]]
) -> NoReturn:
    """What a fork does, and nothing after it. Where nobody reads its results any more it ends."""
    with suppress(BaseException):
        _leave_signals_to_the_parent()
        gc.freeze()  # to look through what is here already would copy its memory
        with os.fdopen(end, "wb") as stream:
            while ticket := os.read(tickets, _TICKET_BYTES):
                index = int.from_bytes(ticket)
                data = pickle.dumps((index, _tried(function, parts[index])), -1)
                stream.write(len(data).to_bytes(_LENGTH_BYTES) + data)
                stream.flush()
    os._exit(0)


def _tried(
    function: Callable[[_Item], _Result], items: Sequence[_Item]
) -> list[_Result] | Exception:
    try:
        return _several(function, items)
    except Exception as error:  # noqa: BLE001 - it is raised again where the results are read
        import traceback  # noqa: PLC0415 - only a defect needs it

        error.add_note(f"in a process of its own:\n{traceback.format_exc()}")
        return error


# ---- processes from scratch ---------------------------------------------------------------


@contextmanager
def _spawned(workers: int) -> Iterator[Mapper]:
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - slow to import
    from multiprocessing import active_children, get_context  # noqa: PLC0415

    others = set(active_children())
    executor = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_leave_signals_to_the_parent
    )
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
        parts = _parted(items, chunksize)
        futures = [self._executor.submit(_several, function, part) for part in parts]
        for future in futures:
            yield from future.result()


def _parted(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _several(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    return [function(item) for item in items]


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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
