"""Formulas that give a number, in CEL; rules have formulas that are conditions.

All values are doubles, as in rules. The type of the formula decides how the result is written:
``math.ceil(10.0 / global_batch_size)`` gives 2.0, ``int(math.ceil(10.0 / global_batch_size))`` 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.rulebook.formula import Operands, names_in
from mlperf_pkg.rulebook.plain_formula import NO_ANSWER, Evaluate, plain_number, plain_quantity


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
    try:
        result = compile_quantity(formula)({name: float(value) for name, value in data.items()})
    except ArithmeticError as error:
        raise ValueError(f"formula {formula!r}: integer out of range") from error
    if not is_number(result):  # division by zero
        raise ValueError(f"formula {formula!r}: {result}")
    return result


def compile_quantity(formula: str) -> Evaluate:
    """Return what evaluates a formula.

    Raises:
        ValueError: the formula is not valid CEL, or does not give a number.
    """
    if evaluate := plain_quantity(formula):
        return evaluate
    from mlperf_pkg.rulebook.cel import quantity  # noqa: PLC0415 - slow to import

    expression = quantity(formula, names_in(formula))
    return lambda data: expression.eval(data=data).value()


def amount(expression: str, operands: Operands) -> int | float | None:
    """Return the number that a part of a rule's formula has for a record.

    None if it lacks a value, or is not a number.
    """
    evaluate, data = plain_number(expression), operands.data
    try:
        result = evaluate(data) if evaluate else _evaluated_by_cel(expression, data)
    except NO_ANSWER:
        return None
    return result if is_number(result) and not isinstance(result, bool) else None


def _evaluated_by_cel(expression: str, data: Mapping[str, Any]) -> Any:
    from mlperf_pkg.rulebook.cel import compiled  # noqa: PLC0415 - slow to import

    return compiled(expression, names_in(expression)).eval(data=data).value()
