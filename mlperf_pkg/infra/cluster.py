"""Share work among the workers of a Dask cluster.

A result depends only on the arguments of its call, so a worker that is lost costs nothing but
time: the scheduler gives its work to another.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, wait
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

from mlperf_pkg import __version__
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra import resources
from mlperf_pkg.infra.parallel import Mapper, WorkerLostError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_ADDRESS = re.compile(r"(tcp|tls)://.+:[0-9]{1,5}")
_SECONDS = 15  # that the scheduler, and a worker where there is none, have to answer
_RETRIES = 3
_TASKS = 10_000  # the most there are: the scheduler takes about 2 ms for each


@contextmanager
def cluster(scheduler: str) -> Iterator[Mapper]:
    """Provide the workers of the Dask cluster with this scheduler (``tcp://10.0.0.1:8786``).

    Raises:
        UserError: Dask is not installed; no scheduler or worker answers, or none does any more; a
            worker has a different mlperf-pkg; the connection is lost.
    """
    if not _ADDRESS.fullmatch(scheduler):
        expected = "expected an address such as tcp://10.0.0.1:8786"
        raise UserError(f"{scheduler}: not the address of a Dask scheduler; {expected}")
    dask = resources.require("distributed", "cluster", "--scheduler")
    # It logs a traceback for a broken connection, which we report in words.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        connected = dask.Client(scheduler, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{scheduler}: no Dask scheduler answers: {reason_of(error)}") from error
    with connected as client:
        _check_workers(client, scheduler)
        executor = client.get_executor(pure=False, retries=_RETRIES)
        try:
            yield _Batches(
                executor, dask.KilledWorker, partial(_wait_for_worker, client, scheduler)
            )
        except WorkerLostError as error:
            reason = f"several workers were lost during the same work: {error.reason}"
            raise UserError(f"{scheduler}: {reason}") from error
        except CancelledError as error:
            raise UserError(f"{scheduler}: the connection to the scheduler is lost") from error


class _Batches(Mapper):
    """A ``Mapper`` that submits several items in one task.

    Where a result takes long, ``wait`` is called: it raises an error where no worker is left.
    """

    def __init__(self, inner: Executor, killed: type[Exception], wait: Callable[[], None]) -> None:
        self._inner = inner
        self._killed = killed
        self._wait = wait

    def submit(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Future[list[tuple[_Result]]]:
        return self._inner.submit(_call, identity(), resources.rules_context(), function, items)

    def outcomes(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Result] | Exception]:
        size = max(1, len(items) // _TASKS)
        parts = [items[start : start + size] for start in range(0, len(items), size)]
        futures = [self.submit(function, part) for part in parts]
        return chain.from_iterable(map(self._outcomes_of, futures, map(len, parts)))

    def _outcomes_of(
        self, future: Future[list[tuple[_Result]]], size: int
    ) -> Sequence[tuple[_Result] | Exception]:
        while not _is_done(future):
            self._wait()
        try:
            return future.result()
        except self._killed as error:
            return [WorkerLostError(str(error))] * size


def _is_done(future: Future[Any]) -> bool:
    """Wait for a while, and return whether the result is there."""
    return not wait([future], timeout=_SECONDS).not_done


def _call(
    expected: str,
    rules: resources.RulesContext,
    function: Callable[[_Item], _Result],
    items: Sequence[_Item],
) -> list[tuple[_Result]]:
    if identity() != expected:  # a worker that joined later
        raise UserError(_difference("a worker", identity(), expected))
    resources.set_rules_context(rules)
    return [(function(item),) for item in items]


# ---- the same on all machines -------------------------------------------------------------


@cache
def identity() -> str:
    """Return the version of mlperf-pkg with a digest of its code and of its rulebook."""
    rules = resources.data_folder("rules")
    digest = resources.digest_of((resources.PACKAGE, "*.py"), (rules, resources.RULES))
    return f"mlperf-pkg {__version__} ({digest[:12]})"


def _check_workers(client: Any, scheduler: str) -> None:
    _wait_for_worker(client, scheduler)
    for worker, answer in sorted(client.run(identity, on_error="return").items()):
        if answer != identity():
            theirs = f"no usable mlperf-pkg ({answer})" if isinstance(answer, Exception) else answer
            raise UserError(_difference(f"{scheduler}: worker {worker}", theirs, identity()))


def _wait_for_worker(client: Any, scheduler: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError as error:
        raise UserError(f"{scheduler}: no worker is connected to the scheduler") from error
    except OSError as error:
        raise UserError(f"{scheduler}: the connection to the scheduler is lost") from error


def _difference(worker: str, theirs: str, ours: str) -> str:
    return f"{worker} has {theirs}, this machine has {ours}: install the same on all machines"
