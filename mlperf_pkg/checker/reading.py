"""The reading of all files of a check: here, by processes or by the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from mlperf_pkg.checker.opening import at_once, size_of
from mlperf_pkg.infra.stores import Object
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.power import PowerFile, PowerLog, read_power_log
from mlperf_pkg.run.reading import read_run

if TYPE_CHECKING:
    from mlperf_pkg.infra.processes import Mapper

_File: TypeAlias = LogFile | PowerFile

PARALLEL_FROM_BYTES = 8 << 20
_MOST_AT_ONCE, _BYTES_AT_ONCE = 16, 1 << 19  # files that a process takes together


class Observer(Protocol):
    """Who wants to know how far the reading of logs has come."""

    def begin(self, files: int, size: int) -> None:
        """So many files, of so many bytes, will be read."""

    def advance(self, size: int) -> None:
        """A file of so many bytes was read."""


class Workers(Struct, frozen=True):
    """Who reads: ``jobs`` processes, None for one a processor, or the workers of a Dask cluster.

    ``scheduler`` is the address of that of the cluster. ``prepare`` is called before processes
    are made, which then need not do the same each.
    """

    jobs: int | None
    scheduler: str | None
    prepare: Callable[[], None]


def read_all(
    files: Sequence[_File], workers: Workers, observer: Observer | None
) -> list[Run | PowerLog]:
    """What each file says, in their order.

    Raises:
        OSError: one cannot be read.
        UserError: the rulebook has no such round; the cluster does not answer.
    """
    sizes = list(map(size_of, files))
    if observer:
        observer.begin(len(files), sum(sizes))
    with _executor(workers, files, sum(sizes)) as executor:
        return _shared_out(files, sizes, executor, observer)


def _shared_out(
    files: Sequence[_File],
    sizes: Sequence[int],
    executor: Mapper | None,
    observer: Observer | None,
) -> list[Run | PowerLog]:
    """The largest are read first: none is waited for."""
    order: Sequence[int] = range(len(files))
    if executor is not None:
        order = sorted(order, key=sizes.__getitem__, reverse=True)
    parts = _parts(order, sizes)
    listed = [[files[index] for index in part] for part in parts]
    found = executor.map(_read_several, listed) if executor else map(_read_several, listed)
    read: dict[int, Run | PowerLog] = {}
    for part, results in zip(parts, found, strict=True):
        read.update(zip(part, results, strict=True))
        if observer:
            for index in part:
                observer.advance(sizes[index])
    return [read[index] for index in range(len(files))]


def _parts(order: Iterable[int], sizes: Sequence[int]) -> list[list[int]]:
    """Files to be read together: small ones, as each part costs something to hand over."""
    parts: list[list[int]] = []
    room = 0
    for index in order:
        if not parts or sizes[index] > room or len(parts[-1]) == _MOST_AT_ONCE:
            parts.append([])
            room = _BYTES_AT_ONCE
        parts[-1].append(index)
        room -= sizes[index]
    return parts


def _read_several(files: Sequence[_File]) -> list[Run | PowerLog]:
    return list(map(_read, files))


def _read(file: _File) -> Run | PowerLog:
    if isinstance(file, LogFile):
        return at_once(read_run, file)
    return at_once(read_power_log, file)


@contextmanager
def _executor(workers: Workers, files: Sequence[_File], size: int) -> Iterator[Mapper | None]:
    """Workers of a cluster, if asked for, or processes, where there is enough that they pay."""
    if workers.scheduler is not None:
        from mlperf_pkg.infra.cluster import cluster  # noqa: PLC0415 - slow to import

        with cluster(workers.scheduler) as executor:
            yield executor
        return
    number = min(workers.jobs or os.cpu_count() or 1, len(files))
    if number < 2 or size < PARALLEL_FROM_BYTES:  # noqa: PLR2004
        yield None
        return
    from mlperf_pkg.infra.processes import pool  # noqa: PLC0415 - small checks need none

    workers.prepare()
    # One that talks to a store does so in threads, which no fork survives.
    with pool(number, forked=not any(isinstance(file.open, Object) for file in files)) as executor:
        yield executor
