"""The rules of a run: checked record by record, and on the whole log at its end."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Severity
from mlperf_pkg.log.block import METADATA, VALUE, Block
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, Breach
from mlperf_pkg.rulebook.formula import LoggedKey, Seen, first_logged, read_number
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import Check, Checklist, CompiledRule, RuleTable
from mlperf_pkg.run.convergence import reason_of
from mlperf_pkg.run.counts import RecordCounts
from mlperf_pkg.run.formulas import PassingFormulas, broken_at_the_end
from mlperf_pkg.run.readers import Joiner, TensorList
from mlperf_pkg.run.rule_findings import RuleFindings
from mlperf_pkg.run.shifts import Misplaced, Shift, early_stop, is_in_time, late_start
from mlperf_pkg.run.targets import Targets

_FEW = 4  # records of a key in a block; fewer are not slower one by one
_TIMES = ("once", "at_least_once")
_MOST_HEADS = 4  # of one table: the logs of a result set begin alike, and are read in turn
_MOST_MISPLACED = 1000  # records of one log
_IN_TIME = (
    "by the rules, the time stamps decide, and their order is right; the official checker goes by"
    " the order of the lines"
)


class RuleChecker:
    """Checks the records of one log in their order, and at its end the whole log.

    ``report`` receives each broken rule, ``line_of`` returns the line of a record by its number in
    the log. ``seen`` are the records by key; ``targets`` are what the run was trained for.
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
        self.seen: dict[str, LoggedKey] = {}
        self._findings = RuleFindings(path, report, line_of)
        self.targets = Targets(table, self._findings)
        self._formulas = PassingFormulas(table, self._findings)
        self._joiner = Joiner(table.joined) if table.joined else None
        self._tensors = TensorList()
        self._misplaced: list[Misplaced] = []

    @property
    def crash(self) -> str | None:
        """Why the official checker crashes on this log, if a rule is the reason."""
        return self._findings.crash

    def codes_of(self, key: str) -> set[str]:
        """Return the codes of the rules of a key."""
        key_rules = self.table.keys.get(key)
        if key_rules is None:
            return set()
        return {compiled.rule.code for compiled in key_rules.rules}

    # ---- records that cannot break a rule are counted --------------------------------------

    def take(self, block: Block) -> None:
        """Check the next records in order; where none of a key can break a rule, count them."""
        seen = self.seen
        first = block.first
        checked: dict[str, Sequence[int]] = {}
        counted: dict[str, int] = {}  # how many records of a key are only counted
        for key in block.indexes.keys() & self.table.followed:
            indexes = block.indexes[key]
            checked[key] = indexes
            if len(indexes) >= _FEW and key in self.table.quiet:
                earlier, others = self._split_by_time(key, block)
                if others and self._are_quiet(key, others, block):
                    checked[key] = earlier
                    counted[key] = len(others)
        unchecked = sorted(chain.from_iterable(checked.values()))
        if not seen:
            unchecked = self._take_head(block, checked, unchecked)
        self._check_all(block, unchecked)
        for key, count in counted.items():
            seen[key].count += count
            seen[key].last_number = first + block.indexes[key][-1]

    def _take_head(
        self, block: Block, checked: Mapping[str, Sequence[int]], unchecked: list[int]
    ) -> list[int]:
        """Check what a log begins with, once for all logs that begin so; return what is left.

        This is what is logged, once, before the first record that is ``cumulative``, without what
        is ``apart``.
        """
        table = self.table
        end = min(
            [checked[key][0] for key in table.cumulative & checked.keys()], default=block.size
        )
        size = bisect_left(unchecked, end)
        apart = [checked[key] for key in table.apart & checked.keys()]
        head = sorted(set(unchecked[:size]).difference(*apart))
        text = block.without_times(head)
        records = table.heads.get(text)
        if records and self._recalls(records, block, head):
            return sorted(set(unchecked).difference(head))
        self._check_all(block, unchecked[:size])
        records = block.select(head) if text else []
        is_once = len({record.key for record in records}) == len(records)
        is_kept = self._findings.silent and not (self._misplaced or self._formulas.refusals)
        if text and is_once and is_kept:
            if len(table.heads) >= _MOST_HEADS:
                table.heads.clear()
            table.heads[text] = records
        return unchecked[size:]

    def _recalls(self, records: Sequence[Record], block: Block, head: Sequence[int]) -> bool:
        """Take records that kept all rules in another log; return whether they do at new times."""
        seen = self.seen
        for record, time_ms, index in zip(records, block.times(head), head, strict=True):
            key = record.key
            if key in self.table.limited:
                again = Record(key, time_ms, record.value, record.metadata)
                if not self.table.keys[key].first.passes(again, seen):
                    seen.clear()
                    return False
            seen[key] = first_logged(record, block.first + index, time_ms)
        return True

    def _split_by_time(self, key: str, block: Block) -> tuple[Sequence[int], Sequence[int]]:
        """Return the indexes of the records earlier than all before them, and of the others.

        Rules may limit the time since the earliest record. The first of the log counts as earlier.
        """
        logged = self.seen.get(key)
        indexes = block.indexes[key]
        first = 0 if logged else 1  # of the records that may be among the others
        if not logged and block.ascends(indexes, from_first=True):
            return indexes[:first], indexes[first:]
        times = block.times(indexes)
        earliest_ms = logged.earliest_ms if logged else times[0]
        earlier = indexes[:first]
        others = []
        for index, time_ms in zip(indexes[first:], times[first:], strict=True):
            if time_ms < earliest_ms:
                earliest_ms = time_ms
                earlier.append(index)
            else:
                others.append(index)
        return earlier, others

    def _are_quiet(self, key: str, indexes: Sequence[int], block: Block) -> bool:
        """Return whether no record of a key at some indexes can break a rule."""
        try:
            return self._all_pass(self.table.quiet[key], key, indexes, block)
        except Exception:  # noqa: BLE001 - checking them one by one shows which one is the reason
            return False

    def _all_pass(
        self, checklist: Checklist, key: str, indexes: Sequence[int], block: Block
    ) -> bool:
        """Return whether records of one key pass all checks; if so, list their tensors."""
        passed = (
            block.all_pass(VALUE, checklist.of_value, indexes)
            and block.all_pass(METADATA, checklist.of_names, block.samples[key])
            and block.all_pass(METADATA, checklist.of_metadata, indexes)
        )
        if not passed:
            return False
        for check in checklist.of_record:
            if not self._is_in_order(check, indexes, block):
                return False
        if checklist.tensors:
            self._tensors.add([fields["tensor"] for fields in block.metadata(indexes)])
        return True

    def _is_in_order(self, check: Check, indexes: Sequence[int], block: Block) -> bool:
        """Return whether ``after`` or ``before`` holds for the first and the last of the records.

        It then holds for those between them.
        """
        seen = self.seen
        for index in (indexes[0], indexes[-1]):
            earlier = set()
            for key in check.argument:
                starts = block.indexes.get(key)
                if key in seen or (starts and starts[0] < index):
                    earlier.add(key)
            if not check.holds(None, earlier):
                return False
        return True

    # ---- the others are checked one by one -------------------------------------------------

    def _check_all(self, block: Block, indexes: Sequence[int]) -> None:
        """Check the records of a block at some indexes."""
        numbers = [block.first + index for index in indexes]
        self._check_records(zip(block.select(indexes), numbers, strict=True))

    def _check_records(self, records: Iterable[tuple[Record, int]]) -> None:
        """Check records, each with its number in the log."""
        seen = self.seen
        joiner = self._joiner
        for record, number in records:
            key = record.key
            logged = seen.get(key)
            rules = self.table.keys.get(key)
            checklist = rules and (rules.later if logged else rules.first)
            if checklist and checklist.rules:
                try:
                    passed = checklist.passes(record, seen)
                except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
                    passed = False
                for compiled in checklist.more if passed else checklist.rules:
                    failed = None if passed else _first_failed(compiled.checks, record, seen)
                    if failed:
                        self._report_failed(compiled, failed, record, number)
                    else:
                        self._check_more(compiled, record, number)
                for target in checklist.targets:
                    self.targets.compare(target, record, number, seen)
            if rules and rules.by_position:
                self._formulas.wait(rules.by_position, record, number, seen)
            if logged:
                logged.add(record, number)
            else:
                seen[key] = first_logged(record, number)
            if joiner and joiner.joined.of == key:
                self._join(joiner, record, number)

    def _report_failed(
        self, compiled: CompiledRule, check: Check, record: Record, number: int
    ) -> None:
        """Report what a record breaks; text that is a number breaks no rule that it keeps."""
        rule = compiled.rule
        needed = None if rule.reaches else rule.needed
        breach = check.constraint.breach(check.argument, record, self.seen, needed)
        if breach.is_limit and rule.basis is Basis.RULES:
            return
        if breach.is_limit or self._keeps_as_number(compiled, record):
            rule = replace(rule, basis=Basis.OFFICIAL)
        if self._is_out_of_order(compiled, record):
            self._misplaced.append(Misplaced(compiled, record, number, breach))
            return
        if rule.severity is Severity.ERROR:
            self._findings.mark(rule.key, rule.basis)
        self._findings.add(
            rule,
            number,
            value=breach.found,
            expected=needed or breach.expected,
            message=rule.message or breach.message,
        )
        if rule.fatal:
            self._findings.crash_at(number, f"it has no rules for {shown(record.value)}")

    def _is_out_of_order(self, compiled: CompiledRule, record: Record) -> bool:
        """Return whether a record breaks a rule of both only by its place in the file."""
        if compiled.rule.basis is not Basis.BOTH or len(self._misplaced) >= _MOST_MISPLACED:
            return False
        others = [check for check in compiled.checks if not check.is_order]
        return _first_failed(others, record, self.seen) is None

    def _report_misplaced(self, misplaced: Misplaced) -> None:
        """Report a record out of its place; its time decides whether the rules allow that."""
        rule = misplaced.compiled.rule
        if is_in_time(misplaced, self.seen):
            rule = replace(rule, basis=Basis.OFFICIAL, hint=rule.hint or _IN_TIME)
        breach = misplaced.breach
        self._findings.add(
            rule,
            misplaced.number,
            value=breach.found,
            expected=rule.needed or breach.expected,
            message=rule.message or breach.message,
            kind=Finding,
        )

    def _check_limits(self, misplaced: Misplaced) -> None:
        """Check, by the rules, how long after a record a misplaced one is that stands above it."""
        record = misplaced.record
        for compiled in self.table.keys[record.key].rules:
            within = compiled.rule.constraints.get("within_minutes", {})
            start = self.seen.get(within.get("of"))
            is_below = start is not None and start.first_number > misplaced.number
            if is_below and compiled.rule.basis is not Basis.OFFICIAL:
                failed = _first_failed(compiled.checks, record, self.seen)
                if failed:
                    by_rules = replace(compiled.rule, basis=Basis.RULES)
                    limit = replace(compiled, rule=by_rules)
                    self._report_failed(limit, failed, record, misplaced.number)

    def _keeps_as_number(self, compiled: CompiledRule, record: Record) -> bool:
        """Return whether a value is text, and the number that it holds keeps a rule of both."""
        as_number = replace(record, value=read_number(record.value))
        if compiled.rule.basis is not Basis.BOTH or as_number.value is record.value:
            return False
        return _first_failed(compiled.checks, as_number, self.seen) is None

    def _check_more(self, compiled: CompiledRule, record: Record, number: int) -> None:
        """Check what a rule needs of a record that passes its checks."""
        rule = compiled.rule
        if compiled.in_passing:
            self._formulas.take(compiled, compiled.in_passing, record, number, self.seen)
        if rule.tensors is not None:
            try:
                self._tensors.add([record.metadata["tensor"]])
            except (TypeError, IndexError):
                breach = _lacks(record, "tensor")
                self._findings.add(
                    rule,
                    number,
                    value=breach.found,
                    expected=breach.expected,
                    message=breach.message,
                )
        if rule.reached:
            self.targets.check_success(rule, record, number)

    def _join(self, joiner: Joiner, record: Record, number: int) -> None:
        try:
            joiner.take(record, number)
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            self._findings.crash_at(number, reason_of(error))
            rule = self.table.keys[joiner.joined.key].rules[0].rule
            breach = _lacks(record, joiner.joined.by)
            message = breach.message
            if isinstance(record.metadata, dict) and joiner.joined.by in record.metadata:
                reason = reason_of(error)
                message = f"{record.key} cannot be grouped by {joiner.joined.by}, as {reason}"
            self._findings.add(
                rule, number, value=breach.found, expected=breach.expected, message=message
            )

    # ---- the whole log, at its end ---------------------------------------------------------

    def conclude(
        self, *, success: bool, hidden: Set[str], unruled: Set[str], broken: Set[str]
    ) -> None:
        """Check the rules that depend on the whole log.

        ``success`` is the status in ``run_stop``; ``hidden`` and ``unruled`` are as in
        ``RecordCounts``. ``broken`` are keys with an error that is reported elsewhere. Findings
        are now ``Pending``, unless no later record could have prevented them.
        """
        self._findings.end()
        if self._joiner:
            self._check_records(self._joiner.records())
        for misplaced in self._misplaced:
            self._report_misplaced(misplaced)
            self._check_limits(misplaced)
        for key in broken:
            self._findings.mark(key, Basis.RULES)
        self._formulas.conclude(self.seen)
        counts = RecordCounts(self.seen, hidden, unruled, self._findings)
        for rule in self.table.counted:
            logged = self.seen.get(rule.key)
            if logged is None or logged.count > 1 or rule.occurs not in _TIMES:  # seldom
                counts.check(rule)
        for compiled in self.table.concluded:
            logged = self.seen.get(compiled.rule.key)
            if logged:
                self._conclude(compiled, logged, success=success)

    def _conclude(self, compiled: CompiledRule, logged: LoggedKey, *, success: bool) -> None:
        """Check what a rule needs of all records of its key, and of the others."""
        rule = compiled.rule
        if compiled.reaches:
            self.targets.check_reached(rule, logged, self.seen, success=success)
        if rule.tensors is not None:
            self._compare_tensors(rule, logged, compiled.tensors)
        if rule.no_later_than:
            self._report_shift(rule, logged, late_start(rule, logged, self.seen))
        if rule.covers_target and success:
            self._report_shift(rule, logged, early_stop(logged, self.targets, self.seen))
        formula = compiled.at_the_end
        if formula and (success or not rule.last):
            last = Record(rule.key, 0, logged.last, logged.metadata)
            operands = broken_at_the_end(rule, formula, last, self.seen)
            if operands:
                self._findings.add_formula(rule, logged.last_number, operands, logged.last)

    def _compare_tensors(self, rule: Rule, logged: LoggedKey, expected: frozenset[str]) -> None:
        differences = self._tensors.differences(expected)
        if differences:
            subject = f"{rule.key} does not list exactly the tensors of the model"
            self._findings.add(
                rule,
                logged.last_number,
                value=differences,
                expected=f"{len(expected)} tensors, each once",
                message=f"{subject}: {{found:s}}; expected {{expected}}",
                kind=Finding if self._tensors.has_too_many(expected) else Pending,
            )

    def _has_error(self, rule: Rule) -> bool:
        """Return whether an error about the key of a rule was reported."""
        return bool(self._findings.failed_by(rule.key))

    def _report_shift(self, rule: Rule, logged: LoggedKey, shift: Shift | None) -> None:
        """Report that the first record of a key is logged on the wrong side of an event."""
        if shift is None or (rule.severity is not Severity.ERROR and self._has_error(rule)):
            return
        if rule.severity is Severity.ERROR:
            self._findings.mark(rule.key, rule.basis)
        limit = "no later" if shift.side == "after" else "no earlier"
        if shift.milliseconds is None:
            subject = (
                f"{rule.key} is logged {shift.side} {shift.event}, and one of the two has an"
                " impossible time"
            )
            seconds = None
        else:
            subject = f"{rule.key} is logged {{found:,.1f}} seconds {shift.side} {shift.event}"
            seconds = round(shift.milliseconds / 1000, 3)
        self._findings.add(
            rule,
            logged.first_number,
            value=seconds,
            expected=f"{limit} than {shift.event}",
            message=f"{subject}; expected {{expected}}",
            kind=Finding,
        )


def _first_failed(checks: Iterable[Check], record: Record, seen: Seen) -> Check | None:
    """Return the first check that a record fails."""
    for check in checks:
        try:
            if not check.test(record, seen):
                return check
        except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
            return check
    return None


def _lacks(record: Record, name: str) -> Breach:
    """Return how metadata that lack a field break a rule."""
    return CONSTRAINTS["metadata"].breach([name], record, {})
