"""The rules of a run: checked record by record, and on the whole log at its end."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Severity, Unordered
from mlperf_pkg.infra.json_values import to_float
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record, printable, shown
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, RecordPart, Test, needed_in_words
from mlperf_pkg.rulebook.constraints import holds as meets
from mlperf_pkg.rulebook.formula import (
    Formula,
    LoggedKey,
    Operands,
    Seen,
    first_logged,
    read_number,
)
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import Check, CompiledRule, RuleTable
from mlperf_pkg.run.convergence import reason_of
from mlperf_pkg.run.readers import Joiner, TensorList

_FEW = 4  # records of a key in a block; fewer are not slower one by one
_MOST_REFUSALS = 1000  # of one log; more do not change the verdict
_CLOCKS_MS = 1000.0  # by which the clocks of the processes of a run may differ
_MOST_MS = 3e10  # a year; times farther apart are of different units, or have a digit too many
# Keys that a truncated log lacks. By the rules its run did not converge, which is forgiven once.
_AT_THE_END = frozenset(
    {"block_stop", "epoch_stop", "eval_accuracy", "eval_start", "eval_stop", "run_stop"}
)


class RuleChecker:
    """Checks the records of one log in their order, and at its end the whole log.

    ``report`` receives each broken rule, ``line_of`` returns the line of a record by its number in
    the log. ``seen`` are the records by key. ``reached_number`` is the number of the record that
    reached the targets, None if none did. ``crash`` says why the official checker crashes on
    this log, if a rule is the reason.
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
        self.crash: str | None = None
        self._path = path
        self._report = report
        self._line_of = line_of
        self._ended = False
        self._hidden: Set[str] = frozenset()
        self._joiner = Joiner(table.joined) if table.joined else None
        self._series: dict[str, tuple[int, int]] = {}
        self._tensors = TensorList()
        # They wait for the end, which shows whether only the order of the records is wrong.
        self._refusals: list[tuple[CompiledRule, Formula, Operands, Any, int]] = []
        # Records of rules by position, which wait for those of earlier positions.
        self._positions: dict[str, list[tuple[float, Record, int, CompiledRule]]] = {}
        # Codes of rules: a record reached their target, or could not be compared with it.
        self._met: set[str] = set()
        self._incomparable: set[str] = set()
        self._last_missed: tuple[Rule, Any] | None = None  # what the last evaluation missed
        self.reached_number: int | None = None  # of the record that reached the last target
        self._reached_ms: float | None = None  # of the first record that reached a target
        self._reached_late = False  # it is logged after run_stop

    @property
    def reached(self) -> bool | None:
        """Whether some record met each target; None if there are no targets."""
        codes = [compiled.rule.code for compiled in self.table.concluded if compiled.reaches]
        return self.crash is None and self._met.issuperset(codes) if codes else None

    def _add(
        self,
        rule: Rule,
        number: int | None,
        *,
        value: Any = None,
        expected: str,
        message: str = "",
        kind: type[Finding] = Pending,
    ) -> None:
        """Report a broken rule, at the record with this ``number`` or about the whole log.

        Once the log has ended, the finding is of a ``kind``: ``Pending`` or ``Unordered`` if a
        later record could have prevented it.
        """
        kind = kind if self._ended else Finding
        default = rule.message or f"{rule.key} is {{found}}; expected {{expected}}"
        finding = kind(
            code=rule.code,
            message=message or default,
            path=self._path,
            line=None if number is None else self._line_of(number),
            severity=rule.severity,
            basis=rule.basis,
            found=printable(value),
            expected=expected,
            hint=rule.hint,
            source=rule.source,
        )
        self._report(finding)

    def _crash_at(self, number: int, reason: str) -> None:
        if self.crash is None:
            self.crash = f"line {self._line_of(number)}: {reason}"

    # ---- records that cannot break a rule are counted --------------------------------------

    def take(self, block: Block) -> None:
        """Check the next records in order; where none of a key can break a rule, count them."""
        followed = self.table.followed
        seen = self.seen
        first = block.first
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

    def _is_quiet(self, key: str, block: Block) -> bool:
        """Return whether no record of a key can break a rule, except the first of the log."""
        rules = self.table.quiet.get(key)
        if rules is None:
            return False
        logged = self.seen.get(key)
        indexes = block.indexes[key]
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
        read = {RecordPart.VALUE: block.values, RecordPart.METADATA: block.metadata}
        parts: dict[RecordPart, list[Any]] = {}
        for check in chain.from_iterable([compiled.checks for compiled in rules]):
            part = check.constraint.part
            if part is RecordPart.ALL:
                passed = self._is_in_order(check, indexes, block)
            else:
                if part not in parts:
                    parts[part] = read[part](indexes)
                passed = all(map(check.holds, parts[part]))
            if not passed:
                return False
        if any(compiled.rule.tensors is not None for compiled in rules):
            self._tensors.add([fields["tensor"] for fields in parts[RecordPart.METADATA]])
        return True

    def _is_in_order(self, check: Check, indexes: Sequence[int], block: Block) -> bool:
        """Return whether ``after`` or ``before`` holds for the first and the last of the records.

        It then holds for those between them.
        """
        starts = block.indexes
        seen = self.seen
        for index in (indexes[0], indexes[-1]):
            earlier = {k for k in check.argument if k in seen or starts.get(k, [index])[0] < index}
            if not check.holds(None, earlier):
                return False
        return True

    # ---- the others are checked one by one -------------------------------------------------

    def _check_all(self, records: Iterable[tuple[Record, int]]) -> None:
        """Check records, each with its number in the log."""
        seen = self.seen
        keys = self.table.keys
        joiner = self._joiner
        for record, number in records:
            key = record.key
            logged = seen.get(key)
            rules = keys.get(key)
            checklist = rules and (rules.later if logged else rules.first)
            if checklist and checklist.rules:
                try:
                    passed = checklist.passes(record, seen)
                except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
                    passed = False
                for compiled in checklist.more if passed else checklist.rules:
                    if passed or not (failed := _first_failed(compiled.checks, record, seen)):
                        self._check_more(compiled, record, number)
                    else:
                        self._report_failed(compiled, failed, record, number)
                    if compiled.reaches:
                        self._compare_with_target(compiled.rule, compiled.reaches, record, number)
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
        breach = check.constraint.breach(check.argument, record, self.seen)
        as_number = replace(record, value=read_number(record.value))
        is_text = rule.basis is Basis.BOTH and as_number.value is not record.value
        is_kept = is_text and not _first_failed(compiled.checks, as_number, self.seen)
        if breach.is_limit and rule.basis is Basis.RULES:
            return
        self._add(
            replace(rule, basis=Basis.OFFICIAL) if breach.is_limit or is_kept else rule,
            number,
            value=breach.found,
            expected=rule.needed or breach.expected,
            message=rule.message or breach.message,
        )
        if rule.fatal:
            self._crash_at(number, f"no rules for {shown(record.value)}")

    def _check_more(self, compiled: CompiledRule, record: Record, number: int) -> None:
        """Check what a rule needs of a record that passes its checks."""
        rule = compiled.rule
        formula = compiled.in_passing
        if formula:
            self._evaluate_in_passing(compiled, formula, record, number)
        if rule.tensors is not None:
            try:
                self._tensors.add([record.metadata["tensor"]])
            except (TypeError, IndexError):
                self._report_missing(rule, record, number, "tensor")
        target, value = self._last_missed or (rule, None)
        if rule.reached and target.code in self._met:
            metadata = record.metadata
            if isinstance(metadata, dict) and metadata.get("status") == "success":
                missed = f"{rule.key} says success, but the last evaluation before it is {{found}}"
                message = f"{missed}; expected {{expected}}"
                expected = _target_in_words(target)
                self._add(rule, number, value=value, expected=expected, message=message)

    def _evaluate_in_passing(
        self, compiled: CompiledRule, formula: Formula, record: Record, number: int
    ) -> None:
        rule = compiled.rule
        if compiled.by_position:
            series = self._positions.setdefault(rule.code, [])
            if rule.first or len(series) < _MOST_REFUSALS:
                position = _position(record, formula.members[0])
                series.append((position, record, number, compiled))
                if rule.first:
                    series[:] = [min(series, key=itemgetter(0))]
                return
        self._evaluate(compiled, record, number, self.seen)

    def _evaluate(self, compiled: CompiledRule, record: Record, number: int, seen: Seen) -> None:
        formula = compiled.in_passing
        rule = compiled.rule
        nth = self._nth(rule) if rule.nth_since and not compiled.by_position else None
        holds = formula.answer(record, seen, nth) if formula else True
        if holds is None:  # it lacks a value
            holds = not rule.official
        if formula and not holds and len(self._refusals) < _MOST_REFUSALS:
            operands = formula.operands(record, seen, nth)
            self._refusals.append((compiled, formula, operands, record.value, number))

    def _evaluate_by_position(self) -> None:
        """Evaluate formulas on records and those before them: evaluations may end in any order."""
        for series in self._positions.values():
            series.sort(key=itemgetter(0))
            seen = dict(self.seen)
            del seen[series[0][1].key]
            for _, record, number, compiled in series:
                self._evaluate(compiled, record, number, seen)
                seen[record.key] = first_logged(record, number)

    def _nth(self, rule: Rule) -> int:
        """Count the records of the rule's key since the last record of ``nth_since``."""
        anchor = self.seen.get(rule.nth_since or "")
        restarts = anchor.count if anchor else 0
        last_restarts, count = self._series.get(rule.code, (restarts, 0))
        count = count if last_restarts == restarts else 0
        self._series[rule.code] = (restarts, count + 1)
        return count

    def _compare_with_target(self, rule: Rule, reaches: Test, record: Record, number: int) -> None:
        try:
            if not reaches(record, self.seen):
                self._last_missed = rule, record.value
                return
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            self._crash_at(number, reason_of(error))
            if rule.code not in self._incomparable:
                self._incomparable.add(rule.code)  # once is enough
                self._add(rule, number, value=record.value, expected=_target_in_words(rule))
            return
        self._last_missed = None
        self._met.add(rule.code)
        if self.reached_number is None and self.reached:
            self.reached_number = number
        if self._reached_ms is None:
            self._reached_ms = record.time_ms
            self._reached_late = "run_stop" in self.seen

    def _join(self, joiner: Joiner, record: Record, number: int) -> None:
        try:
            joiner.take(record, number)
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            self._crash_at(number, reason_of(error))
            rule = self.table.keys[joiner.joined.key].rules[0].rule
            self._report_missing(rule, record, number, joiner.joined.by)

    def _report_missing(self, rule: Rule, record: Record, number: int, name: str) -> None:
        """Report metadata that lacks a field."""
        breach = CONSTRAINTS["metadata"].breach([name], record, self.seen)
        self._add(
            rule, number, value=breach.found, expected=breach.expected, message=breach.message
        )

    # ---- the whole log, at its end ---------------------------------------------------------

    def conclude(self, *, success: bool, hidden: Set[str]) -> None:
        """Check the rules that depend on the whole log.

        ``success`` is the status in ``run_stop``; ``hidden`` are the keys of records that the log
        holds but that the official parser does not read. Findings are now ``Pending``, unless no
        later record could have prevented them.
        """
        self._ended = True
        self._hidden = hidden
        if self._joiner:
            self._check_all(self._joiner.records())
        self._evaluate_by_position()
        for refusal in self._refusals:
            self._refuse(*refusal)
        for rule in self.table.counted:
            logged = self.seen.get(rule.key)
            if logged is None or logged.count > 1 or type(rule.occurs) is not str:
                self._count(rule, logged)
        for compiled in self.table.concluded:
            logged = self.seen.get(compiled.rule.key)
            if logged:
                self._conclude(compiled, logged, success=success)

    def _refuse(
        self, compiled: CompiledRule, formula: Formula, operands: Operands, value: Any, number: int
    ) -> None:
        """Report a formula that does not hold for a record.

        If it holds for the final values of the run, only the order of the records is wrong, or that
        a number is text.
        """
        rule = compiled.rule
        logged = operands.values
        final = {key: self.seen[key].last for key in self.seen.keys() & formula.names}
        numbers = {key: read_number(value) for key, value in {**logged, **final}.items()}
        as_final = replace(operands, values=numbers)
        if as_final != operands and rule.basis is Basis.BOTH and formula.evaluate(as_final):
            keys = " and ".join(sorted(final))
            order = f"log {keys} before it: the official checker reads in order"
            hint = None if str in map(type, logged.values()) else order
            rule = replace(rule, basis=Basis.OFFICIAL, hint=rule.hint or hint)
        kind = Unordered if compiled.by_position else Finding
        if self._joiner and rule.key == self._joiner.joined.key:
            kind = Pending
        self._report_formula(rule, number, operands, value, kind)

    def _conclude(self, compiled: CompiledRule, logged: LoggedKey, *, success: bool) -> None:
        rule = compiled.rule
        if compiled.reaches and rule.code not in self._met | self._incomparable:
            self._missed(rule, logged, success=success)
        if rule.tensors is not None:
            self._compare_tensors(rule, logged, compiled.tensors)
        if rule.no_later_than:
            self._compare_start(rule, logged)
        if rule.covers_target and success:
            self._compare_stop(rule, logged)
        if compiled.at_the_end and (success or not rule.last):
            self._evaluate_at_the_end(rule, compiled.at_the_end, logged)

    # ---- how often a key is logged ---------------------------------------------------------

    def _count(self, rule: Rule, logged: LoggedKey | None) -> None:
        occurs = rule.occurs
        if isinstance(occurs, dict) and "or" in occurs:
            keys = {rule.key, occurs["or"]}
            if not keys & self.seen.keys():
                self._missing(rule, keys)
        elif isinstance(occurs, dict):
            self._count_within(rule, logged, occurs)
        elif logged is None:
            self._missing(rule, {rule.key})
        elif occurs == "once" and logged.count > 1:
            self._repeated(rule, logged)

    def _missing(self, rule: Rule, keys: Set[str]) -> None:
        times = "once" if rule.occurs == "once" else "at least once"
        hidden = bool(keys & self._hidden)
        cut_off = rule.key in _AT_THE_END and "run_stop" not in self.seen
        if rule.basis is Basis.BOTH and (hidden or cut_off):
            rule = replace(rule, basis=Basis.OFFICIAL)
        ignored = "appears only on lines the official checker ignores"
        problem = ignored if hidden else "is not logged"
        message = f"{' or '.join(sorted(keys))} {problem}; expected {times}"
        self._add(rule, None, expected=f"logged {times}", message=message)

    def _count_within(
        self, rule: Rule, logged: LoggedKey | None, limits: Mapping[str, Any]
    ) -> None:
        """Check ``at_least`` and ``at_most`` of the number of records, equal or not."""
        count = logged.count if logged else 0
        if meets(count, limits):
            return
        excess = count > limits.get("at_most", count)
        words = needed_in_words(limits)
        self._add(
            rule,
            logged.last_number if logged and excess else None,
            value=count,
            expected=f"logged {words} times",
            message=f"{_times_logged(rule, count)}; expected {words}",
            kind=Finding if excess else Pending,
        )

    def _repeated(self, rule: Rule, logged: LoggedKey) -> None:
        if logged.same:
            rule = replace(rule, severity=Severity.NOTE, basis=Basis.ADVICE)
            values = "always with the same value"
        else:
            values = "with different values"
            line = self._line_of(logged.first_number)
            first = shown(logged.first)
            last = shown(logged.last)
            rule = replace(rule, hint=rule.hint or f"{first} on line {line}, {last} in the end")
        message = f"{_times_logged(rule, logged.count)}, {values}; expected once"
        number = logged.last_number
        kind = Pending if logged.same else Finding
        self._add(
            rule, number, value=logged.count, expected="logged once", message=message, kind=kind
        )

    # ---- targets, tensors, times and formulas ----------------------------------------------

    def _missed(self, rule: Rule, logged: LoggedKey, *, success: bool) -> None:
        """Report a missed target; the rules forgive one such run, unless it says success."""
        if not success and rule.basis is Basis.RULES:
            return
        if not success and rule.basis is Basis.BOTH:
            rule = replace(rule, basis=Basis.OFFICIAL)
        expected = _target_in_words(rule)
        subject = f"{rule.key} never reaches the target: the last value is {{found}}"
        message = f"{subject}; expected {{expected}}"
        self._add(rule, logged.last_number, value=logged.last, expected=expected, message=message)

    def _compare_start(self, rule: Rule, logged: LoggedKey) -> None:
        """Report a key whose first record is later than that of a key of ``no_later_than``.

        If only one of the times is possible, the order of the records decides.
        """
        others = {key: self.seen[key] for key in rule.no_later_than if key in self.seen}
        late_ms = {key: logged.earliest_ms - other.earliest_ms for key, other in others.items()}
        possible = [key for key in late_ms if abs(late_ms[key]) < _MOST_MS]
        key = max(possible or late_ms, key=late_ms.__getitem__, default=rule.key)
        if possible and late_ms[key] > _CLOCKS_MS:
            self._report_time(rule, logged, late_ms[key], "after", key)
        elif others and not possible and logged.first_number > others[key].first_number:
            number = logged.first_number
            expected = f"no later than {key}"
            message = f"{rule.key} is logged after {key}, at an impossible time; expected no later"
            self._add(rule, number, expected=expected, message=message, kind=Finding)

    def _compare_stop(self, rule: Rule, logged: LoggedKey) -> None:
        """Report a stop before the first evaluation that reached the target.

        There is no tolerance for clocks if the evaluation is logged after the stop, too.
        """
        early_ms = 0.0 if self._reached_ms is None else self._reached_ms - logged.earliest_ms
        start = self.seen.get("run_start")
        is_backwards = start is not None and logged.earliest_ms < start.earliest_ms  # RUN155
        allowed_ms = 0.0 if self._reached_late else _CLOCKS_MS
        if early_ms > allowed_ms and not is_backwards:
            event = "the evaluation that reached the target"
            self._report_time(rule, logged, early_ms, "before", event)

    def _report_time(
        self, rule: Rule, logged: LoggedKey, distance_ms: float, side: str, event: str
    ) -> None:
        limit = "no later" if side == "after" else "no earlier"
        number = logged.first_number
        message = f"{rule.key} is logged {{found:,.1f}} seconds {side} {event}; expected {limit}"
        value = round(distance_ms / 1000, 3)
        expected = f"{limit} than {event}"
        self._add(rule, number, value=value, expected=expected, message=message, kind=Finding)

    def _compare_tensors(self, rule: Rule, logged: LoggedKey, expected: frozenset[str]) -> None:
        differences = self._tensors.differences(expected)
        if differences:
            subject = f"{rule.key} does not list each tensor of the model once"
            self._add(
                rule,
                logged.last_number,
                value=differences,
                expected=f"{len(expected)} tensors",
                message=f"{subject}: {{found:s}}; expected {{expected}}",
                kind=Finding if self._tensors.has_too_many(expected) else Pending,
            )

    def _evaluate_at_the_end(self, rule: Rule, formula: Formula, logged: LoggedKey) -> None:
        """Evaluate a formula on the final values; other rules report missing keys."""
        if not formula.names - {"value"} <= self.seen.keys():
            return
        last = Record(rule.key, 0, logged.last, logged.metadata)
        if not formula.answer(last, self.seen):
            operands = formula.operands(last, self.seen)
            if not rule.last or None not in operands.metadata.values():
                self._report_formula(rule, logged.last_number, operands, logged.last)

    def _report_formula(
        self, rule: Rule, number: int, operands: Operands, value: Any, kind: type[Finding] = Pending
    ) -> None:
        # Most logs break no formula, and need none of what puts one into words.
        from mlperf_pkg.rulebook.expectation import breach_of  # noqa: PLC0415

        value, expected, message = breach_of(rule, operands, value)
        message = rule.message or message
        self._add(rule, number, value=value, expected=expected, message=message, kind=kind)


def _position(record: Record, name: str) -> float:
    """Return how far a run had trained at a record; records that do not say so come first."""
    metadata = record.metadata if isinstance(record.metadata, dict) else {}
    number = to_float(read_number(metadata.get(name)))
    return -math.inf if number is None or math.isnan(number) else number


def _first_failed(checks: Iterable[Check], record: Record, seen: Seen) -> Check | None:
    """Return the first check that a record fails."""
    for check in checks:
        try:
            if not check.test(record, seen):
                return check
        except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
            return check
    return None


def _target_in_words(rule: Rule) -> str:
    return rule.needed or needed_in_words(rule.reaches or {})


def _times_logged(rule: Rule, count: int) -> str:
    return f"{rule.key} is logged {{found:,}} time" + ("" if count == 1 else "s")
