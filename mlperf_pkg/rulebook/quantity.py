"""Formulas that give a number, in CEL; rules have formulas that are conditions.

All values are doubles, as in rules. The type of the formula decides how the result is written:
``math.ceil(10.0 / global_batch_size)`` gives 2.0, ``int(math.ceil(10.0 / global_batch_size))`` 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mlperf_pkg.infra.numbers import is_number
from mlperf_pkg.rulebook.formula import RECORDS, Operands, names_in


def evaluate(formula: str, values: Mapping[str, Any]) -> int | float:
    """Return the number that a formula gives for ``values``, which may have more than it needs.

    Raises:
        ValueError: the formula is not valid CEL, needs a value that is missing or not a number, or
            does not give a number.
    """
    names = names_in(formula)
    if missing := sorted(names - values.keys()):
        raise ValueError(f"formula {formula!r}: no value for {', '.join(missing)}")
    data = {name: values[name] for name in names}
    if wrong := [name for name, value in data.items() if not is_number(value)]:
        raise ValueError(f"formula {formula!r}: {', '.join(sorted(wrong))} is not a number")
    expression = compile_quantity(formula)
    result = expression.eval(data={name: float(value) for name, value in data.items()}).value()
    if not is_number(result):  # division by zero, an integer of more than 64 bits
        raise ValueError(f"formula {formula!r}: {result}")
    return result


@lru_cache
def compile_quantity(formula: str) -> Any:
    """Return the compiled expression.

    Raises:
        ValueError: the formula is not valid CEL, or does not give a number.
    """
    cel, expression = _compiled(formula)
    if expression.return_type() not in (cel.Type.INT, cel.Type.DOUBLE):
        raise ValueError(f"formula {formula!r} does not give a number")
    return expression


def amount(expression: str, operands: Operands) -> int | float | None:
    """Return the number that a part of a rule's formula has for a record.

    None if it lacks a value, or is not a number.
    """
    _, compiled = _compiled(expression)
    result = compiled.eval(data=operands.data).value()
    return result if is_number(result) and not isinstance(result, bool) else None


@lru_cache
def _compiled(formula: str) -> tuple[Any, Any]:
    """Return the CEL library and a compiled expression.

    Raises:
        ValueError: the formula is not valid CEL.
    """
    cel, environment = _environment(names_in(formula))
    try:
        return cel, environment.compile(formula)
    except RuntimeError as error:
        raise ValueError(f"formula {formula!r}: {error}") from error


@lru_cache
def _environment(names: frozenset[str]) -> tuple[Any, Any]:
    """Return the CEL library and an environment in which ``names`` are doubles."""
    # The library takes a few milliseconds to import.
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_math  # noqa: PLC0415

    types = dict.fromkeys(names, cel.Type.DOUBLE)
    types |= dict.fromkeys(RECORDS, cel.Type.Map(cel.Type.STRING, cel.Type.DYN))
    return cel, cel.NewEnv(variables=types, extensions=[ext_math.ExtMath()])
