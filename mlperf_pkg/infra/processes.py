"""Worker processes that share work, and end with this process whatever ends it."""

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

from mlperf_pkg.infra.rules_folders import RulesContext, rules_context, set_rules_context

if TYPE_CHECKING:
    from concurrent.futures import Executor

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_MOST_PARTS = 1000  # their indexes fit into the smallest pipe there is
_INDEX_BYTES, _LENGTH_BYTES = 4, 8
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class Mapper(Protocol):
    """Shares work among workers, as ``concurrent.futures.Executor`` does."""

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], /, *, chunksize: int = 1
    ) -> Iterator[_Result]:
        """Yield the results of all items in their order; a worker takes ``chunksize`` at once."""


@contextmanager
def pool(workers: int, *, forked: bool = True) -> Iterator[Mapper]:
    """Provide worker processes: forks of this one where it can fork and has no threads.

    Ctrl-C or an error stops them at once.
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
    """A ``Mapper`` whose workers inherit the function and the items; only results are sent.

    Each worker takes the index of its next part from one pipe that all of them read, and sends
    the results through a pipe of its own. ``ProcessPoolExecutor`` with fork takes 25 ms more for
    its imports, threads and queues (0.29 s instead of 0.26 s for a check of 82 MB by two
    processors), and its workers survive where this process is killed.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._children: dict[int, int] = {}  # process ids by the ends of the pipes read here

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], *, chunksize: int = 1
    ) -> Iterator[_Result]:
        parts = _parts(items, max(chunksize, -(-len(items) // _MOST_PARTS)))
        indexes = _pipe_of_indexes(len(parts))
        try:
            for _ in range(min(self._workers, len(parts))):
                self._fork(indexes, function, parts)
        finally:
            os.close(indexes)
        early: dict[int, list[_Result]] = {}
        results = self._results()
        for index in range(len(parts)):
            while index not in early:
                early.update([next(results)])
            yield from early.pop(index)

    def stop(self) -> None:
        """End the workers that still run."""
        for child in self._children.values():
            os.kill(child, signal.SIGTERM)
        for end in list(self._children):
            self._forget(end)

    def _fork(
        self, indexes: int, function: Callable[[_Item], _Result], parts: Sequence[Sequence[_Item]]
    ) -> None:
        read_end, write_end = os.pipe()
        try:
            with _blocked(_SIGNALS):  # a fork that gets one would raise as this process does
                child = os.fork()
                if not child:
                    for end in (read_end, *self._children):  # else no worker sees its pipe break
                        os.close(end)
                    _work(indexes, write_end, function, parts)
                self._children[read_end] = child
        finally:
            os.close(write_end)

    def _results(self) -> Iterator[tuple[int, Any]]:
        """Yield the index of each part and its results, as they come."""
        ready = select.poll()
        for end in self._children:
            ready.register(end, select.POLLIN)
        while self._children:
            for end, _ in ready.poll():
                if not (head := _read(end, _LENGTH_BYTES)):
                    ready.unregister(end)
                    self._forget(end)
                    continue
                index, results = pickle.loads(_read(end, int.from_bytes(head)))  # noqa: S301 - made by our own fork
                if isinstance(results, Exception):
                    raise results
                yield index, results
        raise RuntimeError("a worker process ended before its work was done")

    def _forget(self, end: int) -> None:
        os.waitpid(self._children.pop(end), 0)
        os.close(end)


def _pipe_of_indexes(count: int) -> int:
    """Return the end to read of a pipe that holds the indexes below ``count``."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"".join(index.to_bytes(_INDEX_BYTES) for index in range(count)))
    os.close(write_end)
    return read_end


def _read(end: int, size: int) -> bytes:
    """Read ``size`` bytes from a pipe; return nothing if it ends before."""
    data = b""
    while len(data) < size:
        if not (more := os.read(end, size - len(data))):
            return b""
        data += more
    return data


def _work(
    indexes: int, end: int, function: Callable[[_Item], _Result], parts: Sequence[Sequence[_Item]]
) -> NoReturn:
    """Send the results of one part after another, then end, also where nobody reads them."""
    with suppress(BaseException):
        _leave_signals_to_the_parent()
        gc.freeze()  # to look through the objects inherited would copy their memory
        with os.fdopen(end, "wb") as stream:
            while index := os.read(indexes, _INDEX_BYTES):
                number = int.from_bytes(index)
                data = pickle.dumps((number, _results_or_error(function, parts[number])), -1)
                stream.write(len(data).to_bytes(_LENGTH_BYTES) + data)
                stream.flush()
    os._exit(0)


def _results_or_error(
    function: Callable[[_Item], _Result], items: Sequence[_Item]
) -> list[_Result] | Exception:
    try:
        return _call_each(function, items)
    except Exception as error:  # noqa: BLE001 - raised again where the results are read
        import traceback  # noqa: PLC0415 - only a defect needs it

        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return error


# ---- processes from scratch ---------------------------------------------------------------


@contextmanager
def _spawned(workers: int) -> Iterator[Mapper]:
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - slow to import
    from multiprocessing import active_children, get_context  # noqa: PLC0415

    others = set(active_children())
    executor = ProcessPoolExecutor(
        workers, get_context("spawn"), initializer=_begin, initargs=(rules_context(),)
    )
    try:
        with _blocked({signal.SIGINT}):  # a process that is just beginning would report one
            executor.submit(_nothing)  # the first task starts the processes
        yield _Pool(executor)
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        executor.shutdown(wait=False)
        raise
    executor.shutdown()


class _Pool:
    """A ``Mapper`` that cancels no work where it is broken off.

    ``ProcessPoolExecutor`` raises on cancelled work when its processes are stopped.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], *, chunksize: int = 1
    ) -> Iterator[_Result]:
        parts = _parts(items, chunksize)
        futures = [self._executor.submit(_call_each, function, part) for part in parts]
        for future in futures:
            yield from future.result()


def _begin(rules: RulesContext) -> None:
    """Prepare a process that was started from scratch."""
    import threading  # noqa: PLC0415 - no fork needs it

    _leave_signals_to_the_parent()
    set_rules_context(rules)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """Without this a worker waits for work for ever once the parent was killed."""
    from multiprocessing import parent_process  # noqa: PLC0415 - slow to import

    if parent := parent_process():
        parent.join()
        os._exit(1)


def _nothing() -> None:
    """Do nothing."""


# ---- both ---------------------------------------------------------------------------------


def _parts(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _call_each(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    return [function(item) for item in items]


@contextmanager
def _blocked(signals: set[signal.Signals]) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_signals_to_the_parent() -> None:
    """A terminal sends Ctrl-C to all processes, of which one is to report it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
