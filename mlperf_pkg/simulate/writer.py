"""Records on paper, through the official logger."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from mlperf_logging.mllog.mllog import MLLogger

from mlperf_pkg.simulate.trace import Event

_ROOT = re.escape(__file__.rpartition("/simulate/")[0])
"""What the official logger cuts off the name of the calling file, a pattern to it."""


class _Transcript(logging.Logger):
    """A logger that keeps every message, however the process at large has set up logging."""

    def __init__(self) -> None:
        super().__init__("mlperf_pkg.simulate")
        self.propagate = False
        self.lines: list[str] = []

    def log(self, level: int, msg: object, *_: object, **__: object) -> None:
        """Keep a record; what the official logger has to say otherwise is a defect of ours."""
        if level != logging.INFO:
            raise ValueError(str(msg).strip())
        self.lines.append(f"{msg}\n")


def write(timeline: Iterable[tuple[int, Event]], written: float = 1.0) -> bytes:
    """The log that holds these events at these times, in milliseconds since the epoch.

    Where ``written`` is less than 1, that part of the records, and half of the next one.

    Raises:
        ValueError: a value that JSON cannot hold.
    """
    transcript = _Transcript()
    logger = MLLogger(transcript, root_dir=_ROOT)
    for time_ms, event in timeline:
        _record(logger, time_ms, event)
    whole = int(len(transcript.lines) * written)
    cut = "".join(line[: len(line) // 2] for line in transcript.lines[whole : whole + 1])
    return ("".join(transcript.lines[:whole]) + cut).encode("ascii")


def _record(logger: MLLogger, time_ms: int, event: Event) -> None:
    suffixes = {"_start": logger.start, "_stop": logger.end}
    log = next((log for end, log in suffixes.items() if event.key.endswith(end)), logger.event)
    log(event.key, event.value, metadata=dict(event.metadata), time_ms=time_ms)
