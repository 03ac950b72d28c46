"""Worker processes that share work, and end with this process whatever ends it."""

from __future__ import annotations

import gc
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import RulesContext, rules_context, set_rules_context

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_REASON = 300  # characters of a reason
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


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


@contextmanager
def pool(workers: int, *, forked: bool = True) -> Iterator[Mapper]:
    """Provide worker processes: forks of this one where it can fork and has no threads.

    Ctrl-C or an error stops them at once.
    """
    processes = _Pool(workers, forks=forked and sys.platform == "linux")
    try:
        yield processes
    finally:
        processes.stop()


def parts_of(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    """Return the items in parts of this size."""
    return [items[start : start + size] for start in range(0, len(items), size)]


class _Worker(NamedTuple):
    """A process, the end of its pipe, and the parts without results that were sent to it."""

    process: BaseProcess
    connection: Connection
    taken: list[int]


class _Pool:
    """A ``Mapper`` of processes with a pipe each, through which parts are sent and results return.

    Forks inherit the function and the items: only the numbers of the parts are sent to them, one
    ahead, so that none waits for this process. ``ProcessPoolExecutor`` is as fast, but has one pipe
    for the results of all workers: one that is killed while it writes leaves the others, and this
    process, waiting for ever.
    """

    def __init__(self, workers: int, *, forks: bool) -> None:
        self._number, self._forks = workers, forks
        self._workers: dict[Connection, _Worker] = {}
        self._function: Callable[[Any], Any] = id
        self._parts: list[Sequence[Any]] = []
        self._waiting = deque[int]()  # the numbers of the parts to be sent

    def map(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        *,
        chunksize: int = 1,
        instead: Instead[_Result] | None = None,
    ) -> Iterator[_Result]:
        self.stop()  # those of the call before
        self._function, self._parts = function, parts_of(items, chunksize)
        self._waiting = deque(range(len(self._parts)))
        outcomes, early = self._outcomes(), dict[int, list[_Result]]()
        for number in range(len(self._parts)):
            while number not in early:
                other, outcome = next(outcomes)
                early[other] = _results(outcome, len(self._parts[other]), instead)
            yield from early.pop(number)

    def stop(self) -> None:
        """End the workers that still run, all of them also where Ctrl-C comes now."""
        with _blocked():
            for worker in self._workers.values():
                worker.process.terminate()
            for connection in list(self._workers):
                self._end(connection)

    def _outcomes(self) -> Iterator[tuple[int, bytes | WorkerLostError]]:
        """Yield the number of each part and its packed results, as they come.

        A worker that was lost is replaced by another.
        """
        from multiprocessing.connection import wait

        while True:
            new: list[_Worker] = []
            while self._waiting and len(self._workers) < self._number:
                try:
                    new.append(self._start())
                except OSError as error:  # no more processes, files or memory
                    if not self._workers:
                        reason = f"no process can be started: {error.strerror}"
                        raise UserError(f"{reason}; --jobs 1 needs none") from error
                    self._number = len(self._workers)
                    break
                self._send(new[-1])
            for worker in new if self._forks else ():
                self._send(worker)
            for connection in cast("list[Connection]", wait(list(self._workers))):
                worker = self._workers[connection]
                try:
                    outcome: bytes | WorkerLostError = connection.recv_bytes()
                except (EOFError, OSError):
                    outcome = WorkerLostError(self._end(connection))
                    self._waiting.extendleft(reversed(worker.taken[1:]))
                else:
                    self._send(worker)
                if worker.taken:
                    yield worker.taken.pop(0), outcome

    def _start(self) -> _Worker:
        from multiprocessing import get_context

        context: Any = get_context("fork" if self._forks else "spawn")
        ours, theirs = context.Pipe()
        others = [*self._workers, ours]
        inherited = (self._function, self._parts, others) if self._forks else None
        arguments = (theirs, rules_context(), inherited)
        process = context.Process(target=_work, args=arguments, daemon=True)
        with _blocked():  # a process that is just beginning would report Ctrl-C
            process.start()
            worker = self._workers[ours] = _Worker(process, ours, [])
        theirs.close()
        return worker

    def _send(self, worker: _Worker) -> None:
        """Send the next part to a worker, if there is one."""
        if self._waiting:
            number = self._waiting.popleft()
            worker.taken.append(number)
            work = number if self._forks else (self._function, self._parts[number])
            with suppress(OSError):  # it has ended, which is noticed when its results are read
                worker.connection.send(work)

    def _end(self, connection: Connection) -> str:
        """Wait for the end of a worker, and return how it ended."""
        process = self._workers.pop(connection).process
        connection.close()
        process.join()
        code = process.exitcode or 0
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _results(
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
def _blocked() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM for a while, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- in a worker --------------------------------------------------------------------------


def _work(
    connection: Connection,
    rules: RulesContext,
    inherited: tuple[Callable[..., Any], Sequence[Any], Sequence[Connection]] | None,
) -> None:
    """Send the results of one part after another until the other end is closed."""
    # A terminal sends Ctrl-C to all processes, of which one is to report it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if inherited is None:
        set_rules_context(rules)
    else:
        function, parts, others = inherited
        for end in others:  # else no worker sees its pipe break
            end.close()
        gc.freeze()  # to look through the objects inherited would copy their memory
    with suppress(EOFError, OSError):
        while True:
            task = connection.recv()
            work = task if inherited is None else (function, parts[task])
            connection.send_bytes(_packed_results(*work))


def _packed_results(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> bytes:
    """Return the results of all items as bytes, or the exception of one of them."""
    try:
        return pickle.dumps([function(item) for item in items], -1)
    except (pickle.PicklingError, RecursionError, MemoryError) as error:
        return pickle.dumps(WorkerLostError(f"its results cannot be sent: {error!r}"[:_REASON]))
    except Exception as error:  # noqa: BLE001 - raised again where the results are read
        import traceback

        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return pickle.dumps(error, -1)
