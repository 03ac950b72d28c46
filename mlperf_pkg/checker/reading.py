"""Read all files of a check: in this process, in several, or on the workers of a cluster.

What goes wrong in the check of one thing is a finding about it; all else is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Protocol, Self, TypeAlias, TypeVar

from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.load import finding_of, unchecked_of
from mlperf_pkg.run.model import LogFile, Run, unread_run
from mlperf_pkg.run.power import PowerFile, PowerLog, read_power_log, unread_power_log
from mlperf_pkg.run.reading import read_run

if TYPE_CHECKING:
    from mlperf_pkg.infra.parallel import Mapper, WorkerLostError


File: TypeAlias = LogFile | PowerFile

PARALLEL_FROM_BYTES = 11 << 20  # with what is added for each file
_SMALLEST_BATCH = 1 << 19  # bytes
_LARGEST_BATCH = 1 << 23  # bytes
_BATCHES = 4  # at least, for each process, from the files that are not yet in a batch
_LARGE_FILE = 1 << 20  # bytes
_FILE_BYTES = 1 << 15  # added to the size of each file, as opening and judging it takes time


class Observer(Protocol):
    """A listener to the progress of reading."""

    def begin(self, files: int, size: int) -> None:
        """Announce the number of files and their total size in bytes."""

    def advance(self, size: int) -> None:
        """Report that a file of this size in bytes was read."""


def read_all(
    files: Sequence[File],
    jobs: int,
    scheduler: str | None,
    observer: Observer | None,
) -> Generator[Run | PowerLog]:
    """Yield what each file holds, in the order of ``files``, while processes read the next ones.

    These are ``jobs`` processes of this machine, or the workers of the Dask cluster with the
    address ``scheduler``. What cannot be read, for whatever reason, has a finding that says so.

    Raises:
        UserError: the rulebook lacks the round of a log; the cluster does not answer.
    """
    # A cluster may have any number of workers.
    processes = None if scheduler is not None else jobs
    if scheduler is not None:
        files = [replace(file, source=file.source.shared()) for file in files]
    sizes = [size_of(file.source) for file in files]
    if observer:
        observer.begin(len(files), sum(sizes))
    work = sum(sizes) + len(files) * _FILE_BYTES
    with ExitStack() as stack:
        mapper: Mapper | None = None  # where this process alone is as fast
        if scheduler is not None:
            from mlperf_pkg.infra.cluster import cluster

            mapper = stack.enter_context(cluster(scheduler))
        elif min(processes or 1, len(files)) > 1 and work >= PARALLEL_FROM_BYTES:
            from mlperf_pkg.infra.parallel import pool  # noqa: PLC0415 - small checks need none

            # Clients of stores use threads, which do not survive a fork.
            is_forked = not any(file.source.stored for file in files)
            mapper = stack.enter_context(pool(min(processes or 1, len(files)), forked=is_forked))
        yield from _read_batches(files, sizes, processes, mapper, observer)


def _read_batches(
    files: Sequence[File],
    sizes: Sequence[int],
    processes: int | None,
    mapper: Mapper | None,
    observer: Observer | None,
) -> Iterator[Run | PowerLog]:
    """Read the largest files first, so that no process is left with one at the end.

    All others are read in their order, so that submissions are complete early, and in batches:
    logs of one benchmark and system have most values in common, which a process checks once.
    """
    order: Sequence[int] = range(len(files))
    if mapper is not None:
        order = sorted(order, key=lambda index: max(sizes[index], _LARGE_FILE), reverse=True)
    batches = _batches(order, sizes, processes)
    tasks = [[files[index] for index in batch] for batch in batches]
    results: Iterable[list[Run | PowerLog] | None] = map(_read_batch, tasks)
    if mapper:  # the files of a worker that was lost are read again, each alone
        results = mapper.map(_read_batch, tasks, instead=lambda _: None)
    contents: dict[int, Run | PowerLog] = {}
    done = 0
    for batch, batch_contents in zip(batches, results, strict=True):
        contents.update(zip(batch, batch_contents or (), strict=False))
        if observer:
            for index in batch:
                observer.advance(sizes[index])
        while done in contents:
            yield contents.pop(done)
            done += 1
    for index in range(done, len(files)):
        if index not in contents and mapper:
            contents[index] = _read_alone(files[index], mapper)
        yield contents.pop(index)


def _read_alone(file: File, mapper: Mapper) -> Run | PowerLog:
    """Read a file in a process that reads no other; if that ends, twice, a finding says so."""

    def unread(loss: WorkerLostError) -> Run | PowerLog:
        message = "this file was not checked, as the process reading it ended twice ({found:s})"
        path = file.source.label
        reason = loss.reason
        return _unread(file, unchecked_of("CHECK102", message, path, found=reason))

    return next(iter(mapper.map(_read, [file], instead=unread)))


def size_of(source: Source) -> int:
    """Return the size of a file in bytes, 0 if it has vanished since it was found."""
    try:
        return source.size
    except OSError:
        return 0


def _batches(order: Sequence[int], sizes: Sequence[int], processes: int | None) -> list[list[int]]:
    """Group files into batches, the last ones small, so that no process waits for another.

    All batches are small if the number of ``processes`` is not known.
    """
    batches: list[list[int]] = []
    rest = sum(sizes) + _FILE_BYTES * len(sizes)
    room = 0
    for index in order:
        if not batches or sizes[index] > room:
            batches.append([])
            share = rest // (_BATCHES * processes) if processes else 0
            room = min(max(share, _SMALLEST_BATCH), _LARGEST_BATCH)
        batches[-1].append(index)
        room -= sizes[index] + _FILE_BYTES
        rest -= sizes[index] + _FILE_BYTES
    return batches


def _read_batch(files: Sequence[File]) -> list[Run | PowerLog]:
    return list(map(_read, files))


def _read(file: File) -> Run | PowerLog:
    """Read one file; if that fails, what is returned has the finding that it does.

    It may be opened several times but is fetched from a store once.
    """
    kind = "log" if isinstance(file, LogFile) else "power log"
    with Guard(file.source.label, f"reading this {kind}") as guard:
        fetched = file
        if file.source.stored:
            fetched = replace(file, source=file.source.fetched())
        if isinstance(fetched, PowerFile):
            return read_power_log(fetched)
        try:
            return read_run(fetched)
        except OSError as error:
            message = "the log cannot be read: {found:s}"
            reason = error.strerror or str(error)
            finding = finding_of("LOG113", message, fetched.source.label, found=reason)
            return unread_run(fetched, finding)
    return _unread(file, guard.finding)


def _unread(file: File, finding: Unchecked) -> Run | PowerLog:
    if isinstance(file, LogFile):
        return unread_run(file, finding)
    return unread_power_log(file, finding)


# ---- guards -------------------------------------------------------------------------------

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")

_SHOWN = 200  # characters of the text of an exception, which may hold some of a hostile file


class Guard:
    """Ends a ``with`` block in which an exception is raised, and makes a finding of it.

    ``action`` says what the block does to ``path``: "reading this log". ``finding`` exists only if
    the block was ended so; ``--debug`` shows the traceback. A ``UserError`` is not caught: it is
    about the command, not about ``path``.
    """

    finding: Unchecked

    def __init__(self, path: str, action: str) -> None:
        """Guard what is done to a path."""
        self._path = path
        self._action = action

    def __enter__(self) -> Self:
        """Begin the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        """End the block; return whether its exception is now a finding."""
        if not isinstance(error, Exception) or isinstance(error, UserError):
            return False
        import logging  # noqa: PLC0415 - only a defect needs it

        logger = logging.getLogger("mlperf_pkg")
        logger.debug("%s: %s", visible(self._path), self._action, exc_info=error)
        self.finding = defect(self._path, self._action, error)
        return True


def guarded(
    path: str,
    action: str,
    function: Callable[_Arguments, _Result],
    *arguments: _Arguments.args,
    **named: _Arguments.kwargs,
) -> _Result | Unchecked:
    """Return the result of a function, or the finding of a ``Guard`` around it.

    Raises:
        UserError: as the function.
    """
    with Guard(path, action) as guard:
        return function(*arguments, **named)
    return guard.finding


def defect(path: str, action: str, error: Exception) -> Unchecked:
    """Return the finding that an exception ended the check of ``path``, or of its reading."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        message = "this file or folder was not checked, as it cannot be read ({found:s})"
        return unchecked_of("TREE114", message, path, found=reason)
    text = visible(f"{type(error).__name__}: {error}".removesuffix(": "))
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    message = f"mlperf-pkg did not finish {action} because of an internal error ({{found:s}})"
    return unchecked_of("CHECK101", message, path, found=shown)
