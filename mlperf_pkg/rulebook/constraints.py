"""The closed vocabulary of constraints on one record, and what each expects, in words.

A constraint compiles to a predicate of a record and of what the run has logged before it. As in
the official checker, Python's own comparisons decide (``1 == 1.0 == True``), and a comparison
that raises, such as a string with a number, is a failure.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec

from mlperf_pkg.findings import word
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.formula import Formula, Seen, number_if_none

Test = Callable[[Record, Seen], Any]
PartTest = Callable[[Any], Any]
"""The test of a part of a record."""


class RecordPart(StrEnum):
    """What a constraint is about: a part of a record, or all of it and what was logged before.

    NAMES are those of its metadata, whose digits do not matter.
    """

    VALUE = "value"
    METADATA = "metadata"
    NAMES = "names"
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
        if self.part is not RecordPart.ALL:
            return lambda record, seen: holds(record.metadata)
        return holds

    def breach(
        self, argument: Any, record: Record, seen: Seen, needed: str | None = None
    ) -> Breach:
        """Return how a record breaks the constraint; ``needed`` are words of the rule for it."""
        if self.describe:
            return self.describe(argument, record, seen)
        needed = needed or self.needed(argument)
        kind = number_if_none(record.value, needed)
        message = f"{record.key} is {{found}}; expected {kind}{{expected}}"
        return Breach(record.value, needed, message)


# ---- tests of a value, or of a part of it -------------------------------------------------

_INTEGER_TOLERANCE = 0.00001
_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "text": (str,)}


def _none_of(choices: Sequence[Any], value: Any) -> bool:
    return value not in choices


def _not_empty(_: Any, value: Any) -> Any:
    return value != ""


def _truthy(expected: bool, value: Any) -> bool:
    return bool(value) is expected


def _of_type(name: str, value: Any) -> bool:
    return isinstance(value, _TYPES[name])


def _reads_as_integer(_: str, value: Any) -> bool:
    int(value)  # raises an exception of what it cannot convert
    return True


def _is_integral(number: float) -> bool:
    """Return whether a number is within 1e-5 of an integer. (mlperf-logging, is_integer)

    Raises:
        ValueError, OverflowError: the number is NaN or infinite.
    """
    return abs(round(number) - number) < _INTEGER_TOLERANCE


def _whole(expected: bool, value: Any) -> bool:
    return _is_integral(value) is expected


def _multiple_of(unit: float, value: Any) -> bool:
    return _is_integral(value / unit)


def _power_of_two_times(unit: float, value: Any) -> bool:
    return _is_integral(math.log2(value / unit))


def _length(size: int, value: Any) -> bool:
    return len(value) == size


def _length_at_least(size: int, value: Any) -> bool:
    return len(value) >= size


def _in_ratio(ratio: Sequence[float], numbers: Any) -> bool:
    """Return whether numbers are in a ratio, but for rounding."""
    if len(numbers) != len(ratio):
        return False
    first_number = numbers[0]
    first_part = ratio[0]
    for number, part in zip(numbers, ratio, strict=True):
        difference = abs(first_number * part - number * first_part)
        is_near = difference <= max(part, first_part)  # false for NaN
        if not is_near:
            return False
    return True


def _has(names: Sequence[str], value: Any) -> bool:
    return all(name in value for name in names)


# ---- tests that apply constraints to a value, or to what is in it ---------------------------


def holds(value: Any, constraints: Mapping[str, Any]) -> bool:
    """Return whether a value meets constraints of ``OF_VALUE``.

    Raises:
        Exception: whatever comparing the value raises.
    """
    return all(OF_VALUE[name].compile(arg)(value) for name, arg in constraints.items())


def _counts(constraints: Mapping[str, Any], value: Any) -> bool:
    return holds(_count(value), constraints)


def _count(value: Any) -> float:
    """Return a count as a number: some logs have text, or a list with the number.

    Raises:
        TypeError, ValueError: the value is not a count.
    """
    if isinstance(value, list) and len(value) == 1:
        return float(value[0])
    return float(value)


def _any(alternatives: Sequence[Mapping[str, Any]], value: Any) -> bool:
    return any(holds(value, constraints) for constraints in alternatives)


def _each(constraints: Mapping[str, Any], value: Any) -> bool:
    elements = value if isinstance(value, list) else [value]
    return all(holds(element, constraints) for element in elements)


def _fields(fields: Mapping[Any, Mapping[str, Any]], value: Any) -> bool:
    """Test elements of a list, by number, or of an object, by name."""
    return all(holds(value[name], fields[name]) for name in fields)


# ---- what they expect, in words -----------------------------------------------------------

_shown = partial(word, form=",")


def _words(template: str) -> Callable[[Any], str]:
    """Return what puts an argument into words, as people write it."""
    return lambda argument: template.format(_shown(argument))


def _choices(prefix: str) -> Callable[[Sequence[Any]], str]:
    return lambda choices: f"{prefix} {', '.join(map(_shown, choices))}"


def _listed(prefix: str, joint: str = " and ") -> Callable[[Sequence[Any]], str]:
    """Return what puts names into words: a prefix, commas, and a word before the last name."""

    def words(names: Sequence[Any]) -> str:
        first = ", ".join(map(str, names[:-1]))
        return f"{prefix} {first}{joint if first else ''}{names[-1]}"

    return words


def _truth_in_words(expected: bool) -> str:
    return "true" if expected else "false"


def _with_article(name: str) -> str:
    article = "an" if name[0] in "ai" else "a"
    return f"{article} {name}"


def _alternatives_in_words(alternatives: Sequence[Mapping[str, Any]]) -> str:
    return " or ".join(map(needed_in_words, alternatives))


def _numbers_in_words(constraints: Mapping[str, Any]) -> str:
    return f"only numbers {needed_in_words(constraints)}"


def _fields_in_words(fields: Mapping[Any, Mapping[str, Any]]) -> str:
    return ", and ".join(f"{name} {needed_in_words(fields[name])}" for name in fields)


def needed_in_words(constraints: Mapping[str, Any]) -> str:
    """Return what some constraints expect: "at least 0.72 and below 1.0"."""
    return " and ".join(TARGETS[name].needed(arg) for name, arg in constraints.items())


def _binding(test: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """Return what compiles a test whose first parameter is the argument of the constraint."""
    return partial(partial, test)


def _of_value(test: Callable[[Any, Any], Any], needed: Callable[[Any], str]) -> Constraint:
    return Constraint(RecordPart.VALUE, _binding(test), needed)


OF_VALUE: Mapping[str, Constraint] = {
    "equals": _of_value(operator.eq, _shown),
    "one_of": _of_value(operator.contains, _choices("one of")),
    "none_of": _of_value(_none_of, _choices("none of")),
    "at_least": _of_value(operator.le, _words("at least {}")),
    "at_most": _of_value(operator.ge, _words("at most {}")),
    "counts": _of_value(_counts, needed_in_words),
    "above": _of_value(operator.lt, _words("above {}")),
    "below": _of_value(operator.gt, _words("below {}")),
    "close_to": _of_value(math.isclose, _shown),
    "not_empty": _of_value(_not_empty, _words("a value")),
    "truthy": _of_value(_truthy, _truth_in_words),
    "type": _of_value(_of_type, _with_article),
    "reads_as": _of_value(_reads_as_integer, "an {}, as a number or as text".format),
    "whole": _of_value(_whole, _words("a whole number")),
    "multiple_of": _of_value(_multiple_of, _words("a multiple of {}")),
    "power_of_two_times": _of_value(_power_of_two_times, _words("{} times a power of two")),
    "length": _of_value(_length, "a list of {} elements".format),
    "length_at_least": _of_value(_length_at_least, "a list of at least {} elements".format),
    "in_ratio": _of_value(_in_ratio, _listed("numbers in the ratio", " to ")),
    "any": _of_value(_any, _alternatives_in_words),
    "each": _of_value(_each, _numbers_in_words),
    "has": _of_value(_has, _listed("an object with")),
    "fields": _of_value(_fields, _fields_in_words),
}
"""The constraints on a value, or on what is in it."""


# ---- tests of metadata --------------------------------------------------------------------


def _has_all(names: Sequence[str]) -> PartTest:
    if len(names) == 1:  # as in most rules
        (name,) = names
        return lambda metadata: name in metadata

    def test(metadata: Any) -> bool:
        for name in names:  # noqa: SIM110 - all() of a generator takes twice as long
            if name not in metadata:
                return False
        return True

    return test


def _has_any(names: Sequence[str], metadata: Any) -> bool:
    return any(name in metadata for name in names)


def _has_pairs(pairs: Mapping[str, str], metadata: Any) -> bool:
    """Return whether names which are there have those that belong to them."""
    present = [name for name in pairs if name in metadata]
    return all(pairs[name] in metadata for name in present)


def _where_present(fields: Mapping[str, Mapping[str, Any]]) -> PartTest:
    """Test the fields that are there."""
    tests: list[tuple[str, PartTest]] = []
    for name, constraints in fields.items():
        for constraint, argument in constraints.items():
            tests.append((name, OF_VALUE[constraint].compile(argument)))

    def test(metadata: Any) -> bool:
        for name, holds in tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if name in metadata and not holds(metadata[name]):
                return False
        return True

    return test


# ---- tests of a record, and of what was logged before it ----------------------------------


def _within_minutes(argument: Mapping[str, Any], record: Record, seen: Seen) -> bool:
    """Return whether less than ``minutes`` passed since the earliest ``of``, or ``until`` came."""
    start = argument["of"]
    if argument.get("until") in seen or start not in seen:
        return True
    elapsed: float = record.time_ms - seen[start].earliest_ms
    return bool(elapsed < argument["minutes"] * 60_000.0)


def _same_as(key: str, record: Record, seen: Seen) -> bool:
    """Return whether a value is the last one of another key so far; None if there is none."""
    other = seen[key].last if key in seen else None
    return bool(record.value == other)


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
        names = " and ".join(wrong)
        return Breach(
            f"{violation} {names}",
            f"it {expected} {' and '.join(keys)}",
            f"{record.key} is logged on a line {{found:s}}; expected {expected} {names}",
        )

    return describe


def _too_late(argument: Mapping[str, Any], record: Record, seen: Seen) -> Breach:
    """Say how many minutes passed, or which key, which would allow any number, is missing."""
    needed = _minutes_of(argument)
    until = argument.get("until")
    if until:
        message = f"{record.key} is logged {{found:s}}; expected after {until}"
        return Breach(f"before {until}", needed, message)
    start = argument["of"]
    limit = argument["minutes"]
    minutes = (record.time_ms - seen[start].earliest_ms) / 60_000
    form = ",.1f"
    bound = "within"
    if round(minutes, 1) <= limit:
        form = ",.3f"
        bound = "after less than"
    message = (
        f"{record.key} is logged {{found:{form}}} minutes after {start};"
        f" expected {bound} {limit} minutes"
    )
    return Breach(round(minutes, 3), needed, message, is_limit=minutes == limit)


def _lacks(needed: Callable[[Any], str]) -> Callable[..., Breach]:
    """List the names that the metadata have; ``needed`` says which are expected."""

    def describe(argument: Any, record: Record, _: Seen) -> Breach:
        message = f"{record.key} has {{found:s}}; expected {{expected}}"
        return Breach(_metadata_in_words(record.metadata), needed(argument), message)

    return describe


def _metadata_in_words(metadata: Any) -> str:
    if not isinstance(metadata, dict):
        return f"{shown(metadata)} as metadata"
    if not metadata:
        return "empty metadata"
    return f"metadata with {', '.join(metadata)}"


def _wrong_field(fields: Mapping[str, Mapping[str, Any]], record: Record, _: Seen) -> Breach:
    """Show the first of the metadata that is not as expected."""
    needed = OF_VALUE["fields"].needed(fields)
    if isinstance(record.metadata, dict):
        for name, constraints in fields.items():
            if name in record.metadata and not _meets(record.metadata[name], constraints):
                value = record.metadata[name]
                words = needed_in_words(constraints)
                message = (
                    f"{name} in the metadata of {record.key} is {{found}}; expected"
                    f" {number_if_none(value, words)}{words}"
                )
                return Breach(value, needed, message)
    subject = f"{record.key} has {{found}} as metadata, which is not a JSON object"
    return Breach(record.metadata, needed, f"{subject}; expected an object with {{expected}}")


def _meets(value: Any, constraints: Mapping[str, Any]) -> bool:
    try:
        return holds(value, constraints)
    except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
        return False


def _differs(key: str, record: Record, seen: Seen) -> Breach:
    """Say the value of the other key."""
    expected = _value_of(key)
    if key in seen:
        expected = f"{shown(seen[key].last)}, {expected}"
    return Breach(record.value, expected, f"{record.key} is {{found}}; expected {{expected}}")


def _minutes_of(argument: Mapping[str, Any]) -> str:
    """Return which time is allowed, in words."""
    return f"within {argument['minutes']} minutes of {argument['of']}"


def _value_of(key: str) -> str:
    """Return which value is expected, in words."""
    return f"the value of {key} that is logged earlier"


def _pairs_in_words(pairs: Mapping[str, str]) -> str:
    parts = [f"{needed} where {name} is" for name, needed in pairs.items()]
    return f"metadata with {' and '.join(parts)}"


def _metadata_fields_in_words(fields: Mapping[str, Mapping[str, Any]]) -> str:
    return f"metadata with {_fields_in_words(fields)}"


def _formula_in_words(text: str) -> str:
    # What puts formulas into words is seldom needed.
    from mlperf_pkg.rulebook.expectation import in_general  # noqa: PLC0415

    return in_general(text, "the value")


# ---- the vocabulary -----------------------------------------------------------------------

_METADATA_WITH = _listed("metadata with")
_METADATA_WITH_ANY = _listed("metadata with", " or ")

_of_names = partial(Constraint, RecordPart.NAMES)
_of_record = partial(Constraint, RecordPart.ALL)

CONSTRAINTS: Mapping[str, Constraint] = {
    **OF_VALUE,
    "metadata": _of_names(_has_all, _METADATA_WITH, _lacks(_METADATA_WITH)),
    "metadata_any": _of_names(_binding(_has_any), _METADATA_WITH_ANY, _lacks(_METADATA_WITH_ANY)),
    "metadata_pairs": _of_names(_binding(_has_pairs), _pairs_in_words, _lacks(_pairs_in_words)),
    "metadata_fields": Constraint(
        RecordPart.METADATA, _where_present, _metadata_fields_in_words, _wrong_field
    ),
    "same_as": _of_record(_binding(_same_as), _value_of, _differs),
    "after": _of_record(
        partial(_logged, expected=True),
        _listed("it after"),
        _out_of_order("before", "after", logged=False),
    ),
    "before": _of_record(
        partial(_logged, expected=False),
        _listed("it before"),
        _out_of_order("after", "before", logged=True),
    ),
    "within_minutes": _of_record(_binding(_within_minutes), _minutes_of, _too_late),
}


TARGETS: Mapping[str, Constraint] = {
    **CONSTRAINTS,
    "formula": _of_record(lambda text: Formula(text).holds, _formula_in_words),
}
"""The constraints that a quality target may have: it may be a formula, too."""


def target_test(constraints: Mapping[str, Any]) -> Test:
    """Return the test of all constraints of a target; it raises what comparing a record raises."""
    if not constraints.keys() <= OF_VALUE.keys():  # rare
        tests = [TARGETS[name].test(argument) for name, argument in constraints.items()]
        return lambda record, seen: all(test(record, seen) for test in tests)
    value_tests = [OF_VALUE[name].compile(argument) for name, argument in constraints.items()]

    def meets_all(record: Record, _: Seen) -> bool:
        for holds in value_tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not holds(record.value):
                return False
        return True

    return meets_all
