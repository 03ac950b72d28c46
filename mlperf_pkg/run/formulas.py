"""The formulas of rules: evaluated at each record, in the order of training, or at the end."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Severity, Unordered
from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.formula import Formula, Operands, Seen, read_number
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import CompiledRule, KeyRules, RuleTable
from mlperf_pkg.run.rule_findings import RuleFindings

_SERIES = 6  # evaluations, at least, of which one may be early or late
_EXACT = 1 << 53  # below it, each whole number is a double
_MOST_REFUSALS = 1000  # of one log; more do not change the verdict


class _Refusal(Struct, frozen=True):
    """A formula that does not hold at a record with a ``value``, by its ``number`` in the log."""

    compiled: CompiledRule
    formula: Formula
    operands: Operands
    value: Any
    number: int


class _Evaluand(Struct, frozen=True):
    """A record that a formula is evaluated at, and its number in the log."""

    record: Record
    number: int


class PassingFormulas:
    """Evaluates the formulas that are evaluated ``in_passing``, and reports those that are false.

    Findings wait for the end of the log, which shows whether only the order of the records is
    wrong. The records of formulas ``by_position`` wait, too, for those of earlier positions:
    evaluations may end in any order.
    """

    def __init__(self, table: RuleTable, findings: RuleFindings) -> None:
        """Start at the head of a log with the rules of a ``table``."""
        self._keys = table.keys
        self._joint_key = table.joined.key if table.joined else None
        self._findings = findings
        self.refusals: list[_Refusal] = []
        self._waiting: dict[str, list[_Evaluand]] = {}  # by their keys
        self._noted: set[str] = set()  # codes of rules that one evaluation alone breaks
        # By the codes of rules: how often ``nth_since`` was logged, and their key since then.
        self._series: dict[str, tuple[int, int]] = {}

    def wait(self, rules: Sequence[CompiledRule], record: Record, number: int, seen: Seen) -> None:
        """Keep a record for the rules ``by_position`` of its key; if too many wait, evaluate it.

        Which record is the first in training is decided among those that wait.
        """
        waiting = self._waiting.setdefault(record.key, [])
        if len(waiting) < _MOST_REFUSALS:
            waiting.append(_Evaluand(record, number))
            return
        for compiled in rules:
            if compiled.in_passing and not compiled.rule.first:
                self.take(compiled, compiled.in_passing, record, number, seen)

    def take(
        self, compiled: CompiledRule, formula: Formula, record: Record, number: int, seen: Seen
    ) -> None:
        """Evaluate the formula of a rule at a record."""
        rule = compiled.rule
        nth = None
        if rule.nth_since and not compiled.by_position:
            nth = self._nth(rule, rule.nth_since, seen)
        holds = formula.answer(record, seen, nth)
        if holds is None:  # it lacks a value
            holds = not rule.official
        if not holds:
            operands = formula.operands(record, seen, nth)
            self._refuse(_Refusal(compiled, formula, operands, record.value, number))

    def _refuse(self, refusal: _Refusal) -> bool:
        """Keep a refusal for the end of the log, and return whether there are not too many."""
        is_kept = len(self.refusals) < _MOST_REFUSALS
        if is_kept:
            self.refusals.append(refusal)
        return is_kept

    def _nth(self, rule: Rule, since: str, seen: Seen) -> int:
        """Count the records of the rule's key since the last record of the key ``since``."""
        anchor = seen.get(since)
        restarts = anchor.count if anchor else 0
        last_restarts, count = self._series.get(rule.code, (restarts, 0))
        if last_restarts != restarts:
            count = 0
        self._series[rule.code] = (restarts, count + 1)
        return count

    def conclude(self, seen: Seen) -> None:
        """Evaluate the formulas that waited, and report those that do not hold."""
        for key, waiting in self._waiting.items():
            self._evaluate_series(self._keys[key], waiting, seen)
        for refusal in self.refusals:
            rule = _softened(refusal, seen)
            if rule.code in self._noted and rule.severity is Severity.WARNING:
                rule = replace(rule, severity=Severity.NOTE)
            self._findings.add_formula(
                rule,
                refusal.number,
                refusal.operands,
                refusal.value,
                self._kind(refusal.compiled),
            )

    def _evaluate_series(
        self, key_rules: KeyRules, waiting: Sequence[_Evaluand], seen: Seen
    ) -> None:
        """Evaluate the formulas of a key at all its records, unless they held at the same steps.

        Only steps of logs in the order of training are kept. A log that has no others is in that
        order, too.
        """
        memory = key_rules.steps
        steps = None
        if memory:
            steps = memory.steps([evaluand.record.metadata for evaluand in waiting], seen)
            if steps and memory.has(steps):  # as in most runs of a set
                return
        refusal_count = len(self.refusals)
        in_training: dict[str, list[_Evaluand]] = {}
        is_in_order = True
        for compiled in key_rules.by_position:
            formula = compiled.in_passing
            if formula:
                name = formula.members[0]
                if name not in in_training:
                    in_training[name] = sorted(waiting, key=partial(_position, name))
                    is_in_order = is_in_order and in_training[name] == waiting
                evaluands = in_training[name]
                if compiled.rule.first:
                    evaluands = evaluands[:1]
                self._evaluate_by_position(compiled, formula, evaluands, seen)
        holds = refusal_count == len(self.refusals) < _MOST_REFUSALS
        if memory and steps and is_in_order and holds:
            memory.keep(steps)

    def _evaluate_by_position(
        self, compiled: CompiledRule, formula: Formula, evaluands: Sequence[_Evaluand], seen: Seen
    ) -> None:
        """Evaluate a formula at records in the order of training; each sees the one before it."""
        records = [evaluand.record for evaluand in evaluands]
        signatures = formula.signatures(records, seen)
        if not formula.may_fail(signatures):
            return
        places: list[int] = []
        for place, signature in enumerate(signatures):
            if formula.answer_of(signature) is False:
                evaluand = evaluands[place]
                operands = formula.operands_of(signature)
                value = evaluand.record.value
                if self._refuse(_Refusal(compiled, formula, operands, value, evaluand.number)):
                    places.append(place)
        if _is_one_stamp(places, evaluands, formula):
            self._noted.add(compiled.rule.code)

    def _kind(self, compiled: CompiledRule) -> type[Finding]:
        if compiled.rule.key == self._joint_key:
            return Pending
        if compiled.by_position:
            return Unordered
        return Finding


def _is_one_stamp(places: Sequence[int], evaluated: Sequence[_Evaluand], formula: Formula) -> bool:
    """Return whether a formula fails at these places because one evaluation is early or late.

    Of the intervals before and after it, one is then shorter than usual, and the other longer.
    """
    match places:
        case [before, after] if 0 < before == after - 1 and len(evaluated) >= _SERIES:
            positions = [_position(formula.members[0], evaluand) for evaluand in evaluated]
            intervals = [later - earlier for earlier, later in pairwise(positions)]
            usual = sorted(intervals)[len(intervals) // 2]
            around = intervals[before - 1 : after]
            return min(around) < usual < max(around)
    return False


def _softened(refusal: _Refusal, seen: Seen) -> Rule:
    """Return the rule, as the official checker alone has it if the final values keep it.

    Then only the order of the records is wrong, or that a number is text.
    """
    rule = refusal.compiled.rule
    if rule.basis is not Basis.BOTH:
        return rule
    formula = refusal.formula
    logged = refusal.operands.values
    final = {key: seen[key].last for key in seen.keys() & formula.names}
    numbers = {key: read_number(value) for key, value in {**logged, **final}.items()}
    as_final = replace(refusal.operands, values=numbers)
    if as_final == refusal.operands or not formula.evaluate(as_final):
        return rule
    hint = None
    if str not in map(type, logged.values()):
        keys = " and ".join(sorted(final))
        hint = (
            f"log {keys} before {rule.key}, as the official checker goes by the order of the lines"
        )
    return replace(rule, basis=Basis.OFFICIAL, hint=rule.hint or hint)


def broken_at_the_end(rule: Rule, formula: Formula, last: Record, seen: Seen) -> Operands | None:
    """Return the operands of a formula that the final values of a run break, else None.

    ``last`` is the last record of the rule's key. Other rules report missing keys.
    """
    if not formula.needed <= seen.keys():
        return None
    if formula.answer(last, seen):
        return None
    operands = formula.operands(last, seen)
    if rule.last and None in operands.metadata.values():
        return None
    return operands


def _position(name: str, evaluand: _Evaluand) -> float:
    """Return how far a run had trained at a record; records that do not say so come first."""
    metadata = evaluand.record.metadata
    position = metadata.get(name) if isinstance(metadata, dict) else None
    if type(position) is int and 0 <= position < _EXACT:  # nearly always, and fast
        return position
    if isinstance(position, str):
        position = read_number(position)
    number = to_float(position)
    if number is None or math.isnan(number):
        return -math.inf
    return number
