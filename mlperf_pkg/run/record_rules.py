"""Check the records of a run one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mlperf_pkg.findings import Basis
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, needed_in_words
from mlperf_pkg.rulebook.formula import Operands
from mlperf_pkg.rulebook.logged import Logged, Seen, first_logged
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import Check, Checklist, CompiledRule, RuleTable
from mlperf_pkg.run.crashes import reason_of
from mlperf_pkg.run.readers import TensorList
from mlperf_pkg.run.rule_findings import RuleFindings

if TYPE_CHECKING:
    from mlperf_pkg.run.joined_metrics import Joiner

Taker = Callable[[Record, int], None]
"""A reader of some records, each with its number in the log."""

_NO_TAKERS: Mapping[str, Taker] = {}
_MOST_REFUSALS = 1000  # of one log; more do not change the verdict


class Refusal(msgspec.Struct, frozen=True):
    """A record for which a formula does not hold: its value, and its ``number`` in the log."""

    compiled: CompiledRule
    operands: Operands
    value: Any
    number: int


class Evidence(msgspec.Struct, eq=False):
    """The facts that the records of a log have shown so far.

    ``seen`` are the records by key. ``met`` are the codes of the rules whose target a record
    reached, ``incomparable`` of those whose target a record could not be compared with.
    ``reached_ms`` is the time of the first record that reached a target, ``reached_late`` whether
    it is logged after ``run_stop``. ``refusals`` wait for the end of the log, which shows whether
    only the order of its records is wrong. ``crash`` says why the official checker crashes on this
    log, if a rule is the reason.
    """

    seen: dict[str, Logged] = {}
    met: set[str] = set()
    incomparable: set[str] = set()
    refusals: list[Refusal] = []
    reached_ms: float | None = None
    reached_late: bool = False
    tensors: TensorList = msgspec.field(default_factory=TensorList)
    crash: str | None = None


class RecordRules:
    """Checks the records of one log in their order, and keeps what they show."""

    def __init__(self, table: RuleTable, findings: RuleFindings) -> None:
        """Start at the head of a log."""
        self.evidence = Evidence()
        self.joiner: Joiner | None = None
        self._seen = self.evidence.seen
        self._keys = table.keys
        self._in_rows, self._followed = table.order.in_rows, table.order.followed
        self._findings = findings
        self._last_missed: tuple[Rule, Any] | None = None  # what the last evaluation missed
        self._series: dict[str, tuple[int, int]] = {}
        if table.joined:
            from mlperf_pkg.run.joined_metrics import Joiner  # noqa: PLC0415 - few need it

            self.joiner = Joiner(table.joined)

    def take(
        self,
        records: Sequence[Record],
        numbers: Sequence[int],
        others: Mapping[str, Taker] = _NO_TAKERS,
    ) -> None:
        """Check the next records, by their ``numbers`` in the log, and keep what they show.

        ``others`` take the records of some keys, too.
        """
        seen, keys, followed = self._seen, self._keys, self._followed
        joiner = self.joiner
        for record, number in zip(records, numbers, strict=True):
            key = record.key
            if key in followed:
                logged, rules = seen.get(key), keys.get(key)
                checklist = rules and (rules.later if logged else rules.first)
                if checklist and checklist.rules:
                    try:
                        is_quiet = checklist.only_checks and checklist.passes(record, seen)
                    except Exception:  # noqa: BLE001 - what cannot be compared fails
                        is_quiet = False
                    if not is_quiet:
                        self._check_all(checklist, record, number)
                if logged:
                    logged.add(record, number)
                else:
                    seen[key] = first_logged(record, number)
                if joiner and joiner.of == key:
                    self._join(joiner, record, number)
            if key in others:
                others[key](record, number)

    def take_row(self, row: Sequence[Record], numbers: Sequence[int]) -> None:
        """Check records of a key, but not its first, as ``take`` does; see ``Order.in_rows``."""
        key, start = row[0].key, 0
        checks = self._in_rows[key]
        for index in [*checks.to_check(row, self._seen), len(row)]:
            if start < index:
                last = row[index - 1]
                self._seen[key].add_row(index - start, last, numbers[index - 1])
                self._last_missed = checks.target, last.value
            if index < len(row):
                self.take(row[index : index + 1], numbers[index : index + 1])
            start = index + 1

    def take_joined(self) -> None:
        """Check the metrics that were logged apart and are judged together."""
        if self.joiner:
            for record, number in self.joiner.records():
                self.take([record], [number])

    def check(self, compiled: CompiledRule, record: Record, number: int, seen: Seen) -> None:
        """Check one rule of a record; ``seen`` is what was logged before it."""
        if not _passes(compiled, record, seen):
            self._report_broken(compiled, record, number, seen)
        else:
            if compiled.in_passing:
                self._evaluate(compiled, record, number)
            if compiled.has_more:
                self._check_more(compiled.rule, record, number)
        if compiled.reaches:
            self._compare_with_target(compiled, record, number)

    def _check_all(self, checklist: Checklist, record: Record, number: int) -> None:
        try:
            passed = checklist.passes(record, self._seen)
        except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
            passed = False
        if passed:
            if checklist.refusing:
                for compiled in checklist.refusing.at(record, self._seen):
                    self._evaluate(compiled, record, number)
            for compiled in checklist.alone:
                self._evaluate(compiled, record, number)
            for compiled in checklist.more:
                if compiled.has_more:
                    self._check_more(compiled.rule, record, number)
                if compiled.reaches:
                    self._compare_with_target(compiled, record, number)
        else:
            for compiled in checklist.rules:
                self.check(compiled, record, number, self._seen)

    def _report_broken(
        self, compiled: CompiledRule, record: Record, number: int, seen: Seen
    ) -> None:
        rule, check = compiled.rule, _first_failed(compiled.checks, record, seen)
        breach = check.constraint.breach(check.argument, record, seen)
        if breach.is_limit and rule.basis is Basis.RULES:
            return
        self._findings.add(
            replace(rule, basis=Basis.OFFICIAL) if breach.is_limit else rule,
            number,
            value=breach.found,
            expected=rule.needed or breach.expected,
            message=rule.message or breach.message,
        )
        if rule.fatal:
            self._crash(number, f"no rules for {shown(record.value)}")

    def _check_more(self, rule: Rule, record: Record, number: int) -> None:
        if rule.tensors is not None:
            self._list_tensor(rule, record, number)
        if rule.reached and self._last_missed and self._is_success(record):
            missed = f"{rule.key} says success, but the last evaluation before it is {{found}}"
            message = f"{missed}; expected {{expected}}"
            target, value = self._last_missed
            expected = target_in_words(target)
            self._findings.add(rule, number, value=value, expected=expected, message=message)

    def _list_tensor(self, rule: Rule, record: Record, number: int) -> None:
        try:
            self.evidence.tensors.add((record.metadata["tensor"],))
        except (TypeError, IndexError):
            self._report_missing(rule, record, number, "tensor")

    def _evaluate(self, compiled: CompiledRule, record: Record, number: int) -> None:
        if not compiled.formula:
            return
        nth = self._nth(compiled.rule) if compiled.rule.nth_since else None
        operands = compiled.formula.operands(record, self._seen, nth)
        refusals = self.evidence.refusals
        if not compiled.holds(operands) and len(refusals) < _MOST_REFUSALS:
            refusals.append(Refusal(compiled, operands, record.value, number))

    def _nth(self, rule: Rule) -> int:
        """Count the records of the rule's key since the last record of ``nth_since``."""
        anchor = self._seen.get(rule.nth_since or "")
        restarts = anchor.count if anchor else 0
        last_restarts, count = self._series.get(rule.code, (restarts, 0))
        count = count if last_restarts == restarts else 0
        self._series[rule.code] = (restarts, count + 1)
        return count

    def _is_success(self, record: Record) -> bool:
        """Return whether a record says success, and an evaluation reached the target."""
        metadata = record.metadata
        success = isinstance(metadata, dict) and metadata.get("status") == "success"
        return success and bool(self.evidence.met)

    def _compare_with_target(self, compiled: CompiledRule, record: Record, number: int) -> None:
        assert compiled.reaches  # noqa: S101
        try:
            if compiled.reaches(record, self._seen):
                self._last_missed = None
                self._reach(compiled.rule, record)
            else:
                self._last_missed = compiled.rule, record.value
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            rule, evidence = compiled.rule, self.evidence
            self._crash(number, reason_of(error))
            if rule.code not in evidence.incomparable:
                evidence.incomparable.add(rule.code)  # once is enough
                expected = target_in_words(rule)
                self._findings.add(rule, number, value=record.value, expected=expected)

    def _reach(self, rule: Rule, record: Record) -> None:
        self.evidence.met.add(rule.code)
        if self.evidence.reached_ms is None:
            self.evidence.reached_ms = record.time_ms
            self.evidence.reached_late = "run_stop" in self._seen

    def _join(self, joiner: Joiner, record: Record, number: int) -> None:
        try:
            joiner.take(record, number)
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            self._crash(number, reason_of(error))
            rule = self._keys[joiner.key].rules[0].rule
            self._report_missing(rule, record, number, joiner.by)

    def _report_missing(self, rule: Rule, record: Record, number: int, name: str) -> None:
        """Report metadata that lacks a field."""
        constraint = CONSTRAINTS["metadata"]
        breach = constraint.breach([name], record, self._seen)
        self._findings.add(
            rule,
            number,
            value=breach.found,
            expected=breach.expected,
            message=breach.message,
        )

    def _crash(self, number: int, reason: str) -> None:
        if self.evidence.crash is None:
            self.evidence.crash = f"line {self._findings.line_of(number)}: {reason}"


def target_in_words(rule: Rule) -> str:
    """Return what a rule with a target expects."""
    return rule.needed or needed_in_words(rule.reaches or {})


def _passes(compiled: CompiledRule, record: Record, seen: Seen) -> bool:
    try:
        return bool(compiled.passes(record, seen))
    except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
        return False


def _first_failed(checks: Iterable[Check], record: Record, seen: Seen) -> Check:
    """Return the first check that a record fails; the last one if none fails on its own."""
    for check in checks:
        try:
            if not check.test(record, seen):
                break
        except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
            break
    return check
