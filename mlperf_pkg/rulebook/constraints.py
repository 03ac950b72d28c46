"""The closed vocabulary of constraints on one record, and what each asks for in words.

A constraint compiles to a predicate of a record and of what the run has logged before it. As in
the official checker, Python's own comparisons decide (``1 == 1.0 == True``), and a comparison
that raises, such as a string with a number, is a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mlperf_pkg.mllog import Record, shown

Seen = Mapping[str, "Logged"]
Test = Callable[[Record, Seen], bool]
ValueTest = Callable[[Any], bool]

_INTEGER_TOLERANCE = 0.00001
_TYPES: dict[str, type] = {"integer": int}


@dataclass(slots=True)
class Logged:
    """What one key has logged so far: how often, its first and last value, where.

    ``same`` tells whether all values equal the first; ``earliest_ms`` is the least time.
    """

    count: int
    first: Any
    last: Any
    same: bool
    first_line: int
    last_line: int
    earliest_ms: float


@dataclass(frozen=True, slots=True)
class Constraint:
    """One word of the vocabulary.

    ``compile`` makes the test from the argument; ``needed`` says in words what is asked for;
    ``found`` picks what to show of a record that fails.
    """

    compile: Callable[[Any], Test]
    needed: Callable[[Any], str]
    found: Callable[[Record], Any] = lambda record: record.value


def is_integral(number: float) -> bool:
    """Whether a number lies within 1e-5 of an integer. (mlperf-logging, is_integer)

    Raises:
        ValueError, OverflowError: the number is NaN or infinite.
    """
    return abs(round(number) - number) < _INTEGER_TOLERANCE


def _of_value(test: Callable[[Any, Any], bool]) -> Callable[[Any], Test]:
    return lambda argument: lambda record, seen: test(record.value, argument)


def _metadata_above(limits: Mapping[str, float]) -> Test:
    return lambda record, seen: all(record.metadata[name] > low for name, low in limits.items())


def _within_minutes(argument: Mapping[str, Any]) -> Test:
    """Less than ``minutes`` since the earliest ``of`` so far; free once ``until`` was logged."""
    start, limit, until = argument["of"], argument["minutes"] * 60_000.0, argument.get("until")

    def test(record: Record, seen: Seen) -> bool:
        if until in seen or start not in seen:
            return True
        elapsed: float = record.time_ms - seen[start].earliest_ms
        return bool(elapsed < limit)

    return test


def _minutes_needed(argument: Mapping[str, Any]) -> str:
    return f"within {argument['minutes']} minutes of {argument['of']}"


def _listed(prefix: str) -> Callable[[Any], str]:
    return lambda names: f"{prefix} {' and '.join(names)}"


def _metadata_of(record: Record) -> Any:
    return record.metadata


def _nothing(_record: Record) -> Any:
    return None


CONSTRAINTS: Mapping[str, Constraint] = {
    "equals": Constraint(_of_value(lambda v, a: v == a), shown),
    "one_of": Constraint(
        _of_value(lambda v, a: v in a), lambda a: f"one of {', '.join(map(shown, a))}"
    ),
    "at_least": Constraint(_of_value(lambda v, a: v >= a), lambda a: f"at least {a}"),
    "at_most": Constraint(_of_value(lambda v, a: v <= a), lambda a: f"at most {a}"),
    "above": Constraint(_of_value(lambda v, a: v > a), lambda a: f"above {a}"),
    "below": Constraint(_of_value(lambda v, a: v < a), lambda a: f"below {a}"),
    "not_empty": Constraint(_of_value(lambda v, a: v != ""), lambda a: "a value"),
    "type": Constraint(_of_value(lambda v, a: isinstance(v, _TYPES[a])), lambda a: f"an {a}"),
    "multiple_of": Constraint(
        _of_value(lambda v, a: is_integral(v / a)), lambda a: f"a multiple of {a}"
    ),
    "power_of_two_times": Constraint(
        _of_value(lambda v, a: is_integral(math.log2(v / a))),
        lambda a: f"{a} times a power of two",
    ),
    "metadata": Constraint(
        lambda names: lambda record, seen: all(name in record.metadata for name in names),
        _listed("metadata with"),
        _metadata_of,
    ),
    "metadata_above": Constraint(
        _metadata_above,
        lambda limits: (
            "metadata with " + ", ".join(f"{n} above {low}" for n, low in limits.items())
        ),
        _metadata_of,
    ),
    "after": Constraint(
        lambda keys: lambda record, seen: all(key in seen for key in keys),
        _listed("it after"),
        _nothing,
    ),
    "before": Constraint(
        lambda keys: lambda record, seen: not any(key in seen for key in keys),
        _listed("it before"),
        _nothing,
    ),
    "within_minutes": Constraint(_within_minutes, _minutes_needed, _nothing),
}


def value_test(constraints: Mapping[str, Any]) -> Test:
    """All of several constraints at once; what the record raises is let through."""
    tests = [CONSTRAINTS[name].compile(argument) for name, argument in constraints.items()]
    return lambda record, seen: all(test(record, seen) for test in tests)


def needed_in_words(constraints: Mapping[str, Any]) -> str:
    """What several constraints ask for: "at least 0.72 and below 1.0"."""
    return " and ".join(CONSTRAINTS[name].needed(arg) for name, arg in constraints.items())
