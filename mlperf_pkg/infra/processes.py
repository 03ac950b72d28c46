"""Worker processes that share work, and end with this process whatever ends it."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn, TypeVar

from mlperf_pkg.infra.work import (
    SIGNALS,
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

_MOST_PARTS = 1000  # their indexes fit into the smallest pipe there is
_INDEX_BYTES, _LENGTH_BYTES = 4, 8


@contextmanager
def pool(workers: int, *, forked: bool = True) -> Iterator[Mapper]:
    """Provide worker processes: forks of this one where it can fork and has no threads.

    Ctrl-C or an error stops them at once.
    """
    if not forked or sys.platform != "linux":
        from mlperf_pkg.infra.spawned import spawned  # noqa: PLC0415 - slow to import

        with spawned(workers) as executor:
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
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        *,
        chunksize: int = 1,
        instead: Instead[_Result] | None = None,
    ) -> Iterator[_Result]:
        parts = parts_of(items, max(chunksize, -(-len(items) // _MOST_PARTS)))
        indexes = _pipe_of_indexes(len(parts))
        try:
            for _ in range(min(self._workers, len(parts))):
                self._fork(indexes, function, parts)
            early: dict[int, list[_Result]] = {}
            results = self._results(len(parts), lambda: self._fork(indexes, function, parts))
            for index in range(len(parts)):
                while index not in early:
                    number, outcome = next(results)
                    early[number] = outcome_of(outcome, len(parts[number]), instead)
                yield from early.pop(index)
        finally:
            os.close(indexes)

    def stop(self) -> None:
        """End the workers that still run."""
        for child in self._children.values():
            os.kill(child, signal.SIGTERM)
        for end in list(self._children):
            self._forget(end)

    def _fork(
        self, indexes: int, function: Callable[[_Item], _Result], parts: Sequence[Sequence[_Item]]
    ) -> int:
        """Start a worker, and return the end of its pipe."""
        read_end, write_end = os.pipe()
        try:
            with blocked(SIGNALS):  # a fork that gets one would raise as this process does
                child = os.fork()
                if not child:
                    for end in (read_end, *self._children):  # else no worker sees its pipe break
                        os.close(end)
                    _work(indexes, write_end, function, parts)
                self._children[read_end] = child
        finally:
            os.close(write_end)
        return read_end

    def _results(
        self, count: int, start: Callable[[], int]
    ) -> Iterator[tuple[int, bytes | WorkerLostError]]:
        """Yield the index of each part and its results, as they come.

        A worker that was lost is replaced by another, which ``start`` starts. One that is lost
        before it says which part it took is not: the parts of which nothing was heard come last.
        """
        ready, taken = select.poll(), dict[int, int]()  # the parts by the ends of the pipes
        unheard, lost = set(range(count)), "no worker is left"
        for end in self._children:
            ready.register(end, select.POLLIN)
        while self._children:
            for end, _ in ready.poll():
                if end not in taken and (head := _read(end, _INDEX_BYTES)):
                    taken[end] = int.from_bytes(head)
                    unheard.discard(taken[end])
                elif end in taken and (data := _read_results(end)):
                    yield taken.pop(end), data
                else:
                    ready.unregister(end)
                    reason = self._forget(end)
                    lost = reason if reason.startswith("SIG") else lost
                    if end in taken:
                        ready.register(start(), select.POLLIN)
                        yield taken.pop(end), WorkerLostError(reason)
        yield from ((number, WorkerLostError(lost)) for number in unheard)

    def _forget(self, end: int) -> str:
        """Wait for the end of a worker, and return how it ended."""
        _, status = os.waitpid(self._children.pop(end), 0)
        os.close(end)
        if os.WIFSIGNALED(status):
            return signal.Signals(os.WTERMSIG(status)).name
        return f"exit status {os.waitstatus_to_exitcode(status)}"


def _pipe_of_indexes(count: int) -> int:
    """Return the end to read of a pipe that holds the indexes below ``count``."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"".join(index.to_bytes(_INDEX_BYTES) for index in range(count)))
    os.close(write_end)
    return read_end


def _read(end: int, size: int) -> bytes:
    """Read ``size`` bytes from a pipe; return nothing if it ends before."""
    data = bytearray()
    while len(data) < size:
        if not (more := os.read(end, size - len(data))):
            return b""
        data += more
    return bytes(data)


def _read_results(end: int) -> bytes:
    return _read(end, int.from_bytes(_read(end, _LENGTH_BYTES)))


def _work(
    indexes: int, end: int, function: Callable[[_Item], _Result], parts: Sequence[Sequence[_Item]]
) -> NoReturn:
    """Send the results of one part after another, then end, also where nobody reads them."""
    with suppress(BaseException):
        leave_signals_to_the_parent()
        gc.freeze()  # to look through the objects inherited would copy their memory
        data = b""
        with os.fdopen(end, "wb") as stream:
            while index := os.read(indexes, _INDEX_BYTES):
                stream.write(data + index)  # at once, as each write wakes the process that reads
                stream.flush()
                results = packed_results(function, parts[int.from_bytes(index)])
                data = len(results).to_bytes(_LENGTH_BYTES) + results
            stream.write(data)
    os._exit(0)
