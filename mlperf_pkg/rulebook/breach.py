"""How a record breaks a constraint: what it has, and what is expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.logged import Seen
from mlperf_pkg.rulebook.of_value import OF_VALUE, holds


class Breach(msgspec.Struct, frozen=True):
    """How a record breaks a rule; ``message`` is a template as in ``Finding``.

    ``is_limit`` marks a value exactly at a limit, which only the official checker rejects.
    """

    found: Any
    expected: str
    message: str
    is_limit: bool = False


def out_of_order(violation: str, expected: str, *, logged: bool) -> Callable[..., Breach]:
    """Name the keys that were ``logged`` before a record, or were not, against a constraint."""

    def describe(keys: Sequence[str], record: Record, seen: Seen) -> Breach:
        wrong = [key for key in keys if (key in seen) is logged] or keys
        pronoun = "it" if len(wrong) == 1 else "them"
        return Breach(
            f"{violation} {' and '.join(wrong)}",
            f"it {expected} {' and '.join(keys)}",
            f"{record.key} is logged {{found:s}}; expected {expected} {pronoun}",
        )

    return describe


def too_late(argument: Mapping[str, Any], record: Record, seen: Seen) -> Breach:
    """Say how many minutes passed, or which key, which would allow any number, is missing."""
    needed = minutes_of(argument)
    if until := argument.get("until"):
        message = f"{record.key} is logged {{found:s}}; expected after it"
        return Breach(f"before {until}", needed, message)
    start, limit = argument["of"], argument["minutes"]
    minutes = (record.time_ms - seen[start].earliest_ms) / 60_000
    form = ".1f" if round(minutes, 1) > limit else ".3f"
    message = f"{record.key} is logged {{found:{form}}} minutes after {start}"
    message = f"{message}; expected within {limit} minutes"
    return Breach(round(minutes, 3), needed, message, is_limit=minutes == limit)


def lacks(needed: Callable[[Any], str]) -> Callable[..., Breach]:
    """List the names that the metadata have; ``needed`` says which are expected."""

    def describe(argument: Any, record: Record, _: Seen) -> Breach:
        metadata = record.metadata
        words = f"metadata {shown(metadata)}"
        if isinstance(metadata, dict):
            words = f"metadata with {' and '.join(metadata)}" if metadata else "empty metadata"
        message = f"{record.key} has {{found:s}}; expected {{expected}}"
        return Breach(words, needed(argument), message)

    return describe


def wrong_field(fields: Mapping[str, Mapping[str, Any]], record: Record, _: Seen) -> Breach:
    """Show the first of the metadata that is not as expected."""
    metadata = record.metadata if isinstance(record.metadata, dict) else {}
    present = [name for name in fields if name in metadata]
    wrong = next((name for name in present if not _meets(metadata[name], fields[name])), "metadata")
    return Breach(
        metadata.get(wrong, record.metadata),
        OF_VALUE["fields"].needed(fields),
        f"{record.key} has {wrong} {{found}}; expected {{expected}}",
    )


def _meets(value: Any, constraints: Mapping[str, Any]) -> bool:
    try:
        return holds(value, constraints)
    except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
        return False


def differs(key: str, record: Record, seen: Seen) -> Breach:
    """Say the value of the other key."""
    needed = value_of(key)
    expected = f"{shown(seen[key].last)}, {needed}" if key in seen else needed
    return Breach(record.value, expected, f"{record.key} is {{found}}; expected {{expected}}")


def minutes_of(argument: Mapping[str, Any]) -> str:
    """Return which time is allowed, in words."""
    return f"within {argument['minutes']} minutes of {argument['of']}"


def value_of(key: str) -> str:
    """Return which value is expected, in words."""
    return f"the value of {key}, logged before it"
