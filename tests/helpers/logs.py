"""Simulated logs, and ways to spoil them, for tests of everything above the reader."""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile, Run
from mlperf_pkg.run.reading import read_run
from mlperf_pkg.simulate import RunPlan, simulate_run

_RECORD = re.compile(rb":::MLLOG (\{.*\})")


@lru_cache
def good_log(
    benchmark: str = "resnet",
    division: str = "closed",
    round_: str = "2.0",
    optimizer: str | None = None,
    *,
    seed: int = 1,
    **more: Any,
) -> bytes:
    """Return a log that obeys the rules, unless it is to fail."""
    more = {"round": round_, "benchmark": benchmark, "division": division, **more}
    plan = RunPlan(system="ipu-pod16", organization="Test", optimizer=optimizer, **more)
    return simulate_run(plan, seed)


def records(log: bytes) -> list[dict[str, Any]]:
    """The records of a log as JSON objects."""
    return [json.loads(str(match[1], "utf-8", "surrogatepass")) for match in _RECORD.finditer(log)]


def joined(fields: list[dict[str, Any]]) -> bytes:
    """A log of these records, one a line."""
    return b"".join(b":::MLLOG " + json.dumps(record).encode() + b"\n" for record in fields)


def line(key: str, minutes: float, value: Any = None, **metadata: Any) -> bytes:
    """A record on a line of its own."""
    time_ms = minutes * 60_000
    return joined([{"key": key, "time_ms": time_ms, "value": value, "metadata": metadata}])


def rewritten(log: bytes, key: str, rewrite: Callable[[dict[str, Any]], bytes]) -> bytes:
    """The records of a log, those of a key as ``rewrite`` has them; the others are not parsed."""
    name = json.dumps(key).encode()
    lines = []
    for match in _RECORD.finditer(log):
        record = json.loads(match[1]) if name in match[1] else {}
        has_key = record.get("key") == key
        lines.append(rewrite(record) if has_key else b":::MLLOG " + match[1] + b"\n")
    return b"".join(lines)


def edited(log: bytes, key: str, **changes: Any) -> bytes:
    """The log with other fields in all records of a key."""
    return rewritten(log, key, lambda record: joined([{**record, **changes}]))


def without(log: bytes, key: str) -> bytes:
    """The log without the records of a key."""
    return rewritten(log, key, lambda record: b"")


def halved(log: bytes) -> bytes:
    """The log of a run that claims to have converged in half the epochs."""
    fields = records(log)
    for record in fields:
        if record["key"] == "eval_accuracy":
            record["metadata"]["epoch_num"] //= 2
    return joined(fields)


def shortened(log: bytes, share: float) -> bytes:
    """The log of a run that claims to have converged in this share of the epochs."""
    fields = records(log)
    for record in fields:
        if record["key"] in ("eval_accuracy", "eval_error"):
            record["metadata"]["epoch_num"] *= share
    return joined(fields)


def doubled(log: bytes, key: str, **changes: Any) -> bytes:
    """The log with each record of a key twice, the second with other fields."""
    repeated = []
    for record in records(log):
        repeated += [record, {**record, **changes}] if record["key"] == key else [record]
    return joined(repeated)


def moved(log: bytes, key: str, after: str) -> bytes:
    """The log with the records of a key behind the first of another."""
    rest = [record for record in records(log) if record["key"] != key]
    place = next(i for i, record in enumerate(rest) if record["key"] == after) + 1
    return joined(rest[:place] + [e for e in records(log) if e["key"] == key] + rest[place:])


def line_of(log: bytes, key: str, nth: int = 0) -> int:
    """The 1-based line of the nth record of a key; negative from the end."""
    lines = [i for i, line in enumerate(log.split(b"\n"), 1) if f'"key": "{key}"'.encode() in line]
    return lines[nth]


def run_of(log: bytes, round_: str | None = "2.0", **more: Any) -> Run:
    """What the one pass makes of a log."""
    return read_run(LogFile(Source("log.txt", log), round=round_, **more))


def torn(log: bytes, key: str, *, kept: int = 2, nth: int = 0, rest: bytes | None = None) -> bytes:
    """The log with the nth record of a key torn after this many characters of the key.

    ``rest`` replaces what follows, which else is on the next line; negative ``kept`` count from
    the start of the key.
    """
    lines = log.split(b"\n")
    number = line_of(log, key, nth) - 1
    text = lines[number]
    place = text.index(f'"key": "{key}"'.encode()) + len('"key": "') + kept
    tail = text[place:] if rest is None else rest
    lines[number] = text[:place] + b"1: step 7\n" + tail
    return b"\n".join(lines)


def on_line_of(log: bytes, key: str, change: Callable[[bytes], bytes], nth: int = 0) -> bytes:
    """The log with another text on the line of the nth record of a key."""
    lines = log.split(b"\n")
    number = line_of(log, key, nth) - 1
    lines[number] = change(lines[number])
    return b"\n".join(lines)
