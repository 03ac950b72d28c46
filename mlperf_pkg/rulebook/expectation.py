"""Formulas in words, and what they expect of a record: the amount, and its limits.

``value == E``, ``math.abs(metadata.m - previous.m - E) <= T`` or ``value >= E1 && value <= E2``
set limits for an amount; so do alternatives of them, joined by ``||``.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from mlperf_pkg.rulebook.formula import names_in, tree_of

# ---- in words ------------------------------------------------------------------------------

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


# ---- parts of a formula --------------------------------------------------------------------


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


# ---- the amount and its limits -------------------------------------------------------------

_MIRRORED: Mapping[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.Eq,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_KINDS: Mapping[type[ast.AST], str] = {
    ast.Eq: "",
    ast.Lt: "below ",
    ast.LtE: "at most ",
    ast.Gt: "above ",
    ast.GtE: "at least ",
}
MULTIPLE = "a multiple of "


class Limit(Struct, frozen=True):
    """What an amount must be: the ``bound``, or of a ``kind`` "at least " or "a multiple of " it.

    It may differ from the bound by ``tolerance``, if there is one.
    """

    kind: str
    bound: ast.expr
    tolerance: ast.expr | None = None


class Expectation(Struct, frozen=True):
    """An ``amount`` of a record and its limits: all of them hold, or any of ``alternatives``."""

    amount: ast.expr
    limits: tuple[Limit, ...]
    alternatives: bool = False


@lru_cache
def expectation(formula: str) -> Expectation | None:
    """Return what a formula expects; None if it does not say so."""
    tree = parsed(formula)
    if not isinstance(tree, ast.BoolOp):
        return _of_comparison(tree) if tree else None
    if any(_of_the_run(part) for part in tree.values):
        return None
    parts = [part for part in map(_of_comparison, tree.values) if part]
    alternatives = isinstance(tree.op, ast.Or)
    if alternatives:  # others are for logs that count differently: epoch_num >= 168
        parts = [part for part in parts if not part.limits[0].kind]
    elif len(parts) < len(tree.values):
        return None
    if not parts or not all(same(part.amount, parts[0].amount) for part in parts):
        return None
    limits = tuple(part.limits[0] for part in parts)
    return Expectation(parts[0].amount, limits, alternatives)


def in_general(formula: str, subject: str) -> str:
    """Return what a formula expects of its ``subject`` in any run: "at least 0.5 * other"."""
    expects = expectation(formula)
    if expects and text_of(expects.amount) == "value":
        joint = " or " if expects.alternatives else " and "
        return joint.join(f"{limit.kind}{in_words(limit.bound)}" for limit in expects.limits)
    tree = parsed(formula)
    return in_words(tree, {"value": subject}) if tree else "what its formula computes"


def member_of(tree: ast.expr, owner: str) -> str:
    """Return the name of a member of ``metadata`` or ``previous``; empty for anything else."""
    if function_of(tree) in {"double", "int"} and isinstance(tree, ast.Call):
        return member_of(tree.args[0], owner)
    match tree:
        case ast.Attribute(value=ast.Name(id=name), attr=member) if name == owner:
            return member
    return ""


def interval_of(tree: ast.expr) -> str:
    """Return of which metadata an amount is the difference between two records; empty if none."""
    match tree:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            member = member_of(left, "metadata")
            return member if member == member_of(right, "previous") else ""
    return ""


def has_record(tree: ast.expr) -> bool:
    """Return whether an expression is about the record, or about the one before it."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return not names.isdisjoint({"value", "metadata", "previous"})


def _of_comparison(tree: ast.expr) -> Expectation | None:
    match tree:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            if type(operator) in _MIRRORED:
                return _of_sides(left, type(operator), right)
    return None


def _of_sides(left: ast.expr, operator: type[ast.AST], right: ast.expr) -> Expectation | None:
    if function_of(left) == "abs" and operator in {ast.Lt, ast.LtE}:
        return _of_distance(left, right)
    if operator is ast.Eq and isinstance(right, ast.Constant) and right.value == 0:
        difference = _difference(left)
        if difference and has_record(difference[1]):
            left, right = difference
    if has_record(right) and not has_record(left):
        left, operator, right = right, _MIRRORED[operator], left
    if not has_record(left):
        return None
    if not has_record(right):
        return Expectation(left, (Limit(_KINDS[operator], right),))
    for amount, other in ((left, right), (right, left)):
        if operator is ast.Eq and (multiple := _multiple_of(amount, other)):
            return Expectation(amount, (Limit(MULTIPLE, multiple),))
    return None


def _of_distance(left: ast.expr, tolerance: ast.expr) -> Expectation | None:
    """Return the expectation of ``abs(amount - bound) <= tolerance``."""
    difference = _difference(left.args[0]) if isinstance(left, ast.Call) else None
    if not difference or has_record(difference[1]) or not has_record(difference[0]):
        return None
    return Expectation(difference[0], (Limit("", difference[1], tolerance),))


def _multiple_of(amount: ast.expr, other: ast.expr) -> ast.expr | None:
    """Return of what ``amount`` is a multiple if it equals itself rounded to one."""
    rounded = rounding(other)
    return rounded[2] if rounded and same(rounded[0], amount) else None


def _difference(tree: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    match tree:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return left, right
    return None


def _of_the_run(tree: ast.expr) -> bool:
    """Return whether a condition is about other keys alone."""
    return bool(names_in(text_of(tree))) and not has_record(tree)
