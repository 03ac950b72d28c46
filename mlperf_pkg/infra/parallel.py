"""Worker processes that share work, and end with this process whatever ends it."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from msgspec import Struct

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import RulesContext, rules_context, set_rules_context

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    _Channel: TypeAlias = "Connection | _PipePair"

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_REASON = 300  # characters of a reason
_NUMBER_BYTES = 8  # of the number of an item in a pipe, or of the size of a result
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


class Mapper(ABC):
    """Shares work among workers, as ``concurrent.futures.Executor`` does."""

    def map(
        self,
        function: Callable[[_Item], _Result],
        items: Sequence[_Item],
        *,
        instead: Callable[[WorkerLostError], _Result] | None = None,
    ) -> Iterator[_Result]:
        """Yield the results of all items in their order.

        ``instead`` returns what takes the place of the result where the worker was lost.

        Raises:
            WorkerLostError: a worker was lost, and ``instead`` does not say what to do then.
        """

        def result(outcome: tuple[_Result] | Exception) -> _Result:
            if isinstance(outcome, tuple):
                return outcome[0]
            if instead is None or not isinstance(outcome, WorkerLostError):
                raise outcome
            return instead(outcome)

        return map(result, self.outcomes(function, items))

    @abstractmethod
    def outcomes(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Result] | Exception]:
        """Yield the result of each item, alone in a tuple, or the error in place of it."""


@contextmanager
def pool(workers: int, *, forked: bool = True) -> Iterator[Mapper]:
    """Provide worker processes: forks of this one where it can fork and has no threads.

    Ctrl-C or an error stops them at once.
    """
    processes = _Pool(workers, forks=forked and sys.platform == "linux")
    try:
        yield processes
    finally:
        try:
            processes.stop()
        except KeyboardInterrupt:  # which came before it was held back
            processes.stop()
            raise


# ``Process`` and ``Connection`` of multiprocessing would do, but take 20 ms to import.


class _Fork:
    """A fork of this process, which calls a function and exits without cleaning up."""

    exitcode = 0

    def __init__(self, function: Callable[[], None]) -> None:
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                function()
                status = 0
            except BaseException:  # noqa: BLE001 - no fork goes on in the code of its parent
                sys.__excepthook__(*sys.exc_info())
            finally:
                os._exit(status)

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)

    def join(self) -> None:
        with suppress(ChildProcessError):  # where SIGCHLD is ignored
            self.exitcode = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


class _PipePair:
    """This side of a pair of pipes: one brings data in, the other takes it out."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        # With a buffer of one byte, what follows a message stays in the pipe, where poll sees it.
        self._incoming = BufferedReader(FileIO(incoming, closefd=False), 1)
        self._outgoing = outgoing

    def fileno(self) -> int:
        return self._incoming.fileno()

    def close(self) -> None:
        os.close(self.fileno())
        os.close(self._outgoing)

    def send(self, number: int) -> None:
        os.write(self._outgoing, number.to_bytes(_NUMBER_BYTES))

    def recv(self) -> int:
        return int.from_bytes(self._read(_NUMBER_BYTES))

    def send_bytes(self, data: bytes) -> None:
        self.send(len(data))
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._outgoing, rest) :]

    def recv_bytes(self) -> bytes:
        return self._read(self.recv())

    def _read(self, size: int) -> bytes:
        data = self._incoming.read(size)
        if len(data) < size:
            raise EOFError
        return data


class _Worker(Struct, frozen=True):
    """A process, the end of its pipe, and the items without results that were sent to it."""

    process: BaseProcess | _Fork
    connection: _Channel
    taken: list[int]


class _Pool(Mapper):
    """A ``Mapper`` of processes with a pipe each, through which items are sent and results return.

    Forks inherit the function and the items: only the numbers of the items are sent to them, one
    ahead, so that none waits for this process. ``ProcessPoolExecutor`` is as fast, but has one pipe
    for the results of all workers: one that is killed while it writes leaves the others, and this
    process, waiting for ever.
    """

    def __init__(self, workers: int, *, forks: bool) -> None:
        self._number = workers
        self._forks = forks
        self._workers: dict[_Channel, _Worker] = {}
        self._function: Callable[[Any], Any] = id
        self._items: Sequence[Any] = ()
        self._waiting = deque[int]()  # the numbers of the items to be sent

    def outcomes(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Result] | Exception]:
        self.stop()  # the workers of the call before
        self._function = function
        self._items = items
        self._waiting = deque(range(len(items)))
        arrivals = self._arrivals()
        early = dict[int, Any]()
        for number in range(len(items)):
            while number not in early:
                other, outcome = next(arrivals)
                if isinstance(outcome, Exception) and not isinstance(outcome, WorkerLostError):
                    raise outcome  # at once, whatever is before it
                early[other] = outcome
            yield early.pop(number)

    def stop(self) -> None:
        """End the workers that still run, all of them also where Ctrl-C comes now."""
        with _blocked():
            for worker in self._workers.values():
                worker.process.terminate()
            for connection in list(self._workers):
                self._end(connection)

    def _arrivals(self) -> Iterator[tuple[int, Any]]:
        """Yield the number of each item and its outcome, as they come.

        A worker that was lost is replaced by another.
        """
        while True:
            new: list[_Worker] = []
            while self._waiting and len(self._workers) < self._number:
                try:
                    new.append(self._start())
                except OSError as error:  # no more processes, files or memory
                    if not self._workers:
                        reason = f"no process can be started: {error.strerror}"
                        raise UserError(f"{reason}; --jobs 1 needs no other process") from error
                    self._number = len(self._workers)
                    break
                self._send(new[-1])
            for worker in new if self._forks else ():
                self._send(worker)
            for connection in self._ready():
                worker = self._workers[connection]
                # None of a worker that has nothing to do: it was ended, or has ended.
                number = worker.taken.pop(0) if worker.taken else None
                try:
                    data = connection.recv_bytes()
                except (EOFError, OSError):
                    outcome = WorkerLostError(self._end(connection))
                    self._waiting.extendleft(reversed(worker.taken))
                else:
                    self._send(worker)
                    outcome = pickle.loads(data)  # noqa: S301 - ours
                if number is not None:
                    yield number, outcome

    def _ready(self) -> list[_Channel]:
        """Wait until workers send something or end; return the ends of their pipes."""
        if not self._forks:
            from multiprocessing.connection import wait

            return cast("list[_Channel]", wait(cast("list[Connection]", list(self._workers))))
        ends = {end.fileno(): end for end in self._workers}
        poll = select.poll()
        for number in ends:
            poll.register(number, select.POLLIN)
        return [ends[number] for number, _ in poll.poll()]

    def _start(self) -> _Worker:
        with _blocked():  # a process that is just beginning would report Ctrl-C
            worker = self._fork() if self._forks else _spawned()
            self._workers[worker.connection] = worker
        return worker

    def _fork(self) -> _Worker:
        opened: list[int] = []
        try:
            task_out, task_in = os.pipe()
            opened += [task_out, task_in]
            result_out, result_in = os.pipe()
            opened += [result_out, result_in]
            ours = _PipePair(result_out, task_in)
            theirs = _PipePair(task_out, result_in)
            inherited = (self._function, self._items, [*self._workers, ours])
            process = _Fork(lambda: _work(theirs, rules_context(), inherited))
        except BaseException:
            for descriptor in opened:
                os.close(descriptor)
            raise
        theirs.close()
        return _Worker(process, ours, [])

    def _send(self, worker: _Worker) -> None:
        """Send the next item to a worker, or end one that has no more to do."""
        if self._waiting:
            number = self._waiting.popleft()
            worker.taken.append(number)
            work: Any = number if self._forks else (self._function, self._items[number])
            with suppress(OSError):  # it has ended, which is noticed when its results are read
                worker.connection.send(work)
        elif not worker.taken:
            worker.process.terminate()  # so that its memory is freed while others work

    def _end(self, connection: _Channel) -> str:
        """Wait for the end of a worker, and return how it ended."""
        process = self._workers.pop(connection).process
        connection.close()
        process.join()
        code = process.exitcode or 0
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _spawned() -> _Worker:
    """Start a worker in a new interpreter."""
    from multiprocessing import get_context

    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, rules_context(), None), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, [])


@contextmanager
def _blocked() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM for a while, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # which blocks nothing
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---- in a worker --------------------------------------------------------------------------


def _work(
    connection: _Channel,
    rules: RulesContext,
    inherited: tuple[Callable[..., Any], Sequence[Any], Sequence[_Channel]] | None,
) -> None:
    """Send the outcome of one item after another until the other end is closed."""
    # A terminal sends Ctrl-C to all processes, of which one is to report it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if inherited is None:
        set_rules_context(rules)
    else:
        function, items, others = inherited
        for end in others:  # else no worker sees its pipe break
            end.close()
        gc.freeze()  # to look through the objects inherited would copy their memory
    with suppress(EOFError, OSError):
        while True:
            task: Any = connection.recv()
            work = task if inherited is None else (function, items[task])
            connection.send_bytes(_packed(*work))


def _packed(function: Callable[[_Item], object], item: _Item) -> bytes:
    """Return the outcome of an item as bytes."""
    try:
        return pickle.dumps((function(item),), -1)
    except (pickle.PicklingError, RecursionError, MemoryError) as error:
        return pickle.dumps(
            WorkerLostError(f"the results of the process cannot be sent: {error!r}"[:_REASON])
        )
    except Exception as error:  # noqa: BLE001 - raised again where the results are read
        import traceback

        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return pickle.dumps(error, -1)
