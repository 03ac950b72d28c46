"""How many examples a property is tried with: a quarter in ``make test``, all with ``MLPERF_PKG_FULL=1``."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

SHARE = 1 if os.environ.get("MLPERF_PKG_FULL") else 4


def examples(number: int = 100, **more: Any) -> settings:
    """The settings of a test that takes its time."""
    return settings(max_examples=max(number // SHARE, 4), deadline=None, **more)
