"""What a record has that breaks a formula, and what the formula expects for this run."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.log.record import shown
from mlperf_pkg.rulebook.arithmetic import in_words, plain, rounding, text_of
from mlperf_pkg.rulebook.breach import Breach
from mlperf_pkg.rulebook.expectation import (
    MULTIPLE,
    Expectation,
    Limit,
    expectation,
    has_record,
    in_general,
    interval_of,
    member_of,
)
from mlperf_pkg.rulebook.formula import Operands, names_in
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.quantity import amount
from mlperf_pkg.run.evaluations import KEYS, POSITION_UNITS

_LONGEST = 100  # characters of a calculation
_FOR_ROUNDING = 0.001  # a tolerance below this part of a number only allows for rounding
_DIGITS = 12  # of the difference between doubles
_OF_A_RECORD = frozenset({"value", "nth"})


class _Terms(Struct, frozen=True):
    """The part of a rule that the words for what it expects depend on."""

    key: str
    formula: str
    needed: str | None


def breach_of(rule: Rule, operands: Operands, value: Any) -> Breach:
    """Return how a record with this ``value`` and ``operands`` breaks the formula of a rule."""
    terms = _Terms(rule.key, rule.formula or "", rule.needed)
    expects = expectation(terms.formula)
    if not expects:
        message = f"{rule.key} is {{found}}; expected {{expected}}"
        return Breach(value, _in_general(terms, operands), message)
    needed = _expected(terms, expects, operands)
    member = member_of(expects.amount, "metadata")
    if member and operands.metadata.get(member) is None:
        message = f"{rule.key} has no {member} in its metadata; expected {{expected}}"
        return Breach(None, needed, message)
    return Breach(_found(expects.amount, operands, value), needed, _message(rule, expects))


def _in_general(terms: _Terms, operands: Operands) -> str:
    """Return what a formula expects where it sets no limits, with the values it depends on."""
    words = in_general(terms.formula, terms.key)
    if not expectation(terms.formula):
        words = f"that {words}"
    return _with_reasons(terms.needed or words, _values(names_in(terms.formula), operands))


def _values(names: frozenset[str], operands: Operands) -> list[str]:
    """Return what the keys of a formula are, in words."""
    return [
        f"{name} has no value before it" if value is None else f"{name} is {_shown(value)}"
        for name in sorted(names - _OF_A_RECORD)
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


def _message(rule: Rule, expects: Expectation) -> str:
    """Return the template of a message about an amount."""
    tree = expects.amount
    is_bound = len(expects.limits) == 1 and expects.limits[0].kind not in ("", MULTIPLE)
    at, every = ("", "") if is_bound else ("at ", "every ")
    logged = "evaluated" if rule.key in KEYS else f"{rule.key} is logged"
    if member := interval_of(tree):
        return f"{logged} every {{found:,}} {_unit(rule, member)}; expected {every}{{expected}}"
    if member := member_of(tree, "metadata"):
        first = "first " if rule.first else ""
        return f"{first}{logged} at {{found:,}} {_unit(rule, member)}; expected {at}{{expected}}"
    return f"{in_words(tree, {'value': rule.key})} is {{found}}; expected {{expected}}"


def _unit(rule: Rule, member: str) -> str:
    return rule.units.get(member) or POSITION_UNITS.get(member, member)


def _found(tree: ast.expr, operands: Operands, value: Any) -> Any:
    """Return the amount: as logged if it is the value or a member, else as a number."""
    if isinstance(tree, ast.Name):
        return value
    if member := member_of(tree, "metadata"):
        return _whole(operands.metadata.get(member))
    number = amount(text_of(tree), operands)
    if number is None or not math.isfinite(number):
        return number
    return _whole(float(f"{number:.{_DIGITS}g}"))


def _whole(value: Any) -> Any:
    """Return a whole double as an integer, and anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# ---- what the formula expects -------------------------------------------------------------


def _expected(terms: _Terms, expects: Expectation, operands: Operands) -> str:
    """Return all limits in words: "720 = 8000 * 1152 / 12800", "0.5 to 1.5"."""
    values = tuple((name, value) for name, value in operands.values.items() if name != "value")
    is_numeric = all(type(value) in (int, float) for _, value in values)
    if is_numeric and not _is_of_record(terms.formula):
        return _expected_for(terms, values)
    return _Calculation(terms, operands, expects.amount).expected(expects)


@lru_cache(maxsize=1024)
def _expected_for(terms: _Terms, values: tuple[tuple[str, float], ...]) -> str:
    """Return all limits in words, which are the same for most records and runs of a set."""
    expects = expectation(terms.formula)
    assert expects  # noqa: S101
    return _Calculation(terms, Operands(dict(values), {}, {}), expects.amount).expected(expects)


@lru_cache
def _is_of_record(formula: str) -> bool:
    """Return whether the limits of a formula depend on the value or metadata of a record."""
    expects = expectation(formula)
    limits = expects.limits if expects else ()
    parts = [part for limit in limits for part in (limit.bound, limit.tolerance) if part]
    return any(map(has_record, parts))


class _Calculation:
    """Calculates what a formula expects, and says how."""

    def __init__(self, terms: _Terms, operands: Operands, tree: ast.expr) -> None:
        self._terms = terms
        self._operands = operands
        self._commas = bool(interval_of(tree) or member_of(tree, "metadata"))
        self._texts = {
            name: plain(number, commas=self._commas)
            for name, value in operands.values.items()
            if (number := _number(value)) is not None
        }

    def expected(self, expects: Expectation) -> str:
        """Return all limits in words, as ``_expected``."""
        if expects.alternatives or len(expects.limits) == 1:
            return " or ".join(map(self._limit, expects.limits))
        return self._range(expects.limits)

    def _limit(self, limit: Limit) -> str:
        bound = limit.bound
        number = amount(text_of(bound), self._operands)
        if number is None or not math.isfinite(number):
            reasons = _values(names_in(text_of(bound)), self._operands)
            words = in_words(bound, self._texts, commas=self._commas)
            if len(words) > _LONGEST and self._terms.needed:
                return _with_reasons(self._terms.needed, reasons)
            return limit.kind + _with_reasons(words, reasons)
        tolerance = self._tolerance(limit)
        text = plain(number, tolerance, commas=self._commas)
        is_shown = tolerance > _FOR_ROUNDING * abs(number)
        within = f", to within {plain(tolerance, commas=self._commas)}" if is_shown else ""
        return f"{limit.kind}{text}{self._reason(bound, text)}{within}"

    def _tolerance(self, limit: Limit) -> float:
        tolerance = limit.tolerance and amount(text_of(limit.tolerance), self._operands)
        return tolerance if isinstance(tolerance, int | float) else 0.0

    def _reason(self, bound: ast.expr, text: str) -> str:
        """Return where a number comes from: " = 8000 * 1152 / 12800", ", the global_batch_size"."""
        if isinstance(bound, ast.Name):
            return f", the {bound.id}"
        words = in_words(_Exact(self._operands).visit(bound), self._texts, commas=self._commas)
        if words == text:
            return ""
        if len(words) > _LONGEST:
            return f" ({self._terms.needed})" if self._terms.needed else ""
        return f" = {words}"

    def _range(self, limits: Sequence[Limit]) -> str:
        """Return limits that all hold, the lower ones first."""
        numbers = [amount(text_of(limit.bound), self._operands) for limit in limits]
        if None in numbers:
            return _in_general(self._terms, self._operands)
        by_kind = {
            limit.kind: plain(number, abs(number) * _FOR_ROUNDING, commas=self._commas)
            for limit, number in zip(limits, numbers, strict=True)
            if number is not None
        }
        if by_kind.keys() == {"at least ", "at most "}:
            words = f"{by_kind['at least ']} to {by_kind['at most ']}"
        else:
            words = " and ".join(f"{kind}{text}" for kind, text in sorted(by_kind.items()))
        return _with_reasons(words, [self._terms.needed] if self._terms.needed else [])


class _Exact(ast.NodeTransformer):
    """Leaves out the rounding of numbers that need none."""

    def __init__(self, operands: Operands) -> None:
        self._operands = operands

    def visit(self, node: ast.AST) -> Any:
        """Return a copy of a node without such rounding."""
        if not isinstance(node, ast.expr) or not (rounded := rounding(node)):
            return self.generic_visit(type(node)(**dict(ast.iter_fields(node))))
        before, after = (amount(text_of(part), self._operands) for part in (rounded[0], node))
        return self.visit(rounded[0]) if before == after else node
