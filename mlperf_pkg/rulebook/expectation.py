"""Formulas in words: what they expect of a record, and how a record breaks them.

``value == E``, ``math.abs(metadata.m - previous.m - E) <= T`` or ``value >= E1 && value <= E2``
set limits for an amount; so do alternatives of them, joined by ``||``.
"""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.log.record import shown
from mlperf_pkg.rulebook.formula import (
    OF_A_RECORD,
    Operands,
    amount,
    names_in,
    number_if_none,
    read_number,
    tree_of,
    written,
)
from mlperf_pkg.rulebook.model import EVALUATION_KEYS, POSITION_UNITS, Rule

# ---- in words ------------------------------------------------------------------------------

Values: TypeAlias = Mapping[str, str]

# Operator precedence.
_PHRASE = 0
_SUM = 1
_PRODUCT = 2
_SIGN = 3
_ATOM = 4

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
    "greatest": ("the greater of {} and {}", _PHRASE),
    "least": ("the lesser of {} and {}", _PHRASE),
    "isFinite": ("{} is finite", _PHRASE),
}
_CONVERSIONS = frozenset({"double", "int"})
_EXACT = 1e15  # doubles above it may skip integers
_DIGITS = 6  # of a number
_MOST_DIGITS = 17  # which tell all doubles apart


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


def in_words(tree: ast.expr, values: Values | None = None) -> str:
    """Return a tree in words, with ``values`` in place of names, as in "8,000 * 1,152 / 12,800".

    Raises:
        ValueError: there are no words for a part of it.
    """
    return _Words(values or {}).text(tree)


class _Words(Struct, frozen=True):
    """Puts trees into words, with values in place of names."""

    values: Values

    def text(self, tree: ast.expr, least: int = _PHRASE) -> str:
        """Return a tree in words, in parentheses if its precedence is below ``least``."""
        words, precedence = self._words(tree)
        return words if precedence >= least else f"({words})"

    def _words(self, tree: ast.expr) -> tuple[str, int]:
        """Return a tree in words, and their precedence."""
        rounded = rounding(tree)
        if rounded:
            return self._rounded(*rounded), _PHRASE
        match tree:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self.text(operand, _SIGN)}", _SIGN
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SIGNS:
                sign, precedence = _SIGNS[type(operator)]
                first = self.text(left, precedence)
                second = self.text(right, precedence + 1)
                return f"{first} {sign} {second}", precedence
            case ast.Call():
                return self._called(tree)
            case ast.Compare() | ast.BoolOp():
                return self._condition(tree), _PHRASE
        return _atom(tree, self.values), _ATOM

    def _condition(self, tree: ast.expr) -> str:
        match tree:
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                if type(sign) in _RELATIONS:
                    relation = _RELATIONS[type(sign)]
                    return f"{self.text(left, _SUM)} {relation} {self.text(right, _SUM)}"
            case ast.BoolOp(op=operator, values=parts):
                joint = " and " if isinstance(operator, ast.And) else " or "
                return joint.join(map(self._part, parts))
        return _atom(tree, self.values)

    def _rounded(self, number: ast.expr, how: str, multiple: ast.expr | None) -> str:
        words = f"{self.text(number, _PRODUCT)} {how}"
        if multiple is None:
            return words
        return f"{words} to a multiple of {self.text(multiple, _ATOM)}"

    def _called(self, call: ast.Call) -> tuple[str, int]:
        name = function_of(call)
        if name in _CONVERSIONS and len(call.args) == 1:
            return self._words(call.args[0])
        if name in _CALLED:
            template, precedence = _CALLED[name]
            return template.format(*map(self.text, call.args)), precedence
        return _atom(call, self.values), _ATOM

    def _part(self, part: ast.expr) -> str:
        """Return one of several conditions; only conditions in it need parentheses."""
        if isinstance(part, ast.BoolOp):
            return self.text(part, _SUM)
        return self.text(part)


def plain(number: float, tolerance: float = 0.0) -> str:
    """Return a number as a person writes it, with no more digits than ``tolerance`` needs."""
    if not math.isfinite(number):
        return str(number)
    if number == int(number) and abs(number) < _EXACT:
        return f"{int(number):,d}"
    fewest = max(_DIGITS, min(len(str(int(abs(number)))), _MOST_DIGITS))
    shown = float(number)
    for digits in range(fewest, _MOST_DIGITS + 1):
        rounded = float(f"{number:.{digits}g}")
        if abs(rounded - number) <= tolerance:
            shown = rounded
            break
    return f"{shown:,}".removesuffix(".0")


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
        case ast.BinOp(left=number, op=ast.Div(), right=divisor), how, None:
            if same(divisor, multiple):
                return number, how, multiple
    return None


def function_of(tree: ast.expr) -> str:
    """Return the name of the function that an expression calls; empty if it does not."""
    if not isinstance(tree, ast.Call):
        return ""
    if isinstance(tree.func, ast.Attribute):
        return tree.func.attr
    return text_of(tree.func)


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
    if tree is None:
        return None
    if not isinstance(tree, ast.BoolOp):
        return _of_comparison(tree)
    if any(names_in(text_of(part)) and not has_record(part) for part in tree.values):
        return None  # a part is about other keys alone
    alternatives = isinstance(tree.op, ast.Or)
    parts = _of_alternatives(tree.values) if alternatives else _of_all(tree.values)
    if not parts or not all(same(part.amount, parts[0].amount) for part in parts):
        return None
    limits = tuple(part.limits[0] for part in parts)
    return Expectation(parts[0].amount, limits, alternatives)


def _of_all(conditions: Sequence[ast.expr]) -> list[Expectation]:
    """Return what each of some conditions expects; nothing if one of them does not say so."""
    parts = [_of_comparison(condition) for condition in conditions]
    expectations = [part for part in parts if part]
    return expectations if len(expectations) == len(parts) else []


def _of_alternatives(conditions: Sequence[ast.expr]) -> list[Expectation]:
    """Return what alternatives expect of this record, without those of another kind."""
    parts = []
    for condition in conditions:
        # What is only about the record before this one does not say what to expect of this one.
        if _owners(condition) == {"previous"}:
            continue
        part = _of_comparison(condition)
        # Others are for logs that count differently: epoch_num >= 168.
        if part and part.limits[0].kind in ("", _MULTIPLE):
            parts.append(part)
    return parts


def in_general(formula: str, subject: str) -> str:
    """Return what a formula expects of its ``subject`` in any run: "at least 0.5 * other"."""
    expects = expectation(formula)
    if expects and text_of(expects.amount) == "value":
        joint = " or " if expects.alternatives else " and "
        return joint.join(f"{limit.kind}{in_words(limit.bound)}" for limit in expects.limits)
    tree = parsed(formula)
    if tree is None:
        return "the value that the formula of the rule computes"
    return in_words(tree, {"value": subject})


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
            if member == member_of(right, "previous"):
                return member
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
            if type(operator) in MIRRORED:
                return _of_sides(left, type(operator), right)
    return None


def _of_distance(distance: ast.expr, tolerance: ast.expr) -> Expectation | None:
    """Return the expectation of ``abs(amount - bound) <= tolerance``."""
    match distance:
        case ast.BinOp(left=amount, op=ast.Sub(), right=bound):
            if has_record(amount) and not has_record(bound) and not has_record(tolerance):
                return Expectation(amount, (Limit("", bound, tolerance),))
    return None


def _of_sides(left: ast.expr, operator: type[ast.AST], right: ast.expr) -> Expectation | None:
    if has_record(right) and not has_record(left):
        return _of_sides(right, MIRRORED[operator], left)
    if has_record(left) and not has_record(right):
        return Expectation(left, (Limit(_KINDS[operator], right),))
    if operator is ast.Eq:
        return _of_multiple(left, right) or _of_multiple(right, left)
    return None


def _of_multiple(number: ast.expr, rounded: ast.expr) -> Expectation | None:
    """Return the expectation of ``number == math.ceil(number / multiple) * multiple``."""
    match rounding(rounded):
        case rounded_number, _, ast.expr() as multiple:
            if has_record(number) and same(rounded_number, number) and not has_record(multiple):
                return Expectation(number, (Limit(_MULTIPLE, multiple),))
    return None


# ---- what a record has that breaks a formula, and what is expected in its run --------------

_LONGEST = 100  # characters of a calculation
_FOR_ROUNDING = 0.001  # a tolerance below this part of a number only allows for rounding
_SIGNIFICANT = 12  # of the difference between doubles
_BATCH_SIZE = "global_batch_size"


def breach_of(
    rule: Rule, operands: Operands, value: Any, wordings: dict[str, str]
) -> tuple[Any, str, str]:
    """Return how a record with this ``value`` and ``operands`` breaks the formula of a rule.

    What was found, what is expected, and the template of a message. ``wordings`` are what was
    expected of the records of this run so far: it depends on the values of other keys alone.
    """
    rule = _about(rule, operands)
    expects = expectation(rule.formula or "")
    others = {name: other for name, other in operands.values.items() if name != "value"}
    reasons = f"{rule.code} {rule.formula} {others}"
    if reasons not in wordings:
        wordings[reasons] = _needed(rule, expects, operands)
    needed = wordings[reasons]
    if not expects:
        return value, needed, f"{rule.key} is {{found}}; expected {{expected}}"
    member = member_of(expects.amount, "metadata")
    if member and operands.metadata.get(member) is None:
        message = (
            f"{rule.key} has no {member} in its metadata; expected {member} to be {{expected}}"
        )
        return None, needed, message
    return (
        _found(expects.amount, operands, value),
        needed,
        _message(rule, expects, operands, needed),
    )


def _needed(rule: Rule, expects: Expectation | None, operands: Operands) -> str:
    if expects is None:
        return _in_general(rule, operands)
    return _Calculation(rule, operands, expects.amount).expected(expects)


def _about(rule: Rule, operands: Operands) -> Rule:
    """Return a rule with the part of its formula that is about a first record, or a later one."""
    parts = _of_first_and_later(rule.formula or "")
    if not parts:
        return rule
    first, later, name = parts
    if operands.previous.get(name) is None:
        return replace(rule, formula=first, first=True)
    return replace(rule, formula=later, first=False)


@lru_cache
def _of_first_and_later(formula: str) -> tuple[str, str, str] | None:
    """Return the parts of ``first || (has(previous.name) && later)``, and the name."""
    match tree_of(formula):
        case ast.BoolOp(op=ast.Or(), values=[*first, ast.BoolOp(values=[test, *later])]):
            match = re.fullmatch(r"has\(previous\.(\w+)\)", written(test))
            if match:
                of_first = " || ".join(map(written, first))
                of_later = " && ".join(map(written, later))
                return of_first, of_later, match[1]
    return None


def _in_general(rule: Rule, operands: Operands) -> str:
    """Return what a formula expects where it sets no limits, with the values it depends on."""
    formula = rule.formula or ""
    words = rule.needed
    if not words:
        words = in_general(formula, rule.key)
        if not expectation(formula):
            words = f"that {words}"
    return _with_reasons(words, _values(names_in(formula), operands))


def _values(names: frozenset[str], operands: Operands) -> list[str]:
    """Return in words what the keys of a formula are, then which of them are missing."""
    values = []
    missing = []
    for name in sorted(names - OF_A_RECORD):
        value = operands.values.get(name)
        if value is None:
            missing.append(name)
        else:
            values.append(f"{name} is {_shown(value)}")
    reasons = [" and ".join(values)] if values else []
    if missing:
        reasons.append(f"{' and '.join(missing)} must be logged earlier")
    return reasons


def _shown(value: Any) -> str:
    number = _number(value)
    return shown(value) if number is None else plain(number)


def _number(value: Any) -> float | None:
    return None if isinstance(value, bool) else to_float(value)


def _with_reasons(words: str, reasons: Sequence[str]) -> str:
    return f"{words} ({'; '.join(reasons)})" if reasons else words


# ---- the amount that was found ------------------------------------------------------------


def _message(rule: Rule, expects: Expectation, operands: Operands, needed: str) -> str:
    """Return the template of a message about an amount, of which ``needed`` is expected."""
    tree = expects.amount
    is_bound = len(expects.limits) == 1 and expects.limits[0].kind not in ("", _MULTIPLE)
    counted = interval_of(tree)
    if counted and amount(tree, operands) == 0:
        return _message_of_no_interval(rule, counted, needed, is_bound=is_bound)
    if counted:
        return _message_of_interval(rule, counted, is_bound=is_bound)
    counted = member_of(tree, "metadata")
    if counted:
        return _message_of_position(rule, counted, is_bound=is_bound)
    return _message_of_amount(rule, tree, operands, needed)


def _message_of_amount(rule: Rule, tree: ast.expr, operands: Operands, needed: str) -> str:
    kind = ""
    value = operands.values.get("value")
    if isinstance(value, str) and isinstance(tree, ast.Name):
        kind = number_if_none(value, needed)
    message = f"{in_words(tree, {'value': rule.key})} is {{found}}; expected {kind}{{expected}}"
    texts = [name for name, other in operands.values.items() if _is_number_as_text(other)]
    texts = sorted({*texts} - {"value", rule.key})
    if texts:
        text = f"{' and '.join(texts)} is logged as text, with which the official checker cannot"
        return f"{text} calculate, so it rejects {rule.key}: {message}"
    return message


def _is_number_as_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(read_number(value), str)


def _message_of_no_interval(rule: Rule, counted: str, needed: str, *, is_bound: bool) -> str:
    event = _event(rule)
    record = "evaluation" if _is_evaluation(rule) else "record"
    expected = "an interval of {expected}" if is_bound else f"one {record} every {{expected}}"
    unit = _unit(rule, counted)
    if needed[-1:].isdigit() and " for " not in needed:  # which has a condition after the number
        expected = f"{expected} {unit}"
    place = "epoch" if unit == "epochs" else f"number of {unit}"
    return f"{event} twice at the same {place} ({counted}); expected {expected}"


def _message_of_interval(rule: Rule, counted: str, *, is_bound: bool) -> str:
    # With the same words for one, as equal texts fold into "every 1 to 2 epochs".
    interval = f"{{found:,}} {_unit(rule, counted)}"
    if is_bound:
        records = "evaluations" if _is_evaluation(rule) else f"records of {rule.key}"
        return f"two {records} are {interval} apart; expected {{expected}}"
    return f"{_event(rule)} every {interval}; expected every {{expected}}"


def _message_of_position(rule: Rule, counted: str, *, is_bound: bool) -> str:
    event = _event(rule)
    if rule.first:
        event = "first evaluation" if _is_evaluation(rule) else f"first {rule.key}"
    unit = _unit(rule, counted)
    position = "epoch {found:,}" if unit == "epochs" else f"{{found:,}} {unit}"
    expected = "{expected}" if is_bound else "at {expected}"
    return f"{event} at {position}; expected {expected}"


def _event(rule: Rule) -> str:
    return "evaluated" if _is_evaluation(rule) else f"{rule.key} is logged"


def _is_evaluation(rule: Rule) -> bool:
    return rule.key in EVALUATION_KEYS


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
        self._texts: dict[str, str] = {}
        for name, value in operands.values.items():
            number = _number(value)
            if number is not None:
                self._texts[name] = plain(number)
        is_position = bool(interval_of(tree) or member_of(tree, "metadata"))
        self._batch_size = ""
        if is_position and _BATCH_SIZE in self._texts:
            self._batch_size = f" for batch size {self._texts[_BATCH_SIZE]}"

    def expected(self, expects: Expectation) -> str:
        """Return all limits in words: "720 = 8000 * 1152 / 12800", "0.5 to 1.5"."""
        if not expects.alternatives and len(expects.limits) > 1:
            return self._range(expects.limits)
        texts = list(dict.fromkeys(map(self._limit, expects.limits)))
        *others, last = (text for text in texts if not _is_explained(text, texts))
        return " or ".join([*(text.removesuffix(self._batch_size) for text in others), last])

    def _limit(self, limit: Limit) -> str:
        number = amount(limit.bound, self._operands)
        if number is None or not math.isfinite(number):
            return self._unknown_limit(limit)
        tolerance = self._tolerance(limit)
        text = plain(number, tolerance)
        reason = self._reason(limit.bound, text)
        if tolerance <= _FOR_ROUNDING * abs(number):
            return f"{limit.kind}{text}{reason}"
        return f"{limit.kind}{text} ± {plain(tolerance)}{reason}"

    def _unknown_limit(self, limit: Limit) -> str:
        """Return a limit that cannot be calculated, with what it depends on."""
        reasons = _values(names_in(text_of(limit.bound)), self._operands)
        words = in_words(limit.bound, self._texts)
        if len(words) > _LONGEST and self._rule.needed:
            return _with_reasons(self._rule.needed, reasons)
        return limit.kind + _with_reasons(words, reasons)

    def _tolerance(self, limit: Limit) -> float:
        if limit.tolerance is None:
            return 0.0
        return amount(limit.tolerance, self._operands) or 0.0

    def _reason(self, bound: ast.expr, text: str) -> str:
        """Return where a number comes from: " = 8000 * 1152 / 12800", " (the global_batch_size)".

        Of positions and intervals, which depend on the batch size alone: " for batch size 64".
        """
        if isinstance(bound, ast.Name):
            return f" (the {bound.id})"
        words = in_words(_Exact(self._operands).visit(bound), self._texts)
        if words == text:
            return ""
        if self._batch_size and names_in(text_of(bound)) - OF_A_RECORD == {_BATCH_SIZE}:
            return self._batch_size
        if len(words) <= _LONGEST:
            return f" = {words}"
        return f" ({self._rule.needed})" if self._rule.needed else ""

    def _range(self, limits: Sequence[Limit]) -> str:
        """Return limits that all hold, the lower ones first."""
        by_kind: dict[str, str] = {}
        for limit in limits:
            number = amount(limit.bound, self._operands)
            if number is None:
                return _in_general(self._rule, self._operands)
            by_kind[limit.kind] = plain(number, abs(number) * _FOR_ROUNDING)
        if by_kind.keys() == {"at least ", "at most "}:
            words = f"{by_kind['at least ']} to {by_kind['at most ']}"
        else:
            words = " and ".join(f"{kind}{text}" for kind, text in sorted(by_kind.items()))
        return _with_reasons(words, [self._rule.needed] if self._rule.needed else [])


def _is_explained(text: str, texts: Sequence[str]) -> bool:
    """Return whether another limit is the same number, and says where it comes from."""
    return any(other.startswith((f"{text} = ", f"{text} ± ")) for other in texts)


class _Exact(ast.NodeTransformer):
    """Leaves out the rounding of numbers that need none."""

    def __init__(self, operands: Operands) -> None:
        self._operands = operands

    def visit(self, node: ast.AST) -> Any:
        """Return a copy of a node without such rounding."""
        if isinstance(node, ast.expr):
            rounded = rounding(node)
            if rounded:
                return self._visit_rounded(node, rounded[0])
        copy = type(node)(**dict(ast.iter_fields(node)))
        return self.generic_visit(copy)

    def _visit_rounded(self, node: ast.expr, number: ast.expr) -> Any:
        is_exact = amount(number, self._operands) == amount(node, self._operands)
        return self.visit(number) if is_exact else node
