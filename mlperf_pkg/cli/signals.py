"""Ending early without leaving partial files."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_cleanly() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that partial files are removed on the way out."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
