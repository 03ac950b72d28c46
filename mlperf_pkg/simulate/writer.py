"""Write records line by line, as the official logger does.

Not through that logger: for every record it walks the stack to look up its caller and creates a
JSON encoder, which takes nearly all the time of a simulation. ``tests/simulate/test_writer.py``
compares the lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.simulate.timeline import Event

_CALLER = {"file": "simulate/writer.py", "lineno": 52}
"""The place in the code that each record names. It stays the same, so that the same seed gives the
same bytes in later versions too."""

_TYPES = {"_start": "INTERVAL_START", "_stop": "INTERVAL_END"}
_MARK = TOKEN.decode()
_ENCODE = json.JSONEncoder().encode


def write(timeline: Iterable[tuple[int, Event]], written: float = 1.0) -> bytes:
    """Return the log of these events at these times, in milliseconds since the epoch.

    Where ``written`` is less than 1, return that part of the records, and half of the next one.

    Raises:
        TypeError: JSON cannot hold a value.
    """
    lines = [_line(time_ms, event) for time_ms, event in timeline]
    whole = int(len(lines) * written)
    cut = "".join(line[: len(line) // 2] for line in lines[whole : whole + 1])
    return ("".join(lines[:whole]) + cut).encode("ascii")


def _line(time_ms: int, event: Event) -> str:
    from mlperf_logging.mllog import constants  # noqa: PLC0415 - imports numpy, which is slow

    suffix = event.key[event.key.rfind("_") :]
    record = {
        "namespace": constants.DEFAULT_NAMESPACE,
        "time_ms": time_ms,
        "event_type": getattr(constants, _TYPES.get(suffix, "POINT_IN_TIME")),
        "key": event.key,
        "value": event.value,
        "metadata": {**_CALLER, **event.metadata},
    }
    return f"{_MARK}{_ENCODE(record)}\n"
