"""Formulas evaluated without the CEL library: all of the rulebook, and most others.

As in ``arithmetic``, Python's parser reads a formula; nothing is executed. All numbers are doubles,
but for ``int(...)`` and whole numbers in a quantity. Values have the answers of CEL, also strings,
infinities and divisions by zero.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from mlperf_pkg.rulebook.logged import METADATA_NAMES

Evaluate: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""The value of an expression for data as CEL takes it."""

NO_ANSWER = (KeyError, TypeError, ValueError, ArithmeticError)
"""The exceptions of ``Evaluate``: a value is missing, too large, or a string and no number."""

_LARGEST_INTEGER = 2**63
# What Python reads differently from CEL, if CEL reads it at all.
_NOT_CEL = re.compile(r"[^ -~\s]|[#'\"\\]|\d_|\d\.(?!\d)|--|\b(and|or|not|if|else|in|is|lambda)\b")
_LONGEST_NUMBER = 1000  # digits
_WHOLE = re.compile(r"[ \t-\r]*[+-]?[0-9]+[ \t-\r]*")
_NOT_KEYS = frozenset({*METADATA_NAMES, "true", "false", "null"})
_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class _NotPlainError(ValueError):
    """An expression has a part that only the CEL library knows."""


@lru_cache(maxsize=1024)
def plain_condition(text: str) -> Evaluate | None:
    """Return what evaluates a condition; None if only the CEL library can."""
    return _plain(text, _condition)


@lru_cache(maxsize=1024)
def plain_number(text: str) -> Evaluate | None:
    """Return what evaluates an expression that gives a double; None if only CEL can."""
    return _plain(text, _number)


@lru_cache(maxsize=1024)
def plain_quantity(text: str) -> Evaluate | None:
    """Return what evaluates an expression that gives a double or an integer; else None."""
    return plain_number(text) or _plain(text, _integer)


def _plain(text: str, kind: Callable[[ast.expr], Evaluate]) -> Evaluate | None:
    if _NOT_CEL.search(text):
        return None
    try:
        python = _with_python_choices(text.replace("&&", " and ").replace("||", " or ").strip())
        return kind(ast.parse(python, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _with_python_choices(text: str) -> str:
    """Return a formula with ``b if a else c`` for ``a ? b : c``."""
    if "?" not in text:
        return text
    levels = [""]  # the contents of the parentheses that are open
    for part in re.split(r"([()])", text):
        if part == "(":
            levels.append("")
        elif part == ")" and len(levels) > 1:
            inner = levels.pop()
            levels[-1] += f"({_with_python_choice(inner)})"
        else:
            levels[-1] += part
    return _with_python_choice("(".join(levels))


def _with_python_choice(text: str) -> str:
    test, choice, rest = text.partition("?")
    first, _, second = rest.partition(":")
    return f"({first}) if ({test}) else ({_with_python_choice(second)})" if choice else text


def _condition(tree: ast.expr) -> Evaluate:
    match tree:
        case ast.Name(id="true" | "false" as name):
            return lambda _: name == "true"
        case ast.Compare(left=left, ops=[relation], comparators=[right]):
            return _applied(relation, left, right)
        case ast.BoolOp(op=sign, values=parts):
            return _decided_by(isinstance(sign, ast.Or), [_condition(part) for part in parts])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            decides, one, other = _condition(test), _condition(body), _condition(orelse)
            return lambda data: one(data) if decides(data) else other(data)
        case ast.Call(func=function, args=[argument], keywords=[]):
            return _tested(function, argument)
    raise _NotPlainError


def _tested(function: ast.expr, argument: ast.expr) -> Evaluate:
    match function, argument:
        case ast.Name(id="has"), ast.Attribute(value=ast.Name(id=owner), attr=name):
            return lambda data: name in data[owner]
        case ast.Attribute(value=ast.Name(id="math"), attr="isFinite"), _:
            number = _number(argument)
            return lambda data: math.isfinite(number(data))
    raise _NotPlainError


def _number(tree: ast.expr) -> Evaluate:
    match tree:
        case ast.Constant(value=float() as value):
            return lambda _: value
        case ast.Name(id=name) if name not in _NOT_KEYS:
            return operator.itemgetter(name)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in METADATA_NAMES:
            return lambda data: data[owner][name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _number(operand)
            return lambda data: -negated(data)
        case ast.BinOp(left=left, op=sign, right=right):
            return _applied(sign, left, right)
        case ast.Call(func=function, args=arguments, keywords=[]):
            return _called(function, arguments)
    raise _NotPlainError


def _called(function: ast.expr, arguments: list[ast.expr]) -> Evaluate:
    match function, arguments:
        case ast.Name(id="double"), [argument]:
            integer = _integer(argument)
            return lambda data: float(integer(data))
        case ast.Attribute(value=ast.Name(id="math"), attr=name), [argument] if name in _FUNCTIONS:
            number, of_number = _number(argument), _FUNCTIONS[name]
            return lambda data: of_number(number(data))
        case ast.Attribute(value=ast.Name(id="math"), attr=name), [one, other] if name in _EXTREMES:
            return _extreme(_EXTREMES[name], one, other)
    raise _NotPlainError


def _integer(tree: ast.expr) -> Evaluate:
    match tree:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return lambda _: value
        case ast.Call(func=ast.Name(id="int"), args=[argument], keywords=[]):
            number = _number(argument)
            return lambda data: _whole(number(data))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as sign, right=right):
            function, first, second = _OPERATORS[type(sign)], _integer(left), _integer(right)
            return lambda data: _in_range(function(first(data), second(data)))
    raise _NotPlainError


def _extreme(beats: Callable[[Any, Any], bool], one: ast.expr, other: ast.expr) -> Evaluate:
    first, second = _number(one), _number(other)

    def evaluate(data: Mapping[str, Any]) -> Any:
        value, challenger = _double(first(data)), _double(second(data))
        return challenger if beats(challenger, value) else value

    return evaluate


def _applied(sign: ast.AST, left: ast.expr, right: ast.expr) -> Evaluate:
    function = _divided if isinstance(sign, ast.Div) else _OPERATORS.get(type(sign))
    if function is None:
        raise _NotPlainError
    first, second = _number(left), _number(right)
    return lambda data: function(first(data), second(data))


def _decided_by(deciding: bool, parts: Sequence[Evaluate]) -> Evaluate:
    """Return a conjunction or disjunction: one part decides it, even if others lack a value."""

    def evaluate(data: Mapping[str, Any]) -> bool:
        lacking = False
        for part in parts:
            try:
                if part(data) == deciding:
                    return deciding
            except NO_ANSWER:
                lacking = True
        if lacking:
            raise KeyError
        return not deciding

    return evaluate


def _divided(number: float, divisor: float) -> float:
    """Divide as processors do."""
    try:
        return number / divisor
    except ZeroDivisionError:
        if math.isnan(number) or not number:
            return math.nan
        return math.copysign(math.inf, number) * math.copysign(1.0, divisor)


def _double(value: Any) -> float:
    """Return a number.

    Raises:
        TypeError: it is a string.
    """
    if isinstance(value, str):
        raise TypeError
    return value  # type: ignore[no-any-return]


def _of_finite(function: Callable[[float], float]) -> Callable[[float], float]:
    def evaluate(number: float) -> float:
        if not math.isfinite(number):
            return number
        return math.copysign(function(number), number)  # zero keeps its sign

    return evaluate


def _rounded(number: float) -> float:
    """Round half away from zero."""
    whole = math.trunc(number)
    return float(whole + math.copysign(abs(number - whole) >= 0.5, number))  # noqa: PLR2004


def _whole(value: float | str) -> int:
    if isinstance(value, str):
        if len(value) > _LONGEST_NUMBER or not _WHOLE.fullmatch(value):
            raise ValueError
        return _in_range(int(value))
    if abs(value) >= _LARGEST_INTEGER:
        raise OverflowError
    return math.trunc(value)


def _in_range(number: int) -> int:
    if not -_LARGEST_INTEGER <= number < _LARGEST_INTEGER:
        raise OverflowError
    return number


_EXTREMES = {"greatest": operator.gt, "least": operator.lt}
_FUNCTIONS: Mapping[str, Callable[[Any], float]] = {
    "abs": abs,
    "ceil": _of_finite(math.ceil),
    "floor": _of_finite(math.floor),
    "round": _of_finite(_rounded),
    "sqrt": lambda number: math.sqrt(number) if not number < 0 else math.nan,
}
