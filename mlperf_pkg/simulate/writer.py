"""Records on paper, line by line as the official logger writes them.

Not through that logger: it looks up its caller by walking the stack, and makes a JSON encoder, for
every record, which takes nearly all the time of a simulation. ``tests/simulate/test_writer.py``
compares the lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from mlperf_logging.mllog import constants

from mlperf_pkg.log.record import TOKEN
from mlperf_pkg.simulate.trace import Event

_CALLER = {"file": "simulate/writer.py", "lineno": 52}
"""Where each record says that it was logged: always the same, so that the same seed gives the same
bytes in later versions too."""

_TYPES = {"_start": constants.INTERVAL_START, "_stop": constants.INTERVAL_END}
_MARK = TOKEN.decode()
_ENCODE = json.JSONEncoder().encode


def write(timeline: Iterable[tuple[int, Event]], written: float = 1.0) -> bytes:
    """The log that holds these events at these times, in milliseconds since the epoch.

    Where ``written`` is less than 1, that part of the records, and half of the next one.

    Raises:
        TypeError: a value that JSON cannot hold.
    """
    lines = [_line(time_ms, event) for time_ms, event in timeline]
    whole = int(len(lines) * written)
    cut = "".join(line[: len(line) // 2] for line in lines[whole : whole + 1])
    return ("".join(lines[:whole]) + cut).encode("ascii")


def _line(time_ms: int, event: Event) -> str:
    suffix = event.key[event.key.rfind("_") :]
    record = {
        "namespace": constants.DEFAULT_NAMESPACE,
        "time_ms": time_ms,
        "event_type": _TYPES.get(suffix, constants.POINT_IN_TIME),
        "key": event.key,
        "value": event.value,
        "metadata": {**_CALLER, **event.metadata},
    }
    return f"{_MARK}{_ENCODE(record)}\n"
