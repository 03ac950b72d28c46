"""The closed vocabulary of constraints on one record, and what each expects, in words.

A constraint compiles to a predicate of a record and of what the run has logged before it. As in
the official checker, Python's own comparisons decide (``1 == 1.0 == True``), and a comparison
that raises, such as a string with a number, is a failure.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from mlperf_pkg.findings import word
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.formula import Formula, Seen

Test = Callable[[Record, Seen], Any]


class RecordPart(Enum):
    """What a constraint is about: a part of a record, or all of it and what was logged before."""

    VALUE = "value"
    METADATA = "metadata"
    ALL = "all"


class Breach(msgspec.Struct, frozen=True):
    """How a record breaks a rule; ``message`` is a template as in ``Finding``.

    ``is_limit`` marks a value exactly at a limit, which only the official checker rejects.
    """

    found: Any
    expected: str
    message: str
    is_limit: bool = False


class Constraint(msgspec.Struct, frozen=True):
    """One word of the vocabulary.

    ``compile`` makes the test from the argument; the test is true where the constraint holds. It
    takes the ``part`` of a record, or, where that is ``ALL``, a record and what was logged before
    it. ``needed`` says in words what is expected. ``describe`` says how a record breaks the
    constraint, from the argument, the record and what was logged before it; without one, the
    value is not as needed.
    """

    part: RecordPart
    compile: Callable[[Any], Callable[..., Any]]
    needed: Callable[[Any], str]
    describe: Callable[[Any, Record, Seen], Breach] | None = None

    def test(self, argument: Any) -> Test:
        """Return the test of a record and what was logged before it."""
        holds = self.compile(argument)
        if self.part is RecordPart.VALUE:
            return lambda record, seen: holds(record.value)
        if self.part is RecordPart.METADATA:
            return lambda record, seen: holds(record.metadata)
        return holds

    def breach(self, argument: Any, record: Record, seen: Seen) -> Breach:
        """Return how a record breaks the constraint."""
        if self.describe:
            return self.describe(argument, record, seen)
        message = f"{record.key} is {{found}}; expected {{expected}}"
        return Breach(record.value, self.needed(argument), message)


# ---- of a value, or of a part of it -------------------------------------------------------

_INTEGER_TOLERANCE = 0.00001
_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "text": (str,)}


_of_value = partial(Constraint, RecordPart.VALUE)
_shown = partial(word, form=",")


def _is_integral(number: float) -> bool:
    """Return whether a number is within 1e-5 of an integer. (mlperf-logging, is_integer)

    Raises:
        ValueError, OverflowError: the number is NaN or infinite.
    """
    return abs(round(number) - number) < _INTEGER_TOLERANCE


def _count(value: Any) -> float:
    """Return a count as a number: some logs have text, or a list with the number.

    Raises:
        TypeError, ValueError: the value is not a count.
    """
    return float(value[0] if isinstance(value, list) and len(value) == 1 else value)


def _proportional(number: float, part: float) -> Callable[[float, float], bool]:
    """Return the test that another number has the same ratio to its part, but for rounding."""
    return lambda other, its: abs(number * its - other * part) <= max(its, part)


def _listed(prefix: str, joint: str = " and ") -> Callable[[Any], str]:
    """Return what puts names into words, after a prefix and with a word between them."""
    return lambda names: f"{prefix} {joint.join(map(str, names))}".strip()


def needed_in_words(constraints: Mapping[str, Any]) -> str:
    """Return what some constraints expect: "at least 0.72 and below 1.0"."""
    return " and ".join(TARGETS[name].needed(arg) for name, arg in constraints.items())


OF_VALUE: Mapping[str, Constraint] = {
    "equals": _of_value(lambda a: lambda v: v == a, _shown),
    "one_of": _of_value(
        lambda a: lambda v: v in a, lambda a: f"one of {', '.join(map(_shown, a))}"
    ),
    "none_of": _of_value(
        lambda a: lambda v: v not in a, lambda a: f"none of {', '.join(map(_shown, a))}"
    ),
    "at_least": _of_value(lambda a: lambda v: v >= a, lambda a: f"at least {_shown(a)}"),
    "at_most": _of_value(lambda a: lambda v: v <= a, lambda a: f"at most {_shown(a)}"),
    "counts": _of_value(lambda a: lambda v: holds(_count(v), a), needed_in_words),
    "above": _of_value(lambda a: lambda v: v > a, lambda a: f"above {_shown(a)}"),
    "below": _of_value(lambda a: lambda v: v < a, lambda a: f"below {_shown(a)}"),
    "close_to": _of_value(lambda a: lambda v: math.isclose(v, a), _shown),
    "not_empty": _of_value(lambda a: lambda v: v != "", lambda a: "a value"),
    "truthy": _of_value(lambda a: lambda v: bool(v) is a, lambda a: "true" if a else "false"),
    "type": _of_value(
        lambda a: lambda v: isinstance(v, _TYPES[a]),
        lambda a: f"{'an' if a[0] in 'ai' else 'a'} {a}",
    ),
    "reads_as": _of_value(
        lambda _: (
            lambda v: (
                isinstance(v, int)
                or (v.is_integer() if isinstance(v, float) else int(v) is not None)
            )
        ),
        lambda a: f"an {a}, perhaps as text",
    ),
    "whole": _of_value(lambda a: lambda v: _is_integral(v) is a, lambda a: "a whole number"),
    "multiple_of": _of_value(
        lambda a: lambda v: _is_integral(v / a), lambda a: f"a multiple of {_shown(a)}"
    ),
    "power_of_two_times": _of_value(
        lambda a: lambda v: _is_integral(math.log2(v / a)),
        lambda a: f"{_shown(a)} times a power of two",
    ),
    "length": _of_value(lambda a: lambda v: len(v) == a, lambda a: f"{a} elements"),
    "length_at_least": _of_value(
        lambda a: lambda v: len(v) >= a, lambda a: f"at least {a} elements"
    ),
    "in_ratio": _of_value(
        lambda a: lambda v: len(v) == len(a) and all(map(_proportional(v[0], a[0]), v, a)),
        lambda a: f"numbers in the ratio {' to '.join(map(str, a))}",
    ),
    "any": _of_value(
        lambda a: lambda v: any(holds(v, constraints) for constraints in a),
        lambda a: " or ".join(map(needed_in_words, a)),
    ),
    "each": _of_value(
        lambda a: lambda v: all(holds(e, a) for e in (v if isinstance(v, list) else [v])),
        lambda a: f"numbers {needed_in_words(a)}",
    ),
    "has": _of_value(lambda a: lambda v: all(name in v for name in a), _listed("an object with")),
    "fields": _of_value(
        lambda a: lambda v: all(holds(v[name], constraints) for name, constraints in a.items()),
        lambda a: " and ".join(f"{name} {needed_in_words(parts)}" for name, parts in a.items()),
    ),
}
"""``fields`` is about the elements of a list (by number) or of an object (by name)."""


def holds(value: Any, constraints: Mapping[str, Any]) -> bool:
    """Return whether a value meets constraints of ``OF_VALUE``.

    Raises:
        Exception: whatever comparing the value raises.
    """
    return all(OF_VALUE[name].compile(arg)(value) for name, arg in constraints.items())


# ---- of a record, and of what was logged before it ----------------------------------------


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


def _has_pairs(pairs: Mapping[str, str]) -> Callable[[Any], bool]:
    return lambda metadata: all(b in metadata for a, b in pairs.items() if a in metadata)


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


def _within_minutes(argument: Mapping[str, Any]) -> Test:
    """Test that less than ``minutes`` passed since the earliest ``of``, unless ``until`` came."""
    start = argument["of"]
    limit = argument["minutes"] * 60_000.0
    until = argument.get("until")

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


# ---- what a record has that breaks them, and what is expected ------------------------------


def _out_of_order(violation: str, expected: str, *, logged: bool) -> Callable[..., Breach]:
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


def _too_late(argument: Mapping[str, Any], record: Record, seen: Seen) -> Breach:
    """Say how many minutes passed, or which key, which would allow any number, is missing."""
    needed = _minutes_of(argument)
    until = argument.get("until")
    if until:
        message = f"{record.key} is logged {{found:s}}; expected after it"
        return Breach(f"before {until}", needed, message)
    start = argument["of"]
    limit = argument["minutes"]
    minutes = (record.time_ms - seen[start].earliest_ms) / 60_000
    form = ".1f" if round(minutes, 1) > limit else ".3f"
    message = f"{record.key} is logged {{found:{form}}} minutes after {start}"
    message = f"{message}; expected within {limit} minutes"
    return Breach(round(minutes, 3), needed, message, is_limit=minutes == limit)


def _lacks(needed: Callable[[Any], str]) -> Callable[..., Breach]:
    """List the names that the metadata have; ``needed`` says which are expected."""

    def describe(argument: Any, record: Record, _: Seen) -> Breach:
        metadata = record.metadata
        words = f"metadata {shown(metadata)}"
        if isinstance(metadata, dict):
            words = f"metadata with {' and '.join(metadata)}" if metadata else "empty metadata"
        message = f"{record.key} has {{found:s}}; expected {{expected}}"
        return Breach(words, needed(argument), message)

    return describe


def _wrong_field(fields: Mapping[str, Mapping[str, Any]], record: Record, _: Seen) -> Breach:
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


def _differs(key: str, record: Record, seen: Seen) -> Breach:
    """Say the value of the other key."""
    needed = _value_of(key)
    expected = f"{shown(seen[key].last)}, {needed}" if key in seen else needed
    return Breach(record.value, expected, f"{record.key} is {{found}}; expected {{expected}}")


def _minutes_of(argument: Mapping[str, Any]) -> str:
    """Return which time is allowed, in words."""
    return f"within {argument['minutes']} minutes of {argument['of']}"


def _value_of(key: str) -> str:
    """Return which value is expected, in words."""
    return f"the value of {key}, logged before it"


def _pairs(pairs: Mapping[str, str]) -> str:
    return "metadata with " + " and ".join(f"{b} where {a} is" for a, b in pairs.items())


def _formula_in_words(text: str) -> str:
    # What puts formulas into words is seldom needed.
    from mlperf_pkg.rulebook.expectation import in_general  # noqa: PLC0415

    return in_general(text, "the value")


# ---- the vocabulary -----------------------------------------------------------------------

_METADATA_WITH = _listed("metadata with")
_METADATA_WITH_ANY = _listed("metadata with", " or ")

CONSTRAINTS: Mapping[str, Constraint] = {
    **OF_VALUE,
    "metadata": Constraint(RecordPart.METADATA, _has_all, _METADATA_WITH, _lacks(_METADATA_WITH)),
    "metadata_any": Constraint(
        RecordPart.METADATA,
        lambda names: lambda metadata: any(name in metadata for name in names),
        _METADATA_WITH_ANY,
        _lacks(_METADATA_WITH_ANY),
    ),
    "metadata_pairs": Constraint(RecordPart.METADATA, _has_pairs, _pairs, _lacks(_pairs)),
    "metadata_fields": Constraint(
        RecordPart.METADATA,
        _where_present,
        lambda fields: "metadata with " + OF_VALUE["fields"].needed(fields),
        _wrong_field,
    ),
    "same_as": Constraint(RecordPart.ALL, _same_as, _value_of, _differs),
    "after": Constraint(
        RecordPart.ALL,
        lambda keys: _logged(keys, expected=True),
        _listed("it after"),
        _out_of_order("before", "after", logged=False),
    ),
    "before": Constraint(
        RecordPart.ALL,
        lambda keys: _logged(keys, expected=False),
        _listed("it before"),
        _out_of_order("after", "before", logged=True),
    ),
    "within_minutes": Constraint(RecordPart.ALL, _within_minutes, _minutes_of, _too_late),
}


TARGETS: Mapping[str, Constraint] = {
    **CONSTRAINTS,
    "formula": Constraint(RecordPart.ALL, lambda text: Formula(text).holds, _formula_in_words),
}
"""The constraints that a quality target may have: it may be a formula, too."""


def target_test(constraints: Mapping[str, Any]) -> Test:
    """Return the test of all constraints of a target; it raises what comparing a record raises."""
    tests = [TARGETS[name].test(argument) for name, argument in constraints.items()]

    def meets_all(record: Record, seen: Seen) -> bool:
        for test in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not test(record, seen):
                return False
        return True

    return tests[0] if len(tests) == 1 else meets_all
