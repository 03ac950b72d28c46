"""The rules of a run, checked record by record; ``conclusions`` checks the whole log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record, printable, shown
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, Part, needed_in_words
from mlperf_pkg.rulebook.formula import Operands
from mlperf_pkg.rulebook.logged import Logged, Seen, first_logged
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import Check, CompiledRule, RuleTable
from mlperf_pkg.run.crashes import reason_of
from mlperf_pkg.run.readers import TensorList

if TYPE_CHECKING:
    from mlperf_pkg.run.joined_metrics import Joiner

_FEW = 4  # records of a key in a block; fewer are not slower one by one
_MOST_REFUSALS = 1000  # of one log; more do not change the verdict


class RuleFindings:
    """Reports the broken rules of one log.

    ``line_of`` returns the line of a record by its number in the log. Once the log has ``ended``, a
    finding is ``Pending`` if a later record could have prevented it.
    """

    def __init__(
        self, path: str, report: Callable[[Finding], None], line_of: Callable[[int], int]
    ) -> None:
        """Start with the log ``path``; ``report`` receives each finding."""
        self.ended = False
        self.line_of = line_of
        self._path = path
        self._report = report

    def add(
        self,
        rule: Rule,
        number: int | None,
        *,
        value: Any = None,
        expected: str,
        message: str | None = None,
        settled: bool = False,
    ) -> None:
        """Report a broken rule, at the record with this ``number`` or about the whole log.

        ``settled`` says that no later record could have prevented it.
        """
        kind = Pending if self.ended and not settled else Finding
        default = rule.message or f"{rule.key} is {{found}}; expected {{expected}}"
        finding = kind(
            code=rule.code,
            message=message or default,
            path=self._path,
            line=None if number is None else self.line_of(number),
            severity=rule.severity,
            basis=rule.basis,
            found=printable(value),
            expected=expected,
            hint=rule.hint,
            source=rule.source,
        )
        self._report(finding)


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


class RuleChecker:
    """Checks the records of one log in their order, and keeps what they show.

    ``report`` receives each broken rule, ``line_of`` returns the line of a record by its number in
    the log.
    """

    def __init__(
        self,
        table: RuleTable,
        path: str,
        report: Callable[[Finding], None],
        line_of: Callable[[int], int],
    ) -> None:
        """Start at the head of the log ``path``."""
        self.table = table
        self.findings = RuleFindings(path, report, line_of)
        self.evidence = Evidence()
        self._seen = self.evidence.seen
        self._joiner: Joiner | None = None
        self._last_missed: tuple[Rule, Any] | None = None  # what the last evaluation missed
        self._series: dict[str, tuple[int, int]] = {}
        if table.joined:
            from mlperf_pkg.run.joined_metrics import Joiner  # noqa: PLC0415 - few need it

            self._joiner = Joiner(table.joined)

    @property
    def reached(self) -> bool | None:
        """Whether some record met each target; None if there are no targets."""
        codes = [compiled.rule.code for compiled in self.table.concluded if compiled.reaches]
        evidence = self.evidence
        return evidence.crash is None and evidence.met.issuperset(codes) if codes else None

    def take(self, block: Block) -> None:
        """Check the next records in order; where none of a key can break a rule, count them."""
        followed, seen, first = self.table.followed, self._seen, block.first
        indexes: list[int] = []
        quiet: dict[str, list[int]] = {}
        for key in block.indexes.keys() & followed:
            of_key = block.indexes[key]
            if len(of_key) >= _FEW and self._is_quiet(key, block):
                start = 0 if key in seen else 1
                indexes += of_key[:start]
                quiet[key] = of_key[start:]
            else:
                indexes += of_key
        indexes.sort()
        numbers = [first + index for index in indexes]
        self._check_all(zip(block.select(indexes), numbers, strict=True))
        for key, of_key in quiet.items():
            seen[key].count += len(of_key)
            seen[key].last_number = first + of_key[-1]

    def take_joined(self) -> None:
        """Check the metrics that were logged apart and are judged together."""
        if self._joiner:
            self._check_all(self._joiner.records())

    def _check_all(self, records: Iterable[tuple[Record, int]]) -> None:
        """Check records, each with its number in the log."""
        seen, keys, joiner = self._seen, self.table.keys, self._joiner
        for record, number in records:
            key = record.key
            logged, rules = seen.get(key), keys.get(key)
            checklist = rules and (rules.later if logged else rules.first)
            if checklist and checklist.rules:
                try:
                    passed = checklist.passes(record, seen)
                except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
                    passed = False
                for compiled in checklist.more if passed else checklist.rules:
                    if passed or _passes(compiled, record, seen):
                        self._check_more(compiled, record, number)
                    else:
                        self._report_broken(compiled, record, number)
                    if compiled.reaches:
                        self._compare_with_target(compiled, record, number)
            if logged:
                logged.add(record, number)
            else:
                seen[key] = first_logged(record, number)
            if joiner and joiner.of == key:
                self._join(joiner, record, number)

    def _is_quiet(self, key: str, block: Block) -> bool:
        """Return whether no record of a key can break a rule, except the first of the log."""
        rules = self.table.quiet.get(key)
        if rules is None:
            return False
        logged, indexes = self._seen.get(key), block.indexes[key]
        try:
            times = block.times(indexes)
            earliest_ms = logged.earliest_ms if logged else times[0]
            later = indexes if logged else indexes[1:]
            return min(times) >= earliest_ms and self._all_pass(rules, later, block)
        except Exception:  # noqa: BLE001 - checking them one by one shows which one is the reason
            return False

    def _all_pass(
        self, rules: Iterable[CompiledRule], indexes: Sequence[int], block: Block
    ) -> bool:
        """Return whether records of one key pass all checks; if so, list their tensors."""
        read = {Part.VALUE: block.values, Part.METADATA: block.metadata}
        parts: dict[Part, list[Any]] = {}
        for check in chain.from_iterable([compiled.checks for compiled in rules]):
            part = check.constraint.part
            if part is Part.ALL:
                passed = self._is_in_order(check, indexes, block)
            else:
                if part not in parts:
                    parts[part] = read[part](indexes)
                passed = all(map(check.holds, parts[part]))
            if not passed:
                return False
        if any(compiled.rule.tensors is not None for compiled in rules):
            self.evidence.tensors.add([fields["tensor"] for fields in parts[Part.METADATA]])
        return True

    def _is_in_order(self, check: Check, indexes: Sequence[int], block: Block) -> bool:
        """Return whether ``after`` or ``before`` holds for the first and the last of the records.

        It then holds for those between them.
        """
        starts, seen = block.indexes, self._seen
        for index in (indexes[0], indexes[-1]):
            earlier = {k for k in check.argument if k in seen or starts.get(k, [index])[0] < index}
            if not check.holds(None, earlier):
                return False
        return True

    def _report_broken(self, compiled: CompiledRule, record: Record, number: int) -> None:
        rule, check = compiled.rule, _first_failed(compiled.checks, record, self._seen)
        breach = check.constraint.breach(check.argument, record, self._seen)
        if breach.is_limit and rule.basis is Basis.RULES:
            return
        self.findings.add(
            replace(rule, basis=Basis.OFFICIAL) if breach.is_limit else rule,
            number,
            value=breach.found,
            expected=rule.needed or breach.expected,
            message=rule.message or breach.message,
        )
        if rule.fatal:
            self._crash(number, f"no rules for {shown(record.value)}")

    def _check_more(self, compiled: CompiledRule, record: Record, number: int) -> None:
        """Check what a rule needs of a record that passes its checks."""
        rule = compiled.rule
        if compiled.in_passing:
            self._evaluate(compiled, record, number)
        if rule.tensors is not None:
            self._list_tensor(rule, record, number)
        if rule.reached and self._last_missed and self._is_success(record):
            missed = f"{rule.key} says success, but the last evaluation before it is {{found}}"
            message = f"{missed}; expected {{expected}}"
            target, value = self._last_missed
            expected = target_in_words(target)
            self.findings.add(rule, number, value=value, expected=expected, message=message)

    def _list_tensor(self, rule: Rule, record: Record, number: int) -> None:
        try:
            self.evidence.tensors.add([record.metadata["tensor"]])
        except (TypeError, IndexError):
            self._report_missing(rule, record, number, "tensor")

    def _evaluate(self, compiled: CompiledRule, record: Record, number: int) -> None:
        if not compiled.formula:
            return
        nth = self._nth(compiled.rule) if compiled.rule.nth_since else None
        refusals = self.evidence.refusals
        if not compiled.holds(record, self._seen, nth) and len(refusals) < _MOST_REFUSALS:
            operands = compiled.formula.operands(record, self._seen, nth)
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
                self.findings.add(rule, number, value=record.value, expected=expected)

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
            rule = self.table.keys[joiner.key].rules[0].rule
            self._report_missing(rule, record, number, joiner.by)

    def _report_missing(self, rule: Rule, record: Record, number: int, name: str) -> None:
        """Report metadata that lacks a field."""
        constraint = CONSTRAINTS["metadata"]
        breach = constraint.breach([name], record, self._seen)
        self.findings.add(
            rule,
            number,
            value=breach.found,
            expected=breach.expected,
            message=breach.message,
        )

    def _crash(self, number: int, reason: str) -> None:
        if self.evidence.crash is None:
            self.evidence.crash = f"line {self.findings.line_of(number)}: {reason}"


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
