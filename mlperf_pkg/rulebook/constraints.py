"""The closed vocabulary of constraints on one record, and what each expects, in words.

A constraint compiles to a predicate of a record and of what the run has logged before it. As in
the official checker, Python's own comparisons decide (``1 == 1.0 == True``), and a comparison
that raises, such as a string with a number, is a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.formula import Formula
from mlperf_pkg.rulebook.logged import Seen

Test = Callable[[Record, Seen], Any]

_INTEGER_TOLERANCE = 0.00001
_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "text": (str,)}


class Part(Enum):
    """What a constraint is about: a part of a record, or all of it and what was logged before."""

    VALUE = "value"
    METADATA = "metadata"
    ALL = "all"


class Misplaced(msgspec.Struct, frozen=True):
    """What a message says of a record in a wrong place: where it is, and where it is expected."""

    found: str
    expected: str


class Constraint(msgspec.Struct, frozen=True):
    """One word of the vocabulary.

    ``compile`` makes the test from the argument; the test is true where the constraint holds. It
    takes the ``part`` of a record, or, where that is ``ALL``, a record and what was logged before
    it. ``needed`` says in words what is expected. Constraints on where a record is, not on what
    it says, have ``misplaced``, which takes their argument and what was logged before.
    """

    part: Part
    compile: Callable[[Any], Callable[..., Any]]
    needed: Callable[[Any], str]
    misplaced: Callable[[Any, Seen], Misplaced] | None = None

    def test(self, argument: Any) -> Test:
        """Return the test of a record and what was logged before it."""
        holds = self.compile(argument)
        if self.part is Part.VALUE:
            return lambda record, seen: holds(record.value)
        if self.part is Part.METADATA:
            return lambda record, seen: holds(record.metadata)
        return holds

    def found(self, record: Record) -> Any:
        """Return what to show of a record that fails."""
        if self.misplaced:
            return None
        return record.metadata if self.part is Part.METADATA else record.value


class OfValue(msgspec.Struct, frozen=True):
    """A constraint on a value alone, which serves for parts of a value as well."""

    holds: Callable[[Any, Any], Any]
    needed: Callable[[Any], str]


def is_integral(number: float) -> bool:
    """Return whether a number is within 1e-5 of an integer. (mlperf-logging, is_integer)

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
        lambda v, a: all(holds(v[name], constraints) for name, constraints in a.items()),
        lambda a: " and ".join(f"{name} {needed_in_words(parts)}" for name, parts in a.items()),
    ),
}
"""``fields`` is about the elements of a list (by number) or of an object (by name)."""


def holds(value: Any, constraints: Mapping[str, Any]) -> bool:
    """Return whether a value meets constraints of ``OF_VALUE``.

    Raises:
        Exception: whatever comparing the value raises.
    """
    return all(OF_VALUE[name].holds(value, argument) for name, argument in constraints.items())


def _with(test: Callable[[Any, Any], Any]) -> Callable[[Any], Callable[[Any], Any]]:
    return lambda argument: lambda part: test(part, argument)


def _has_all(names: Sequence[str]) -> Callable[[Any], bool]:
    if len(names) == 1:  # as in most rules
        (name,) = names
        return lambda metadata: name in metadata

    def test(metadata: Any) -> bool:
        for name in names:  # noqa: SIM110 - all() of a generator takes twice as long
            if name not in metadata:
                return False
        return True

    return test


def _where_present(fields: Mapping[str, Mapping[str, Any]]) -> Callable[[Any], bool]:
    tests = [
        (name, OF_VALUE[constraint].holds, argument)
        for name, constraints in fields.items()
        for constraint, argument in constraints.items()
    ]

    def test(metadata: Any) -> bool:
        for name, meets, argument in tests:
            if name in metadata and not meets(metadata[name], argument):
                return False
        return True

    return test


def _accompanied(metadata: Any, pairs: Mapping[str, str]) -> bool:
    return all(other in metadata for name, other in pairs.items() if name in metadata)


def _within_minutes(argument: Mapping[str, Any]) -> Test:
    """Test that less than ``minutes`` passed since the earliest ``of``, unless ``until`` came."""
    start, limit, until = (argument["of"], argument["minutes"] * 60_000.0, argument.get("until"))

    def test(record: Record, seen: Seen) -> bool:
        if until in seen or start not in seen:
            return True
        elapsed: float = record.time_ms - seen[start].earliest_ms
        return bool(elapsed < limit)

    return test


def _same_as(key: str) -> Test:
    """Test for equality with the last value of another key so far; it is None without one."""
    return lambda record, seen: bool(record.value == (seen[key].last if key in seen else None))


def _logged(keys: Sequence[str], *, expected: bool) -> Test:
    """Test whether all keys were ``expected`` and logged so far, or none was."""

    def test(_: Record, seen: Seen) -> bool:
        for key in keys:  # noqa: SIM110 - all() of a generator takes twice as long
            if (key in seen) is not expected:
                return False
        return True

    return test


def _out_of_order(
    violation: str, expected: str, *, logged: bool
) -> Callable[[Any, Seen], Misplaced]:
    """Name the keys that were ``logged`` before a record, or were not, against a constraint."""

    def words(keys: Sequence[str], seen: Seen) -> Misplaced:
        wrong = [key for key in keys if (key in seen) is logged] or keys
        pronoun = "it" if len(wrong) == 1 else "them"
        return Misplaced(f"{violation} {' and '.join(wrong)}", f"{expected} {pronoun}")

    return words


def _too_late(argument: Mapping[str, Any], _: Seen) -> Misplaced:
    violation = f"before {argument['until']}" if "until" in argument else "too late"
    return Misplaced(violation, _minutes_of(argument))


def _minutes_of(argument: Mapping[str, Any]) -> str:
    return f"within {argument['minutes']} minutes of {argument['of']}"


def _formula(text: str, declared: frozenset[str] = frozenset()) -> Test:
    return Formula(text, declared).holds


CONSTRAINTS: Mapping[str, Constraint] = {
    **{
        name: Constraint(Part.VALUE, _with(constraint.holds), constraint.needed)
        for name, constraint in OF_VALUE.items()
    },
    "metadata": Constraint(Part.METADATA, _has_all, _list("metadata with")),
    "metadata_any": Constraint(
        Part.METADATA,
        _with(lambda metadata, names: any(name in metadata for name in names)),
        _list("metadata with", " or "),
    ),
    "metadata_pairs": Constraint(
        Part.METADATA,
        _with(_accompanied),
        lambda pairs: (
            "metadata with " + " and ".join(f"{b} where {a} is" for a, b in pairs.items())
        ),
    ),
    "metadata_fields": Constraint(
        Part.METADATA,
        _where_present,
        lambda fields: "metadata with " + OF_VALUE["fields"].needed(fields),
    ),
    "same_as": Constraint(Part.ALL, _same_as, lambda key: f"the value of {key}, logged before it"),
    "after": Constraint(
        Part.ALL,
        lambda keys: _logged(keys, expected=True),
        _list("it after"),
        _out_of_order("before", "after", logged=False),
    ),
    "before": Constraint(
        Part.ALL,
        lambda keys: _logged(keys, expected=False),
        _list("it before"),
        _out_of_order("after", "before", logged=True),
    ),
    "within_minutes": Constraint(Part.ALL, _within_minutes, _minutes_of, _too_late),
}

OF_ONE = {name for name, word in CONSTRAINTS.items() if word.part is not Part.ALL}
"""The constraints on a record alone, whatever was logged before it."""

TARGETS: Mapping[str, Constraint] = {**CONSTRAINTS, "formula": Constraint(Part.ALL, _formula, str)}
"""The constraints that a quality target may have: it may be a formula, too."""


def target_test(constraints: Mapping[str, Any], declared: frozenset[str] = frozenset()) -> Test:
    """Return the test of all constraints of a target.

    ``declared`` are names to declare for a formula, as in ``Formula``. The test raises whatever
    comparing a record raises.
    """
    tests = [
        _formula(argument, declared) if name == "formula" else CONSTRAINTS[name].test(argument)
        for name, argument in constraints.items()
    ]

    def meets_all(record: Record, seen: Seen) -> bool:
        for test in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not test(record, seen):
                return False
        return True

    return tests[0] if len(tests) == 1 else meets_all


def needed_in_words(constraints: Mapping[str, Any]) -> str:
    """Return what some constraints expect: "at least 0.72 and below 1.0"."""
    return " and ".join(TARGETS[name].needed(arg) for name, arg in constraints.items())
