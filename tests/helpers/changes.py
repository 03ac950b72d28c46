"""Changes of the records of a log."""

from collections.abc import Callable
from typing import Any

from tests.helpers.logs import edited, joined, records

Change = Callable[[bytes], bytes]


def field(key: str, value: Any) -> Change:
    """Another value in all records of a key."""
    return lambda log: edited(log, key, value=value)


def fields(**values: Any) -> Change:
    """Other values of several keys."""

    def change(log: bytes) -> bytes:
        for key, value in values.items():
            log = edited(log, key, value=value)
        return log

    return change


def logged(key: str, value: Any) -> Change:
    """One more record, before ``run_start``."""

    def change(log: bytes) -> bytes:
        fields = records(log)
        start = [record["key"] for record in fields].index("run_start")
        extra = {**fields[start - 1], "key": key, "value": value}
        return joined([*fields[:start], extra, *fields[start:]])

    return change


def each(fields: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    """Other fields of each record, by what it has."""
    return lambda log: joined([{**r, **fields(r)} for r in records(log)])


def later(key: str, seconds: float) -> Change:
    """The records of a key at another time, on the same lines."""
    return each(lambda r: {"time_ms": r["time_ms"] + int(seconds * 1000) * (r["key"] == key)})


def scaled(factor: float, *keys: str) -> Change:
    """The times of some keys in another unit, or with a digit too many."""
    return each(lambda r: {"time_ms": r["time_ms"] * factor} if r["key"] in keys else {})


def initialised(minutes: float) -> Change:
    """``init_start`` so long before ``init_stop``."""

    def change(log: bytes) -> bytes:
        stop = next(r["time_ms"] for r in records(log) if r["key"] == "init_stop")
        return edited(log, "init_start", time_ms=stop - int(minutes * 60_000))

    return change
