"""Where the files of a check are read beyond this machine: the workers of a Dask cluster.

What a worker does depends on the file alone, so that a worker that dies costs time and nothing
else: the scheduler has its work done again.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from mlperf_pkg import __version__
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import data_folder, require
from mlperf_pkg.infra.rules_folders import RulesContext, rules_context, set_rules_context

_Result = TypeVar("_Result")

_ADDRESS = re.compile(r"(tcp|tls)://.+:[0-9]{1,5}")
_SECONDS = 15  # to answer, of a scheduler and of the first worker
_RETRIES = 3
_TASKS = 10_000  # each costs about two milliseconds, whatever it does


@contextmanager
def cluster(scheduler: str) -> Iterator[Executor]:
    """The workers of the Dask cluster with this scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        UserError: Dask is not installed; no scheduler or worker answers; a worker has another
            mlperf-pkg than this; the cluster is lost.
    """
    if not _ADDRESS.fullmatch(scheduler):
        raise UserError(
            f"{scheduler}: no address of a Dask scheduler, which is such as tcp://10.0.0.1:8786"
        )
    dask = require("distributed", "cluster", "--scheduler")
    # What it logs of a connection that breaks is a traceback; we tell of it in words.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    with _connected(dask.Client, scheduler) as client:
        _check_workers(client, scheduler)
        try:
            yield _Batches(client.get_executor(pure=False, retries=_RETRIES))
        except dask.KilledWorker as error:
            raise UserError(f"{scheduler}: workers die of the same logs: {error}") from error
        except CancelledError as error:
            raise UserError(f"{scheduler}: the connection to the scheduler is lost") from error


@contextmanager
def _connected(connect: Callable[..., Any], scheduler: str) -> Iterator[Any]:
    try:
        client = connect(scheduler, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{scheduler}: no Dask scheduler answers: {error}") from error
    with client:
        yield client


class _Batches(Executor):
    """Another executor, which is given several calls at once by ``map``."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self._made = identity()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = partial(fn, *args, **kwargs)
        return self._inner.submit(_call, self._made, rules_context(), call)

    def map(
        self,
        fn: Callable[..., _Result],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[_Result]:
        calls = list(zip(*iterables, strict=False))
        size = max(chunksize, len(calls) // _TASKS)
        futures = [
            self.submit(_each, fn, calls[first : first + size])
            for first in range(0, len(calls), size)
        ]
        return (result for future in futures for result in future.result(timeout))


def _each(fn: Callable[..., _Result], calls: Sequence[tuple[Any, ...]]) -> list[_Result]:
    return [fn(*arguments) for arguments in calls]


def _call(made: str, rules: RulesContext, call: Callable[[], _Result]) -> _Result:
    if identity() != made:  # a worker that has come later
        raise UserError(_other("a worker", identity(), made))
    set_rules_context(rules)
    return call()


# ---- the same on all machines -------------------------------------------------------------


@cache
def identity() -> str:
    """The version of mlperf-pkg, with a digest of its code and of its rulebook."""
    digest = hashlib.sha256()
    package, rules = Path(__file__).parents[1], data_folder("rules")
    files = [(package, path) for path in package.rglob("*.py")]
    files += [(rules, path) for path in rules.rglob("*.yaml")]
    for name, path in sorted((path.relative_to(top).as_posix(), path) for top, path in files):
        digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return f"mlperf-pkg {__version__} ({digest.hexdigest()[:12]})"


def _check_workers(client: Any, scheduler: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError as error:
        raise UserError(f"{scheduler}: no worker is connected to the scheduler") from error
    for worker, found in sorted(client.run(identity, on_error="return").items()):
        if found != identity():
            told = f"no such mlperf-pkg ({found})" if isinstance(found, Exception) else found
            raise UserError(_other(f"{scheduler}: worker {worker}", told, identity()))


def _other(worker: str, found: str, expected: str) -> str:
    return f"{worker} has {found}, but here is {expected}: install the same on all machines"
