"""The closed vocabulary of constraints on one record, and what each asks for in words.

A constraint compiles to a predicate of a record and of what the run has logged before it. As in
the official checker, Python's own comparisons decide (``1 == 1.0 == True``), and a comparison
that raises, such as a string with a number, is a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlperf_pkg.mllog import Record, shown
from mlperf_pkg.rulebook.formula import compile_formula, names_in

Seen = Mapping[str, "Logged"]
Test = Callable[[Record, Seen], Any]

_INTEGER_TOLERANCE = 0.00001
_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "text": (str,)}


@dataclass(slots=True)
class Logged:
    """What one key has logged so far: how often, its first and last value, as which records.

    ``same`` tells whether all values equal the first; ``earliest_ms`` is the least time;
    ``metadata`` is that of the last record.
    """

    count: int
    first: Any
    last: Any
    same: bool
    first_number: int
    last_number: int
    earliest_ms: float
    metadata: Any = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """One word of the vocabulary.

    ``compile`` makes the test from the argument, true where it holds; ``needed`` says in words
    what is asked for; ``found`` picks what to show of a record that fails.
    """

    compile: Callable[[Any], Test]
    needed: Callable[[Any], str]
    found: Callable[[Record], Any] = lambda record: record.value


@dataclass(frozen=True, slots=True)
class OfValue:
    """A constraint that looks at a value alone, so that it serves parts of a value as well."""

    holds: Callable[[Any, Any], Any]
    needed: Callable[[Any], str]


def is_integral(number: float) -> bool:
    """Whether a number lies within 1e-5 of an integer. (mlperf-logging, is_integer)

    Raises:
        ValueError, OverflowError: the number is NaN or infinite.
    """
    return abs(round(number) - number) < _INTEGER_TOLERANCE


def _list(prefix: str, joint: str = " and ") -> Callable[[Any], str]:
    return lambda names: f"{prefix} {joint.join(map(str, names))}".strip()


OF_VALUE: Mapping[str, OfValue] = {
    "equals": OfValue(lambda v, a: v == a, shown),
    "one_of": OfValue(lambda v, a: v in a, lambda a: f"one of {', '.join(map(shown, a))}"),
    "none_of": OfValue(lambda v, a: v not in a, lambda a: f"none of {', '.join(map(shown, a))}"),
    "at_least": OfValue(lambda v, a: v >= a, lambda a: f"at least {a}"),
    "at_most": OfValue(lambda v, a: v <= a, lambda a: f"at most {a}"),
    "above": OfValue(lambda v, a: v > a, lambda a: f"above {a}"),
    "below": OfValue(lambda v, a: v < a, lambda a: f"below {a}"),
    "close_to": OfValue(math.isclose, lambda a: f"{a}"),
    "not_empty": OfValue(lambda v, a: v != "", lambda a: "a value"),
    "truthy": OfValue(lambda v, a: bool(v) is a, lambda a: "true" if a else "false"),
    "type": OfValue(
        lambda v, a: isinstance(v, _TYPES[a]), lambda a: f"{'an' if a[0] in 'ai' else 'a'} {a}"
    ),
    "whole": OfValue(lambda v, a: is_integral(v) is a, lambda a: "a whole number"),
    "multiple_of": OfValue(lambda v, a: is_integral(v / a), lambda a: f"a multiple of {a}"),
    "power_of_two_times": OfValue(
        lambda v, a: is_integral(math.log2(v / a)), lambda a: f"{a} times a power of two"
    ),
    "length": OfValue(lambda v, a: len(v) == a, lambda a: f"{a} elements"),
    "length_at_least": OfValue(lambda v, a: len(v) >= a, lambda a: f"at least {a} elements"),
    "has": OfValue(lambda v, a: all(name in v for name in a), _list("an object with")),
    "fields": OfValue(
        lambda v, a: all(holds(v[name], asked) for name, asked in a.items()),
        lambda a: " and ".join(f"{name} {needed_in_words(asked)}" for name, asked in a.items()),
    ),
}
"""``fields`` asks of elements of a list (by number) or of an object (by name)."""


def holds(value: Any, constraints: Mapping[str, Any]) -> bool:
    """Whether a value meets constraints of ``OF_VALUE``; what comparing raises is let through."""
    return all(OF_VALUE[name].holds(value, argument) for name, argument in constraints.items())


def _compiled(test: Callable[[Any, Any], Any]) -> Callable[[Any], Test]:
    return lambda argument: lambda record, seen: test(record.value, argument)


def _of_metadata(test: Callable[[Any, Any], Any]) -> Callable[[Any], Test]:
    return lambda argument: lambda record, seen: test(record.metadata, argument)


def _asked_of_each(names: Sequence[str], ask: Callable[[str], Test]) -> Test:
    """What is asked for each of several names, of which most rules have one."""
    tests = [ask(name) for name in names]

    def test(record: Record, seen: Seen) -> bool:
        for each in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not each(record, seen):
                return False
        return True

    return tests[0] if len(tests) == 1 else test


def _where_given(fields: Mapping[str, Mapping[str, Any]]) -> Test:
    asked = [(n, OF_VALUE[c].holds, arg) for n, each in fields.items() for c, arg in each.items()]

    def test(record: Record, _: Seen) -> bool:
        for name, ask, argument in asked:
            if name in record.metadata and not ask(record.metadata[name], argument):
                return False
        return True

    return test


def _accompanied(metadata: Any, pairs: Mapping[str, str]) -> bool:
    return all(other in metadata for name, other in pairs.items() if name in metadata)


def _within_minutes(argument: Mapping[str, Any]) -> Test:
    """Less than ``minutes`` since the earliest ``of`` so far; free once ``until`` was logged."""
    start, limit, until = argument["of"], argument["minutes"] * 60_000.0, argument.get("until")

    def test(record: Record, seen: Seen) -> bool:
        if until in seen or start not in seen:
            return True
        elapsed: float = record.time_ms - seen[start].earliest_ms
        return bool(elapsed < limit)

    return test


def _same_as(key: str) -> Test:
    """Equal to the last value of another key so far, None where that was not logged."""
    return lambda record, seen: bool(record.value == (seen[key].last if key in seen else None))


def formula_values(formula: str, record: Record, seen: Seen) -> Mapping[str, Any]:
    """What the names of a formula stand for at a record: the last values logged so far."""
    earlier = {name: seen[name].last for name in names_in(formula) if name in seen}
    before = seen[record.key].metadata if record.key in seen else None
    return {**earlier, "value": record.value, "metadata": record.metadata, "previous": before}


def _formula(text: str) -> Test:
    formula = compile_formula(text)
    return lambda record, seen: formula(formula_values(text, record, seen))


def _metadata_of(record: Record) -> Any:
    return record.metadata


def _nothing(_record: Record) -> Any:
    return None


CONSTRAINTS: Mapping[str, Constraint] = {
    **{name: Constraint(_compiled(each.holds), each.needed) for name, each in OF_VALUE.items()},
    "metadata": Constraint(
        lambda names: _asked_of_each(names, lambda name: lambda r, seen: name in r.metadata),
        _list("metadata with"),
        _metadata_of,
    ),
    "metadata_any": Constraint(
        _of_metadata(lambda metadata, names: any(name in metadata for name in names)),
        _list("metadata with", " or "),
        _metadata_of,
    ),
    "metadata_pairs": Constraint(
        _of_metadata(_accompanied),
        lambda pairs: (
            "metadata with " + " and ".join(f"{b} where {a} is" for a, b in pairs.items())
        ),
        _metadata_of,
    ),
    "metadata_fields": Constraint(
        _where_given,
        lambda fields: "metadata with " + OF_VALUE["fields"].needed(fields),
        _metadata_of,
    ),
    "same_as": Constraint(_same_as, lambda key: f"the value of {key}, logged before it"),
    "after": Constraint(
        lambda keys: _asked_of_each(keys, lambda key: lambda record, seen: key in seen),
        _list("it after"),
        _nothing,
    ),
    "before": Constraint(
        lambda keys: _asked_of_each(keys, lambda key: lambda record, seen: key not in seen),
        _list("it before"),
        _nothing,
    ),
    "within_minutes": Constraint(
        _within_minutes, lambda a: f"within {a['minutes']} minutes of {a['of']}", _nothing
    ),
}

OF_ONE = OF_VALUE.keys() | {"metadata", "metadata_any", "metadata_pairs", "metadata_fields"}
"""What looks at a record alone, not at what was logged before it."""

TARGETS: Mapping[str, Constraint] = {**CONSTRAINTS, "formula": Constraint(_formula, str)}
"""What a quality target may ask: it may be a formula, too."""


def target_test(constraints: Mapping[str, Any]) -> Test:
    """All of several constraints at once; what the record raises is let through."""
    tests = [TARGETS[name].compile(argument) for name, argument in constraints.items()]
    return lambda record, seen: all(test(record, seen) for test in tests)


def needed_in_words(constraints: Mapping[str, Any]) -> str:
    """What several constraints ask for: "at least 0.72 and below 1.0"."""
    return " and ".join(TARGETS[name].needed(arg) for name, arg in constraints.items())
