"""Simple formulas, evaluated without CEL: nearly all, as loading and compiling CEL takes time.

As in ``arithmetic``, Python's parser reads a formula; nothing is executed. All numbers are doubles,
as in CEL. Whatever may be different in CEL (a text, a division by zero, a number out of range)
raises an exception, so that CEL can decide.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from mlperf_pkg.rulebook.logged import METADATA_NAMES

Evaluate: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""The value of an expression for data as CEL takes it; raises ``KeyError`` if it lacks a value."""

UNUSUAL = (TypeError, ValueError, ArithmeticError)
"""The exceptions of ``Evaluate`` that leave a value to CEL."""

_LARGEST_INTEGER = 2.0**63
_NOT_KEYS = frozenset({*METADATA_NAMES, "true", "false", "null"})
_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class _NotPlainError(ValueError):
    """An expression has a part that only CEL knows."""


@lru_cache(maxsize=1024)
def plain_condition(text: str) -> Evaluate | None:
    """Return what evaluates a condition; None if only CEL can."""
    return _plain(text, _condition)


@lru_cache(maxsize=1024)
def plain_number(text: str) -> Evaluate | None:
    """Return what evaluates an expression that gives a double; None if only CEL can."""
    return _plain(text, _number)


def _plain(text: str, kind: Callable[[ast.expr], Evaluate]) -> Evaluate | None:
    try:
        tree = ast.parse(text.replace("&&", " and ").replace("||", " or ").strip(), mode="eval")
        return kind(tree.body)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _condition(tree: ast.expr) -> Evaluate:
    match tree:
        case ast.Compare(left=left, ops=[relation], comparators=[right]):
            return _applied(relation, left, right)
        case ast.BoolOp(op=ast.And(), values=parts):
            return _decided_by(False, [_condition(part) for part in parts])
        case ast.BoolOp(op=ast.Or(), values=parts):
            return _decided_by(True, [_condition(part) for part in parts])
        case ast.Call(
            func=ast.Name(id="has"), args=[ast.Attribute(value=ast.Name(id=owner), attr=name)]
        ):
            return lambda data: name in data[owner]
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="math"), attr="isFinite"), args=[argument]
        ):
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
        case ast.BinOp(left=left, op=sign, right=right):
            return _applied(sign, left, right)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="math"), attr=name), args=[argument]
        ) if name in _FUNCTIONS:
            number, function = _number(argument), _FUNCTIONS[name]
            return lambda data: function(number(data))
        case ast.Call(
            func=ast.Name(id="double"), args=[ast.Call(func=ast.Name(id="int"), args=[argument])]
        ):
            number = _number(argument)
            return lambda data: _truncated(number(data))
    raise _NotPlainError


def _applied(sign: ast.AST, left: ast.expr, right: ast.expr) -> Evaluate:
    if type(sign) not in _OPERATORS:
        raise _NotPlainError
    function, first, second = _OPERATORS[type(sign)], _number(left), _number(right)
    return lambda data: function(first(data), second(data))


def _decided_by(deciding: bool, parts: Sequence[Evaluate]) -> Evaluate:
    """Return a conjunction or disjunction: one part decides it, even if others lack a value."""

    def evaluate(data: Mapping[str, Any]) -> bool:
        lacking = False
        for part in parts:
            try:
                if part(data) == deciding:
                    return deciding
            except KeyError:
                lacking = True
        if lacking:
            raise KeyError
        return not deciding

    return evaluate


def _rounded(number: float) -> float:
    """Round half away from zero."""
    whole = math.trunc(number)
    return float(whole + math.copysign(abs(number - whole) >= 0.5, number))  # noqa: PLR2004


def _truncated(number: float) -> float:
    if abs(number) >= _LARGEST_INTEGER:
        raise OverflowError
    return float(math.trunc(number))


_FUNCTIONS: Mapping[str, Callable[[Any], float]] = {
    "abs": abs,
    "ceil": lambda number: float(math.ceil(number)),
    "floor": lambda number: float(math.floor(number)),
    "round": _rounded,
    "sqrt": math.sqrt,
}
