"""Processes to share work among, which end with this one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Executor


@contextmanager
def pool(workers: int) -> Iterator[Executor]:
    """An executor of so many processes.

    Where the work is broken off, by Ctrl-C or an error, they are stopped at once.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - slow to import
    from multiprocessing import active_children  # noqa: PLC0415

    others = set(active_children())
    executor = ProcessPoolExecutor(workers, initializer=_leave_signals_to_the_parent)
    try:
        yield executor
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def _leave_signals_to_the_parent() -> None:
    """A terminal sends Ctrl-C to all processes; one of them is enough to tell of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
