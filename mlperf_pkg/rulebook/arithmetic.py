"""Formulas in words: arithmetic as a person writes it."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from mlperf_pkg.rulebook.formula import tree_of

Values: TypeAlias = Mapping[str, str]

_SUM, _PRODUCT, _SIGN, _ATOM = 1, 2, 3, 4  # operator precedence; 0 for a phrase
_SIGNS: Mapping[type[ast.AST], tuple[str, int]] = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
}
_RELATIONS: Mapping[type[ast.AST], str] = {
    ast.Eq: "is",
    ast.NotEq: "is not",
    ast.Lt: "is below",
    ast.LtE: "is at most",
    ast.Gt: "is above",
    ast.GtE: "is at least",
}
_ROUNDED: Mapping[str, str] = {"ceil": "rounded up", "floor": "rounded down", "round": "rounded"}
_CALLED: Mapping[str, tuple[str, int]] = {
    "sqrt": ("sqrt({})", _ATOM),
    "abs": ("|{}|", _ATOM),
    "greatest": ("the greater of {} and {}", 0),
    "least": ("the lesser of {} and {}", 0),
    "isFinite": ("{} is finite", 0),
}
_EXACT = 1e15  # doubles above it may skip integers
_DIGITS, _MOST_DIGITS = 6, 17  # of a number; the most tell all doubles apart


@lru_cache
def parsed(formula: str) -> ast.expr | None:
    """Return the tree of a formula; None if it uses what cannot be put into words."""
    try:
        tree = tree_of(formula)
        in_words(tree)
    except (ValueError, MemoryError, RecursionError):
        return None
    return tree


@lru_cache(maxsize=1024)
def text_of(tree: ast.expr) -> str:
    """Return the formula of an expression that has no ``&&`` or ``||``."""
    return ast.unparse(tree)


def in_words(tree: ast.expr, values: Values | None = None, *, commas: bool = False) -> str:
    """Return a tree in words, with ``values`` in place of names, as in "8000 * 1152 / 12800".

    ``commas`` puts commas between the thousands of its numbers.

    Raises:
        ValueError: there are no words for a part of it.
    """
    return _Words(values or {}, commas=commas).of(tree)


def plain(number: float, tolerance: float = 0.0, *, commas: bool = False) -> str:
    """Return a number as a person writes it, with no more digits than ``tolerance`` needs."""
    form = "," if commas else ""
    if not math.isfinite(number):
        return str(number)
    if number == int(number) and abs(number) < _EXACT:
        return f"{int(number):{form}d}"
    fewest = max(_DIGITS, min(len(str(int(abs(number)))), _MOST_DIGITS))
    digits = range(fewest, _MOST_DIGITS + 1)
    texts = (f"{number:.{count}g}" for count in digits)
    text = next(text for text in texts if _is_near(number, text, tolerance))
    return f"{float(text):,}" if commas else text


def rounding(tree: ast.expr) -> tuple[ast.expr, str, ast.expr | None] | None:
    """Return what is rounded, in which way, and to a multiple of what (None: of one)."""
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        left, right = tree.left, tree.right
        return _rounded_to(left, right) or _rounded_to(right, left)
    name = function_of(tree)
    if name in _ROUNDED and isinstance(tree, ast.Call):
        return tree.args[0], _ROUNDED[name], None
    return None


def _rounded_to(rounded: ast.expr, multiple: ast.expr) -> tuple[ast.expr, str, ast.expr] | None:
    """Return the parts of ``math.ceil(amount / multiple) * multiple``."""
    whole = rounding(rounded)
    if whole is None or whole[2] is not None:
        return None
    match whole[0]:
        case ast.BinOp(left=amount, op=ast.Div(), right=divisor) if same(divisor, multiple):
            return amount, whole[1], multiple
    return None


def function_of(tree: ast.expr) -> str:
    """Return the name of the function that an expression calls; empty if it does not."""
    if not isinstance(tree, ast.Call):
        return ""
    function = tree.func
    return function.attr if isinstance(function, ast.Attribute) else text_of(function)


def same(one: ast.expr, other: ast.expr) -> bool:
    """Return whether two expressions are written alike."""
    return ast.dump(one) == ast.dump(other)


def _is_near(number: float, text: str, tolerance: float) -> bool:
    return abs(float(text) - number) <= tolerance or float(text) == number


class _Words:
    """Puts a tree into words."""

    def __init__(self, values: Values, *, commas: bool) -> None:
        self._values = values
        self._commas = commas

    def of(self, tree: ast.expr, least: int = 0) -> str:
        """Return an expression, in parentheses if its precedence is below ``least``."""
        text, binding = self._part(tree)
        return text if binding >= least else f"({text})"

    def _part(self, tree: ast.expr) -> tuple[str, int]:
        if rounded := rounding(tree):
            return self._rounded(*rounded), 0
        match tree:
            case ast.Constant() | ast.Name() | ast.Attribute():
                return self._atom(tree), _ATOM
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self.of(operand, _SIGN)}", _SIGN
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SIGNS:
                sign, binding = _SIGNS[type(operator)]
                return f"{self.of(left, binding)} {sign} {self.of(right, binding + 1)}", binding
            case ast.Call(args=arguments):
                return self._call(function_of(tree), arguments)
        return self._condition(tree), 0

    def _atom(self, tree: ast.Constant | ast.Name | ast.Attribute) -> str:
        match tree:
            case ast.Constant(value=float() | int() as number):
                return plain(number, commas=self._commas)
            case ast.Name(id=name):
                return self._values.get(name, name)
            case ast.Attribute(value=ast.Name(id="metadata"), attr=name):
                return name
            case ast.Attribute(value=ast.Name(id="previous"), attr=name):
                return f"the previous {name}"
        raise ValueError(f"there are no words for {text_of(tree)}")

    def _rounded(self, amount: ast.expr, how: str, multiple: ast.expr | None) -> str:
        words = f"{self.of(amount, _SUM)} {how}"
        return f"{words} to a multiple of {self.of(multiple, _ATOM)}" if multiple else words

    def _call(self, name: str, arguments: list[ast.expr]) -> tuple[str, int]:
        if name in {"double", "int"}:
            return self._part(arguments[0])
        if name not in _CALLED:
            raise ValueError(f"there are no words for the function {name}")
        words, binding = _CALLED[name]
        return words.format(*map(self.of, arguments)), binding

    def _condition(self, tree: ast.expr) -> str:
        match tree:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if (
                type(operator) in _RELATIONS
            ):
                return f"{self.of(left, _SUM)} {_RELATIONS[type(operator)]} {self.of(right, _SUM)}"
            case ast.BoolOp(op=operator, values=parts):
                word = " and " if isinstance(operator, ast.And) else " or "
                return word.join(self._clause(part) for part in parts)
        raise ValueError(f"there are no words for {type(tree).__name__}")

    def _clause(self, tree: ast.expr) -> str:
        return f"({self.of(tree)})" if isinstance(tree, ast.BoolOp) else self.of(tree)
