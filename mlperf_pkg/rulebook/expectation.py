"""What a formula expects of a record, so far as it says so: the amount, and its limits.

``value == E``, ``math.abs(metadata.m - previous.m - E) <= T`` or ``value >= E1 && value <= E2``
set limits for an amount; so do alternatives of them, joined by ``||``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from mlperf_pkg.rulebook.arithmetic import function_of, in_words, parsed, rounding, same, text_of
from mlperf_pkg.rulebook.formula import names_in

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
