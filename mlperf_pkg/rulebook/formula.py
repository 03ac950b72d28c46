"""Formulas between keys, in CEL, the Common Expression Language.

All numbers are doubles, so that ``value >= 2 * other`` cannot mean one thing for ``1`` and another
for ``1.0``: write ``2.0 * other``; the compiler refuses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

# Not a function, a namespace (math.) or a member of one.
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*[(.])")

Formula = Callable[[Mapping[str, Any]], bool]


@lru_cache
def names_in(formula: str) -> frozenset[str]:
    """The identifiers of a formula: ``value`` and the keys it relates."""
    return frozenset(_NAME.findall(formula)) - {"true", "false"}


@lru_cache
def compile_formula(formula: str) -> Formula:
    """A formula as a function of the values of its names.

    The function is False where a value is missing or is no number.

    Raises:
        ValueError: it is no CEL, or not of type bool.
    """
    # The library takes a few milliseconds to import; most logs need none of it.
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_math  # noqa: PLC0415

    names = sorted(names_in(formula))
    environment = cel.NewEnv(
        variables=dict.fromkeys(names, cel.Type.DOUBLE), extensions=[ext_math.ExtMath()]
    )
    try:
        expression = environment.compile(formula)
    except RuntimeError as error:
        raise ValueError(f"formula {formula!r}: {error}") from error
    if expression.return_type() != cel.Type.BOOL:
        raise ValueError(f"formula {formula!r} is no condition")

    def holds(values: Mapping[str, Any]) -> bool:
        numbers = {name: values.get(name) for name in names}
        if not all(isinstance(number, int | float) for number in numbers.values()):
            return False
        data = {name: float(number) for name, number in numbers.items()}  # type: ignore[arg-type]
        return expression.eval(data=data).value() is True

    return holds
