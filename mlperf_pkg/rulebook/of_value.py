"""The words of the vocabulary that are about a value alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mlperf_pkg.log.record import shown

_INTEGER_TOLERANCE = 0.00001
_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "text": (str,)}


class OfValue(msgspec.Struct, frozen=True):
    """A constraint on a value or on a part of it, without the rest of the log.

    ``compile`` returns the test of a value for an argument.
    """

    compile: Callable[[Any], Callable[[Any], Any]]
    needed: Callable[[Any], str]


def is_integral(number: float) -> bool:
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


def listed(prefix: str, joint: str = " and ") -> Callable[[Any], str]:
    """Return what puts names into words, after a prefix and with a word between them."""
    return lambda names: f"{prefix} {joint.join(map(str, names))}".strip()


OF_VALUE: Mapping[str, OfValue] = {
    "equals": OfValue(lambda a: lambda v: v == a, shown),
    "one_of": OfValue(lambda a: lambda v: v in a, lambda a: f"one of {', '.join(map(shown, a))}"),
    "none_of": OfValue(
        lambda a: lambda v: v not in a, lambda a: f"none of {', '.join(map(shown, a))}"
    ),
    "at_least": OfValue(lambda a: lambda v: v >= a, lambda a: f"at least {a}"),
    "at_most": OfValue(lambda a: lambda v: v <= a, lambda a: f"at most {a}"),
    "counts_at_least": OfValue(lambda a: lambda v: _count(v) >= a, lambda a: f"at least {a}"),
    "above": OfValue(lambda a: lambda v: v > a, lambda a: f"above {a}"),
    "below": OfValue(lambda a: lambda v: v < a, lambda a: f"below {a}"),
    "close_to": OfValue(lambda a: lambda v: math.isclose(v, a), lambda a: f"{a}"),
    "not_empty": OfValue(lambda a: lambda v: v != "", lambda a: "a value"),
    "truthy": OfValue(lambda a: lambda v: bool(v) is a, lambda a: "true" if a else "false"),
    "type": OfValue(
        lambda a: lambda v: isinstance(v, _TYPES[a]),
        lambda a: f"{'an' if a[0] in 'ai' else 'a'} {a}",
    ),
    "reads_as": OfValue(
        lambda _: lambda v: isinstance(v, int) or (isinstance(v, str) and isinstance(int(v), int)),
        lambda a: f"an {a}, perhaps as text",
    ),
    "whole": OfValue(lambda a: lambda v: is_integral(v) is a, lambda a: "a whole number"),
    "multiple_of": OfValue(lambda a: lambda v: is_integral(v / a), lambda a: f"a multiple of {a}"),
    "power_of_two_times": OfValue(
        lambda a: lambda v: is_integral(math.log2(v / a)), lambda a: f"{a} times a power of two"
    ),
    "length": OfValue(lambda a: lambda v: len(v) == a, lambda a: f"{a} elements"),
    "length_at_least": OfValue(lambda a: lambda v: len(v) >= a, lambda a: f"at least {a} elements"),
    "in_ratio": OfValue(
        lambda a: lambda v: len(v) == len(a) and all(map(_proportional(v[0], a[0]), v, a)),
        lambda a: f"numbers in the ratio {' to '.join(map(str, a))}",
    ),
    "has": OfValue(lambda a: lambda v: all(name in v for name in a), listed("an object with")),
    "fields": OfValue(
        lambda a: lambda v: all(holds(v[name], constraints) for name, constraints in a.items()),
        lambda a: " and ".join(f"{name} {all_needed(parts)}" for name, parts in a.items()),
    ),
}
"""``fields`` is about the elements of a list (by number) or of an object (by name)."""


def holds(value: Any, constraints: Mapping[str, Any]) -> bool:
    """Return whether a value meets constraints of ``OF_VALUE``.

    Raises:
        Exception: whatever comparing the value raises.
    """
    return all(OF_VALUE[name].compile(arg)(value) for name, arg in constraints.items())


def all_needed(constraints: Mapping[str, Any]) -> str:
    """Return what constraints of ``OF_VALUE`` expect, in words."""
    return " and ".join(OF_VALUE[name].needed(argument) for name, argument in constraints.items())
