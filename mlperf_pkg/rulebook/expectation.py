"""Formulas in words: what they expect of a record, and how a record breaks them.

``value == E``, ``math.abs(metadata.m - previous.m - E) <= T`` or ``value >= E1 && value <= E2``
set limits for an amount; so do alternatives of them, joined by ``||``.
"""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.log.record import shown
from mlperf_pkg.rulebook.formula import OF_A_RECORD, Operands, amount, names_in, tree_of, written
from mlperf_pkg.rulebook.model import EVALUATION_KEYS, POSITION_UNITS, Rule

# ---- in words ------------------------------------------------------------------------------

Values: TypeAlias = Mapping[str, str]

_SUM, _PRODUCT, _SIGN, _ATOM = 1, 2, 3, 4  # operator precedence; 0 for a phrase
_SIGNS: Mapping[type[ast.AST], tuple[str, int]] = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
}
_KINDS: Mapping[type[ast.AST], str] = {
    ast.Eq: "",
    ast.Lt: "below ",
    ast.LtE: "at most ",
    ast.Gt: "above ",
    ast.GtE: "at least ",
}
_RELATIONS: Mapping[type[ast.AST], str] = {
    ast.NotEq: "is not",
    **{sign: f"is {kind}".strip() for sign, kind in _KINDS.items()},
}
_ROUNDED: Mapping[str, str] = {"ceil": "rounded up", "floor": "rounded down", "round": "rounded"}
_CALLED: Mapping[str, tuple[str, int]] = {
    "sqrt": ("sqrt({})", _ATOM),
    "abs": ("|{}|", _ATOM),
    "greatest": ("the greater of {} and {}", 0),
    "least": ("the lesser of {} and {}", 0),
    "isFinite": ("{} is finite", 0),
}
_CONVERSIONS = frozenset({"double", "int"})
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


def in_words(tree: ast.expr, values: Values | None = None, least: int = 0) -> str:
    """Return a tree in words, with ``values`` in place of names, as in "8,000 * 1,152 / 12,800".

    It is in parentheses if its precedence is below ``least``.

    Raises:
        ValueError: there are no words for a part of it.
    """
    values = values or {}
    of = partial(in_words, values=values)
    name = function_of(tree)
    binding = 0
    match rounding(tree) or tree:
        case amount, how, multiple:
            text = f"{of(amount, least=_SUM)} {how}"
            text += f" to a multiple of {of(multiple, least=_ATOM)}" if multiple else ""
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            text = f"-{of(operand, least=_SIGN)}"
            binding = _SIGN
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SIGNS:
            sign, binding = _SIGNS[type(operator)]
            text = f"{of(left, least=binding)} {sign} {of(right, least=binding + 1)}"
        case ast.Call(args=[number]) if name in _CONVERSIONS:
            return in_words(number, values, least)
        case ast.Call(args=arguments) if name in _CALLED:
            words, binding = _CALLED[name]
            text = words.format(*map(of, arguments))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _RELATIONS:
            text = f"{of(left, least=_SUM)} {_RELATIONS[type(sign)]} {of(right, least=_SUM)}"
        case ast.BoolOp(op=operator, values=parts):
            joint = " and " if isinstance(operator, ast.And) else " or "
            text = joint.join(of(part, least=isinstance(part, ast.BoolOp)) for part in parts)
        case _:
            text = _atom(tree, values)
            binding = _ATOM
    return text if binding >= least else f"({text})"


def plain(number: float, tolerance: float = 0.0) -> str:
    """Return a number as a person writes it, with no more digits than ``tolerance`` needs."""
    if not math.isfinite(number):
        return str(number)
    if number == int(number) and abs(number) < _EXACT:
        return f"{int(number):,d}"
    fewest = max(_DIGITS, min(len(str(int(abs(number)))), _MOST_DIGITS))
    digits = range(fewest, _MOST_DIGITS + 1)
    texts = (f"{number:.{count}g}" for count in digits)
    near = (text for text in texts if abs(float(text) - number) <= tolerance)
    return f"{float(next(near, repr(number))):,}".removesuffix(".0")


def _atom(tree: ast.expr, values: Values) -> str:
    match tree:
        case ast.Constant(value=float() | int() as number):
            return plain(number)
        case ast.Name(id=name):
            return values.get(name, name)
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return f"{values.get(name, name)}[{ast.unparse(index)}]"
        case ast.Attribute(value=ast.Name(id="metadata"), attr=name):
            return name
        case ast.Attribute(value=ast.Name(id="previous"), attr=name):
            return f"the previous {name}"
    raise ValueError(f"there are no words for {text_of(tree)}")


# ---- parts of a formula --------------------------------------------------------------------


def rounding(tree: ast.expr) -> tuple[ast.expr, str, ast.expr | None] | None:
    """Return what is rounded, in which way, and to a multiple of what (None: of one)."""
    match tree:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _rounded_to(left, right) or _rounded_to(right, left)
        case ast.Call(args=[amount, *_]) if (name := function_of(tree)) in _ROUNDED:
            return amount, _ROUNDED[name], None
    return None


def _rounded_to(rounded: ast.expr, multiple: ast.expr) -> tuple[ast.expr, str, ast.expr] | None:
    """Return the parts of ``math.ceil(amount / multiple) * multiple``."""
    match rounding(rounded):
        case ast.BinOp(left=amount, op=ast.Div(), right=divisor), how, None:
            return (amount, how, multiple) if same(divisor, multiple) else None
    return None


def function_of(tree: ast.expr) -> str:
    """Return the name of the function that an expression calls; empty if it does not."""
    if not isinstance(tree, ast.Call):
        return ""
    function = tree.func
    return function.attr if isinstance(function, ast.Attribute) else text_of(function)


def same(one: ast.AST, other: ast.AST) -> bool:
    """Return whether two expressions are written alike."""
    return ast.dump(one) == ast.dump(other)


# ---- the amount and its limits -------------------------------------------------------------

MIRRORED: Mapping[type[ast.AST], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
"""The comparisons that hold with their sides exchanged."""

_MULTIPLE = "a multiple of "


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
    if any(names_in(text_of(part)) and not has_record(part) for part in tree.values):
        return None  # a part is about other keys alone
    alternatives = isinstance(tree.op, ast.Or)
    # What is only about the record before this one does not say what to expect of this one.
    about = [part for part in tree.values if not alternatives or _owners(part) != {"previous"}]
    parts = [part for part in map(_of_comparison, about) if part]
    if alternatives:  # others are for logs that count differently: epoch_num >= 168
        parts = [part for part in parts if part.limits[0].kind in ("", _MULTIPLE)]
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
    match tree:
        case ast.Call(args=[number]) if function_of(tree) in _CONVERSIONS:
            return member_of(number, owner)
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
    return bool(_owners(tree))


def _owners(tree: ast.expr) -> set[str]:
    """Return which of ``value``, ``metadata`` and ``previous`` an expression uses."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names & {"value", "metadata", "previous"}


def _of_comparison(tree: ast.expr) -> Expectation | None:
    match tree:
        case ast.Compare(
            left=ast.Call(args=[distance]) as call,
            ops=[ast.Lt() | ast.LtE()],
            comparators=[tolerance],
        ) if function_of(call) == "abs":
            return _of_distance(distance, tolerance)
        case ast.Compare(
            left=ast.BinOp(left=left, op=ast.Sub(), right=right),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value=0)],
        ) if has_record(right):
            return _of_sides(left, ast.Eq, right)
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return _of_sides(left, type(operator), right) if type(operator) in MIRRORED else None
    return None


def _of_distance(distance: ast.expr, tolerance: ast.expr) -> Expectation | None:
    """Return the expectation of ``abs(amount - bound) <= tolerance``."""
    match distance:
        case ast.BinOp(left=amount, op=ast.Sub(), right=bound):
            if has_record(amount) and not has_record(bound):
                return Expectation(amount, (Limit("", bound, tolerance),))
    return None


def _of_sides(left: ast.expr, operator: type[ast.AST], right: ast.expr) -> Expectation | None:
    if has_record(right) and not has_record(left):
        left, operator, right = right, MIRRORED[operator], left
    if has_record(left) and not has_record(right):
        return Expectation(left, (Limit(_KINDS[operator], right),))
    for one, other in ((left, right), (right, left)):
        match rounding(other):
            case amount, _, ast.expr() as multiple if same(amount, one) and has_record(one):
                return (
                    Expectation(one, (Limit(_MULTIPLE, multiple),)) if operator is ast.Eq else None
                )
    return None


# ---- what a record has that breaks a formula, and what is expected in its run --------------

_LONGEST = 100  # characters of a calculation
_FOR_ROUNDING = 0.001  # a tolerance below this part of a number only allows for rounding
_SIGNIFICANT = 12  # of the difference between doubles
_BATCH_SIZE = "global_batch_size"


def breach_of(rule: Rule, operands: Operands, value: Any) -> tuple[Any, str, str]:
    """Return how a record with this ``value`` and ``operands`` breaks the formula of a rule.

    What was found, what is expected, and the template of a message.
    """
    rule = _about(rule, operands)
    expects = expectation(rule.formula or "")
    if not expects:
        message = f"{rule.key} is {{found}}; expected {{expected}}"
        return value, _in_general(rule, operands), message
    needed = _Calculation(rule, operands, expects.amount).expected(expects)
    member = member_of(expects.amount, "metadata")
    if member and operands.metadata.get(member) is None:
        message = f"{rule.key} has no {member} in its metadata; expected {{expected}}"
        return None, needed, message
    return _found(expects.amount, operands, value), needed, _message(rule, expects, operands)


def _about(rule: Rule, operands: Operands) -> Rule:
    """Return a rule with the part of its formula that is about a first record, or a later one."""
    parts = _of_first_and_later(rule.formula or "")
    if not parts:
        return rule
    first, later, name = parts
    is_first = operands.previous.get(name) is None
    return replace(rule, formula=first if is_first else later, first=is_first)


@lru_cache
def _of_first_and_later(formula: str) -> tuple[str, str, str] | None:
    """Return the parts of ``first || (has(previous.name) && later)``, and the name."""
    match tree_of(formula):
        case ast.BoolOp(op=ast.Or(), values=[*first, ast.BoolOp(values=[test, *later])]):
            match = re.fullmatch(r"has\(previous\.(\w+)\)", written(test))
            if match:
                return " || ".join(map(written, first)), " && ".join(map(written, later)), match[1]
    return None


def _in_general(rule: Rule, operands: Operands) -> str:
    """Return what a formula expects where it sets no limits, with the values it depends on."""
    formula = rule.formula or ""
    words = in_general(formula, rule.key)
    if not expectation(formula):
        words = f"that {words}"
    return _with_reasons(rule.needed or words, _values(names_in(formula), operands))


def _values(names: frozenset[str], operands: Operands) -> list[str]:
    """Return what the keys of a formula are, in words."""
    return [
        f"{name} has no value before it" if value is None else f"{name} is {_shown(value)}"
        for name in sorted(names - OF_A_RECORD)
        for value in [operands.values.get(name)]
    ]


def _shown(value: Any) -> str:
    number = _number(value)
    return shown(value) if number is None else plain(number)


def _number(value: Any) -> float | None:
    return None if isinstance(value, bool) else to_float(value)


def _with_reasons(words: str, reasons: Sequence[str]) -> str:
    return f"{words} ({' and '.join(reasons)})" if reasons else words


# ---- the amount that was found ------------------------------------------------------------


def _message(rule: Rule, expects: Expectation, operands: Operands) -> str:
    """Return the template of a message about an amount."""
    tree = expects.amount
    is_bound = len(expects.limits) == 1 and expects.limits[0].kind not in ("", _MULTIPLE)
    at = "" if is_bound else "at "
    is_evaluation = rule.key in EVALUATION_KEYS
    logged = "evaluated" if is_evaluation else f"{rule.key} is logged"
    member = interval_of(tree)
    if member:
        if amount(tree, operands) == 0:
            again = f"{logged} twice at one position, as {member} does not increase"
            return f"{again}; expected {'' if is_bound else 'every '}{{expected}}"
        interval = f"{{found:,}} {_unit(rule, member)}"
        if is_bound:
            records = "evaluations" if is_evaluation else f"records of {rule.key}"
            return f"{interval} between two {records}; expected {{expected}}"
        return f"{logged} every {interval}; expected every {{expected}}"
    member = member_of(tree, "metadata")
    if member:
        if rule.first:
            logged = f"first {'evaluation' if is_evaluation else rule.key}"
        unit = _unit(rule, member)
        position = "epoch {found:,}" if unit == "epochs" else f"{{found:,}} {unit}"
        return f"{logged} at {position}; expected {at}{{expected}}"
    return f"{in_words(tree, {'value': rule.key})} is {{found}}; expected {{expected}}"


def _unit(rule: Rule, member: str) -> str:
    return rule.units.get(member) or POSITION_UNITS.get(member, member)


def _found(tree: ast.expr, operands: Operands, value: Any) -> Any:
    """Return the amount: as logged if it is the value or a member, else as a number."""
    if isinstance(tree, ast.Name):
        return value
    member = member_of(tree, "metadata")
    if member:
        return _whole(operands.metadata.get(member))
    number = amount(tree, operands)
    if number is None or not math.isfinite(number):
        return number
    return _whole(float(f"{number:.{_SIGNIFICANT}g}"))


def _whole(value: Any) -> Any:
    """Return a whole double as an integer, and anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# ---- what the formula expects -------------------------------------------------------------


class _Calculation:
    """Calculates what a formula expects, and says how."""

    def __init__(self, rule: Rule, operands: Operands, tree: ast.expr) -> None:
        self._rule = rule
        self._operands = operands
        self._texts = {
            name: plain(number)
            for name, value in operands.values.items()
            if (number := _number(value)) is not None
        }
        of_position = interval_of(tree) or member_of(tree, "metadata")
        size = self._texts.get(_BATCH_SIZE) if of_position else None
        self._batch_size = f" for batch size {size}" if size else ""

    def expected(self, expects: Expectation) -> str:
        """Return all limits in words: "720 = 8000 * 1152 / 12800", "0.5 to 1.5"."""
        if not expects.alternatives and len(expects.limits) > 1:
            return self._range(expects.limits)
        words = list(dict.fromkeys(map(self._limit, expects.limits)))
        words = [text for text in words if not any(w.startswith(f"{text} = ") for w in words)]
        if len(words) > 1 and self._batch_size:
            words[:-1] = [text.removesuffix(self._batch_size) for text in words[:-1]]
        return " or ".join(words)

    def _limit(self, limit: Limit) -> str:
        bound = limit.bound
        number = amount(bound, self._operands)
        if number is None or not math.isfinite(number):
            reasons = _values(names_in(text_of(bound)), self._operands)
            words = in_words(bound, self._texts)
            if len(words) > _LONGEST and self._rule.needed:
                return _with_reasons(self._rule.needed, reasons)
            return limit.kind + _with_reasons(words, reasons)
        tolerance = limit.tolerance and amount(limit.tolerance, self._operands)
        tolerance = tolerance if isinstance(tolerance, int | float) else 0.0
        text = plain(number, tolerance)
        is_shown = tolerance > _FOR_ROUNDING * abs(number)
        within = f", to within {plain(tolerance)}" if is_shown else ""
        return f"{limit.kind}{text}{self._reason(bound, text)}{within}"

    def _reason(self, bound: ast.expr, text: str) -> str:
        """Return where a number comes from: " = 8000 * 1152 / 12800", ", the global_batch_size".

        Of positions and intervals, which depend on the batch size alone: " for batch size 64".
        """
        if isinstance(bound, ast.Name):
            return f", the {bound.id}"
        words = in_words(_Exact(self._operands).visit(bound), self._texts)
        if words == text:
            return ""
        if self._batch_size and names_in(text_of(bound)) - OF_A_RECORD == {_BATCH_SIZE}:
            return self._batch_size
        if len(words) > _LONGEST:
            return f" ({self._rule.needed})" if self._rule.needed else ""
        return f" = {words}"

    def _range(self, limits: Sequence[Limit]) -> str:
        """Return limits that all hold, the lower ones first."""
        numbers = [amount(limit.bound, self._operands) for limit in limits]
        if None in numbers:
            return _in_general(self._rule, self._operands)
        by_kind = {
            limit.kind: plain(number, abs(number) * _FOR_ROUNDING)
            for limit, number in zip(limits, numbers, strict=True)
            if number is not None
        }
        if by_kind.keys() == {"at least ", "at most "}:
            words = f"{by_kind['at least ']} to {by_kind['at most ']}"
        else:
            words = " and ".join(f"{kind}{text}" for kind, text in sorted(by_kind.items()))
        return _with_reasons(words, [self._rule.needed] if self._rule.needed else [])


class _Exact(ast.NodeTransformer):
    """Leaves out the rounding of numbers that need none."""

    def __init__(self, operands: Operands) -> None:
        self._operands = operands

    def visit(self, node: ast.AST) -> Any:
        """Return a copy of a node without such rounding."""
        if not isinstance(node, ast.expr) or not (rounded := rounding(node)):
            return self.generic_visit(type(node)(**dict(ast.iter_fields(node))))
        before, after = (amount(part, self._operands) for part in (rounded[0], node))
        return self.visit(rounded[0]) if before == after else node
