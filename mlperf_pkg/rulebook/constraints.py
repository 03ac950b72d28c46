"""The closed vocabulary of constraints on one record, and what each expects, in words.

A constraint compiles to a predicate of a record and of what the run has logged before it. As in
the official checker, Python's own comparisons decide (``1 == 1.0 == True``), and a comparison
that raises, such as a string with a number, is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.breach import (
    Breach,
    differs,
    lacks,
    minutes_of,
    out_of_order,
    too_late,
    value_of,
    wrong_field,
)
from mlperf_pkg.rulebook.formula import Formula
from mlperf_pkg.rulebook.logged import Seen
from mlperf_pkg.rulebook.of_value import OF_VALUE, listed

Test = Callable[[Record, Seen], Any]


class Part(Enum):
    """What a constraint is about: a part of a record, or all of it and what was logged before."""

    VALUE = "value"
    METADATA = "metadata"
    ALL = "all"


class Constraint(msgspec.Struct, frozen=True):
    """One word of the vocabulary.

    ``compile`` makes the test from the argument; the test is true where the constraint holds. It
    takes the ``part`` of a record, or, where that is ``ALL``, a record and what was logged before
    it. ``needed`` says in words what is expected. ``describe`` says how a record breaks the
    constraint, from the argument, the record and what was logged before it; without one, the
    value is not as needed.
    """

    part: Part
    compile: Callable[[Any], Callable[..., Any]]
    needed: Callable[[Any], str]
    describe: Callable[[Any, Record, Seen], Breach] | None = None

    def test(self, argument: Any) -> Test:
        """Return the test of a record and what was logged before it."""
        holds = self.compile(argument)
        if self.part is Part.VALUE:
            return lambda record, seen: holds(record.value)
        if self.part is Part.METADATA:
            return lambda record, seen: holds(record.metadata)
        return holds

    def breach(self, argument: Any, record: Record, seen: Seen) -> Breach:
        """Return how a record breaks the constraint."""
        if self.describe:
            return self.describe(argument, record, seen)
        message = f"{record.key} is {{found}}; expected {{expected}}"
        return Breach(record.value, self.needed(argument), message)


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
        (name, OF_VALUE[constraint].compile(argument))
        for name, constraints in fields.items()
        for constraint, argument in constraints.items()
    ]

    def test(metadata: Any) -> bool:
        for name, holds in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if name in metadata and not holds(metadata[name]):
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
    """Test for equality with the last value of another key so far; it is None if there is none."""
    return lambda record, seen: bool(record.value == (seen[key].last if key in seen else None))


def _logged(keys: Sequence[str], *, expected: bool) -> Test:
    """Test whether all keys were ``expected`` and logged so far, or none was."""

    def test(_: Record, seen: Seen) -> bool:
        for key in keys:  # noqa: SIM110 - all() of a generator takes twice as long
            if (key in seen) is not expected:
                return False
        return True

    return test


def _formula(text: str) -> Test:
    return Formula(text).holds


def _formula_in_words(text: str) -> str:
    # What puts formulas into words is seldom needed.
    from mlperf_pkg.rulebook.expectation import in_general  # noqa: PLC0415

    return in_general(text, "the value")


# ---- the vocabulary -----------------------------------------------------------------------

_METADATA_WITH = listed("metadata with")
_METADATA_WITH_ANY = listed("metadata with", " or ")


def _pairs(pairs: Mapping[str, str]) -> str:
    return "metadata with " + " and ".join(f"{b} where {a} is" for a, b in pairs.items())


CONSTRAINTS: Mapping[str, Constraint] = {
    **{
        name: Constraint(Part.VALUE, constraint.compile, constraint.needed)
        for name, constraint in OF_VALUE.items()
    },
    "metadata": Constraint(Part.METADATA, _has_all, _METADATA_WITH, lacks(_METADATA_WITH)),
    "metadata_any": Constraint(
        Part.METADATA,
        _with(lambda metadata, names: any(name in metadata for name in names)),
        _METADATA_WITH_ANY,
        lacks(_METADATA_WITH_ANY),
    ),
    "metadata_pairs": Constraint(Part.METADATA, _with(_accompanied), _pairs, lacks(_pairs)),
    "metadata_fields": Constraint(
        Part.METADATA,
        _where_present,
        lambda fields: "metadata with " + OF_VALUE["fields"].needed(fields),
        wrong_field,
    ),
    "same_as": Constraint(Part.ALL, _same_as, value_of, differs),
    "after": Constraint(
        Part.ALL,
        lambda keys: _logged(keys, expected=True),
        listed("it after"),
        out_of_order("before", "after", logged=False),
    ),
    "before": Constraint(
        Part.ALL,
        lambda keys: _logged(keys, expected=False),
        listed("it before"),
        out_of_order("after", "before", logged=True),
    ),
    "within_minutes": Constraint(Part.ALL, _within_minutes, minutes_of, too_late),
}

TARGETS: Mapping[str, Constraint] = {
    **CONSTRAINTS,
    "formula": Constraint(Part.ALL, _formula, _formula_in_words),
}
"""The constraints that a quality target may have: it may be a formula, too."""


def target_test(constraints: Mapping[str, Any]) -> Test:
    """Return the test of all constraints of a target; it raises what comparing a record raises."""
    if constraints.keys() <= OF_VALUE.keys():  # nearly all
        return _value_test([OF_VALUE[name].compile(arg) for name, arg in constraints.items()])
    tests = [TARGETS[name].test(argument) for name, argument in constraints.items()]

    def meets_all(record: Record, seen: Seen) -> bool:
        for test in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not test(record, seen):
                return False
        return True

    return tests[0] if len(tests) == 1 else meets_all


def _value_test(tests: Sequence[Callable[[Any], Any]]) -> Test:
    def meets_all(record: Record, _: Seen) -> bool:
        value = record.value
        for holds in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not holds(value):
                return False
        return True

    return meets_all


def needed_in_words(constraints: Mapping[str, Any]) -> str:
    """Return what some constraints expect: "at least 0.72 and below 1.0"."""
    return " and ".join(TARGETS[name].needed(arg) for name, arg in constraints.items())
