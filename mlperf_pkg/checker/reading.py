"""Read all files of a check: in this process, in several, or on the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.power import PowerFile, PowerLog, read_power_log
from mlperf_pkg.run.reading import read_run

if TYPE_CHECKING:
    from mlperf_pkg.infra.processes import Mapper

File: TypeAlias = LogFile | PowerFile

PARALLEL_FROM_BYTES = 8 << 20
_BATCH_FILES, _BATCH_BYTES = 16, 1 << 19  # the most that one task reads, unless a file is larger


class Observer(Protocol):
    """A listener to the progress of reading."""

    def begin(self, files: int, size: int) -> None:
        """Announce the number of files and their total size in bytes."""

    def advance(self, size: int) -> None:
        """Report that a file of this size in bytes was read."""


class Workers(Struct, frozen=True):
    """The processes that read: ``jobs`` of this machine, or the workers of a Dask cluster.

    ``jobs`` None is one per processor; ``scheduler`` is the address of the cluster's scheduler.
    ``prepare`` is called once before processes are forked, to do what each would do otherwise.
    """

    jobs: int | None
    scheduler: str | None
    prepare: Callable[[], None]


def read_all(
    files: Sequence[File], workers: Workers, observer: Observer | None
) -> list[Run | PowerLog]:
    """Return what each file holds, in the order of ``files``.

    Raises:
        OSError: a file cannot be read.
        UserError: the rulebook lacks the round of a log; the cluster does not answer.
    """
    if workers.scheduler is not None:
        files = [replace(file, source=file.source.shared()) for file in files]
    sizes = [file.source.size for file in files]
    if observer:
        observer.begin(len(files), sum(sizes))
    with _mapper(workers, files, sum(sizes)) as mapper:
        return _read_batches(files, sizes, mapper, observer)


def _read_batches(
    files: Sequence[File],
    sizes: Sequence[int],
    mapper: Mapper | None,
    observer: Observer | None,
) -> list[Run | PowerLog]:
    """Read the largest files first, so that no process is left with one at the end."""
    order: Sequence[int] = range(len(files))
    if mapper is not None:
        order = sorted(order, key=sizes.__getitem__, reverse=True)
    batches = _batches(order, sizes)
    tasks = [[files[index] for index in batch] for batch in batches]
    results = mapper.map(_read_batch, tasks) if mapper else map(_read_batch, tasks)
    contents: dict[int, Run | PowerLog] = {}
    for batch, batch_contents in zip(batches, results, strict=True):
        contents.update(zip(batch, batch_contents, strict=True))
        if observer:
            for index in batch:
                observer.advance(sizes[index])
    return [contents[index] for index in range(len(files))]


def _batches(order: Iterable[int], sizes: Sequence[int]) -> list[list[int]]:
    """Group small files into one task, as each task has a cost of its own."""
    batches: list[list[int]] = []
    room = 0
    for index in order:
        if not batches or sizes[index] > room or len(batches[-1]) == _BATCH_FILES:
            batches.append([])
            room = _BATCH_BYTES
        batches[-1].append(index)
        room -= sizes[index]
    return batches


def _read_batch(files: Sequence[File]) -> list[Run | PowerLog]:
    return list(map(_read, files))


def _read(file: File) -> Run | PowerLog:
    """Read one file, which may be opened several times but is fetched from a store once."""
    if file.source.stored:
        file = replace(file, source=file.source.fetched())
    return read_run(file) if isinstance(file, LogFile) else read_power_log(file)


@contextmanager
def _mapper(workers: Workers, files: Sequence[File], size: int) -> Iterator[Mapper | None]:
    """Start the workers; None where this process alone is as fast."""
    if workers.scheduler is not None:
        from mlperf_pkg.infra.cluster import cluster  # noqa: PLC0415 - slow to import

        with cluster(workers.scheduler) as mapper:
            yield mapper
        return
    processes = min(workers.jobs or os.cpu_count() or 1, len(files))
    if processes < 2 or size < PARALLEL_FROM_BYTES:  # noqa: PLR2004
        yield None
        return
    from mlperf_pkg.infra.processes import pool  # noqa: PLC0415 - small checks need none

    workers.prepare()
    # Clients of stores use threads, which do not survive a fork.
    with pool(processes, forked=not any(file.source.stored for file in files)) as mapper:
        yield mapper
