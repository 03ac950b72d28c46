"""How much is tried: a sixth of the examples in ``make test``, all with ``MLPERF_PKG_FULL=1``."""

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hypothesis import settings

T = TypeVar("T")
FULL = bool(os.environ.get("MLPERF_PKG_FULL"))
SHARE = 1 if FULL else 6


def examples(number: int = 100, **more: Any) -> settings:
    """The settings of a test that takes its time."""
    return settings(max_examples=max(number // SHARE, 4), deadline=None, **more)


def newest(rows: Iterable[T], kind: Callable[[T], Any]) -> list[T]:
    """The last row of each kind in ``make test``, all with ``MLPERF_PKG_FULL=1``."""
    return list(rows) if FULL else list({kind(row): row for row in rows}.values())
