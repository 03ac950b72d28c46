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
_METADATA = re.compile(r"\b(metadata|previous)\.")

Formula = Callable[[Mapping[str, Any]], bool]


class NoAnswerError(ValueError):
    """A formula needs a value that is missing or no number."""


@lru_cache
def names_in(formula: str) -> frozenset[str]:
    """The identifiers of a formula: ``value`` and the keys it relates."""
    return frozenset(_NAME.findall(formula)) - {"true", "false"}


def of_a_record(formula: str) -> bool:
    """Whether a formula is about single records, not about the run's final values."""
    return bool(_METADATA.search(formula))


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
    from cel_expr_python.ext import ext_math  # noqa: PLC0415

    names = sorted(names_in(formula))
    objects = set(_METADATA.findall(formula))
    types = dict.fromkeys(names, cel.Type.DOUBLE)
    types |= dict.fromkeys(objects, cel.Type.Map(cel.Type.STRING, cel.Type.DYN))
    environment = cel.NewEnv(variables=types, extensions=[ext_math.ExtMath()])
    try:
        expression = environment.compile(formula)
    except RuntimeError as error:
        raise ValueError(f"formula {formula!r}: {error}") from error
    if expression.return_type() != cel.Type.BOOL:
        raise ValueError(f"formula {formula!r} is no condition")

    def holds(values: Mapping[str, Any]) -> bool:
        data: dict[str, Any] = _numbers({name: values.get(name) for name in names})
        data |= {name: _plain(values.get(name)) for name in objects}
        result = expression.eval(data=data)
        if result.type() != cel.Type.BOOL:
            raise NoAnswerError(str(result.value()))
        return result.value() is True

    return holds


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _double(value) for name, value in values.items() if isinstance(value, int | float)
    }


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if number > 0 else -math.inf


def _plain(metadata: Any) -> dict[str, Any]:
    """Numbers as doubles, and texts, of a record's metadata."""
    if not isinstance(metadata, dict):
        return {}
    return _numbers(metadata) | {n: text for n, text in metadata.items() if isinstance(text, str)}
