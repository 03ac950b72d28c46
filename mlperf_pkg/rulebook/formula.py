"""Formulas between keys, in CEL, the Common Expression Language.

All numbers are doubles, so that ``value >= 2 * other`` cannot mean one thing for ``1`` and another
for ``1.0``: write ``2.0 * other``; the compiler refuses the rest. Where the official checker tests
doubles for equality, a formula keeps its order of operations, and so gets the same doubles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

# Not a function, a namespace (math.) or a member of one.
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*[(.])")
_MEMBER = re.compile(r"\b(metadata|previous)\.(\w+)")
_REMEMBERED = 1 << 12  # answers for each formula: runs of a set ask the same again

Formula = Callable[[Mapping[str, Any]], bool]


class NoAnswerError(ValueError):
    """A formula needs a value that is missing or no number."""


@lru_cache
def names_in(formula: str) -> frozenset[str]:
    """The identifiers of a formula: ``value`` and the keys it relates."""
    return frozenset(_NAME.findall(formula)) - {"true", "false"}


def of_a_record(formula: str) -> bool:
    """Whether a formula is about single records, not about the run's final values."""
    return bool(_MEMBER.search(formula))


@lru_cache
def compile_formula(formula: str) -> Formula:
    """A formula as a function of the values of its names.

    ``metadata.<name>`` stands for a number or text of the record's metadata, ``previous.<name>``
    for that of the same key's record before it. The function raises
    ``NoAnswerError`` where it needs a value that is missing or no number; a part that the rest
    decides without needing it (``a || b``) is not needed.

    Raises:
        ValueError: it is no CEL, or not of type bool.
    """
    # The library takes a few milliseconds to import; most logs need none of it.
    from cel_expr_python import cel  # noqa: PLC0415

    names = sorted(names_in(formula))
    members = sorted(set(_MEMBER.findall(formula)))
    objects = {name for name, _ in members}
    types = dict.fromkeys(names, cel.Type.DOUBLE)
    types |= dict.fromkeys(objects, cel.Type.Map(cel.Type.STRING, cel.Type.DYN))
    environment = cel.NewEnv(variables=types, extensions=_extensions(formula))
    try:
        expression = environment.compile(formula)
    except RuntimeError as error:
        raise ValueError(f"formula {formula!r}: {error}") from error
    if expression.return_type() != cel.Type.BOOL:
        raise ValueError(f"formula {formula!r} is no condition")

    def answer(numbers: tuple[float | None, ...], told: tuple[Any, ...]) -> bool | str:
        """True or false, or why there is no answer."""
        data: dict[str, Any] = {n: v for n, v in zip(names, numbers, strict=True) if v is not None}
        data |= {name: {} for name in objects}
        for (name, member), value in zip(members, told, strict=True):
            if value is not None:
                data[name][member] = value
        result = expression.eval(data=data)
        return result.value() is True if result.type() == cel.Type.BOOL else str(result.value())

    remembered = lru_cache(_REMEMBERED)(answer)

    def holds(values: Mapping[str, Any]) -> bool:
        numbers = tuple([_double(values.get(name)) for name in names])
        told = tuple([_told(values.get(name), member) for name, member in members])
        # Zeros have a sign, which equality does not tell.
        ask = answer if 0.0 in numbers or 0.0 in told else remembered
        found = ask(numbers, told)
        if isinstance(found, str):
            raise NoAnswerError(found)
        return found

    return holds


def _extensions(formula: str) -> list[Any]:
    """Of the library only what the formula needs: it takes a while to import."""
    if "math." not in formula:
        return []
    from cel_expr_python.ext import ext_math  # noqa: PLC0415 - slow to import

    return [ext_math.ExtMath()]


def _double(value: Any) -> float | None:
    """A number as a double; None for what is none."""
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if value > 0 else -math.inf


def _told(metadata: Any, member: str) -> float | str | None:
    """A number as a double, or a text, of a record's metadata; None where there is neither."""
    value = metadata.get(member) if isinstance(metadata, dict) else None
    if isinstance(value, str):  # halves of surrogate pairs, which CEL cannot hold, are spelt out
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return _double(value)
