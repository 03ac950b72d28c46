"""The rules of a run: checked record by record, and on the whole log at its end."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Severity
from mlperf_pkg.infra.numbers import to_float
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record, printable, shown
from mlperf_pkg.rulebook.constraints import CONSTRAINTS, Breach, Part, needed_in_words
from mlperf_pkg.rulebook.constraints import holds as meets
from mlperf_pkg.rulebook.expectation import (
    MULTIPLE,
    Expectation,
    Limit,
    expectation,
    has_record,
    in_general,
    in_words,
    interval_of,
    member_of,
    plain,
    rounding,
    text_of,
)
from mlperf_pkg.rulebook.formula import Formula, Operands, amount, names_in
from mlperf_pkg.rulebook.logged import Logged, Seen, first_logged
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import Check, CompiledRule, RuleTable
from mlperf_pkg.run.convergence import reason_of
from mlperf_pkg.run.evaluations import KEYS, POSITION_UNITS
from mlperf_pkg.run.readers import Joiner, TensorList

_FEW = 4  # records of a key in a block; fewer are not slower one by one
_MOST_REFUSALS = 1000  # of one log; more do not change the verdict
_CLOCKS_MS = 1000.0  # by which the clocks of the processes of a run may differ
# Keys that a truncated log lacks. By the rules its run did not converge, which is forgiven once.
_AT_THE_END = frozenset(
    {"block_stop", "epoch_stop", "eval_accuracy", "eval_start", "eval_stop", "run_stop"}
)


class _Refusal(NamedTuple):
    """A record for which a formula does not hold: its value, and its ``number`` in the log."""

    compiled: CompiledRule
    operands: Operands
    value: Any
    number: int


class RuleChecker:
    """Checks the records of one log in their order, and at its end the whole log.

    ``report`` receives each broken rule, ``line_of`` returns the line of a record by its number in
    the log. ``seen`` are the records by key. ``crash`` says why the official checker crashes on
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
        self.seen: dict[str, Logged] = {}
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
        self._refusals: list[_Refusal] = []
        # Codes of rules: a record reached their target, or could not be compared with it.
        self._met: set[str] = set()
        self._incomparable: set[str] = set()
        self._last_missed: tuple[Rule, Any] | None = None  # what the last evaluation missed
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
        message: str | None = None,
        settled: bool = False,
    ) -> None:
        """Report a broken rule, at the record with this ``number`` or about the whole log.

        Once the log has ended, the finding is ``Pending`` if a later record could have prevented
        it; ``settled`` says that none could.
        """
        kind = Pending if self._ended and not settled else Finding
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

    def _add_breach(
        self, rule: Rule, number: int, breach: Breach, *, settled: bool = False
    ) -> None:
        self._add(
            rule,
            number,
            value=breach.found,
            expected=breach.expected,
            message=breach.message,
            settled=settled,
        )

    def _crash_at(self, number: int, reason: str) -> None:
        if self.crash is None:
            self.crash = f"line {self._line_of(number)}: {reason}"

    # ---- records that cannot break a rule are counted --------------------------------------

    def take(self, block: Block) -> None:
        """Check the next records in order; where none of a key can break a rule, count them."""
        followed, seen, first = self.table.followed, self.seen, block.first
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
        logged, indexes = self.seen.get(key), block.indexes[key]
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
            self._tensors.add([fields["tensor"] for fields in parts[Part.METADATA]])
        return True

    def _is_in_order(self, check: Check, indexes: Sequence[int], block: Block) -> bool:
        """Return whether ``after`` or ``before`` holds for the first and the last of the records.

        It then holds for those between them.
        """
        starts, seen = block.indexes, self.seen
        for index in (indexes[0], indexes[-1]):
            earlier = {k for k in check.argument if k in seen or starts.get(k, [index])[0] < index}
            if not check.holds(None, earlier):
                return False
        return True

    # ---- the others are checked one by one -------------------------------------------------

    def _check_all(self, records: Iterable[tuple[Record, int]]) -> None:
        """Check records, each with its number in the log."""
        seen, keys, joiner = self.seen, self.table.keys, self._joiner
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
                    if passed or not (failed := _first_failed(compiled.checks, record, seen)):
                        self._check_more(compiled, record, number)
                    else:
                        self._report_failed(compiled.rule, failed, record, number)
                    if compiled.reaches:
                        self._compare_with_target(compiled, record, number)
            if logged:
                logged.add(record, number)
            else:
                seen[key] = first_logged(record, number)
            if joiner and joiner.of == key:
                self._join(joiner, record, number)

    def _report_failed(self, rule: Rule, check: Check, record: Record, number: int) -> None:
        breach = check.constraint.breach(check.argument, record, self.seen)
        if breach.is_limit and rule.basis is Basis.RULES:
            return
        self._add(
            replace(rule, basis=Basis.OFFICIAL) if breach.is_limit else rule,
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
        if compiled.in_passing:
            self._evaluate_in_passing(compiled, record, number)
        if rule.tensors is not None:
            try:
                self._tensors.add([record.metadata["tensor"]])
            except (TypeError, IndexError):
                self._report_missing(rule, record, number, "tensor")
        if rule.reached and self._last_missed and self._met:
            metadata, (target, value) = record.metadata, self._last_missed
            if isinstance(metadata, dict) and metadata.get("status") == "success":
                missed = f"{rule.key} says success, but the last evaluation before it is {{found}}"
                message = f"{missed}; expected {{expected}}"
                expected = _target_in_words(target)
                self._add(rule, number, value=value, expected=expected, message=message)

    def _evaluate_in_passing(self, compiled: CompiledRule, record: Record, number: int) -> None:
        if not compiled.formula:
            return
        nth = self._nth(compiled.rule) if compiled.rule.nth_since else None
        if not compiled.holds(record, self.seen, nth) and len(self._refusals) < _MOST_REFUSALS:
            operands = compiled.formula.operands(record, self.seen, nth)
            self._refusals.append(_Refusal(compiled, operands, record.value, number))

    def _nth(self, rule: Rule) -> int:
        """Count the records of the rule's key since the last record of ``nth_since``."""
        anchor = self.seen.get(rule.nth_since or "")
        restarts = anchor.count if anchor else 0
        last_restarts, count = self._series.get(rule.code, (restarts, 0))
        count = count if last_restarts == restarts else 0
        self._series[rule.code] = (restarts, count + 1)
        return count

    def _compare_with_target(self, compiled: CompiledRule, record: Record, number: int) -> None:
        assert compiled.reaches  # noqa: S101
        rule = compiled.rule
        try:
            if not compiled.reaches(record, self.seen):
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
        if self._reached_ms is None:
            self._reached_ms = record.time_ms
            self._reached_late = "run_stop" in self.seen

    def _join(self, joiner: Joiner, record: Record, number: int) -> None:
        try:
            joiner.take(record, number)
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            self._crash_at(number, reason_of(error))
            rule = self.table.keys[joiner.key].rules[0].rule
            self._report_missing(rule, record, number, joiner.by)

    def _report_missing(self, rule: Rule, record: Record, number: int, name: str) -> None:
        """Report metadata that lacks a field."""
        self._add_breach(rule, number, CONSTRAINTS["metadata"].breach([name], record, self.seen))

    # ---- the whole log, at its end ---------------------------------------------------------

    def conclude(self, *, success: bool, hidden: Set[str]) -> None:
        """Check the rules that depend on the whole log.

        ``success`` is the status in ``run_stop``; ``hidden`` are the keys of records that the log
        holds but that the official parser does not read. Findings are now ``Pending``, unless no
        later record could have prevented them.
        """
        self._ended, self._hidden = True, hidden
        if self._joiner:
            self._check_all(self._joiner.records())
        for refusal in self._refusals:
            self._refuse(refusal)
        for compiled in self.table.counted:
            self._count(compiled.rule)
        for compiled in self.table.concluded:
            if logged := self.seen.get(compiled.rule.key):
                self._conclude(compiled, logged, success=success)

    def _refuse(self, refusal: _Refusal) -> None:
        """Report a formula that does not hold for a record.

        If it holds for the final values of the run, only the order of the records is wrong.
        """
        formula, rule = refusal.compiled.formula, refusal.compiled.rule
        assert formula  # noqa: S101
        final = {key: self.seen[key].last for key in self.seen.keys() & formula.names}
        operands = refusal.operands.with_values(final)
        changed = operands != refusal.operands
        if changed and rule.basis is Basis.BOTH and formula.evaluate(operands):
            keys = " and ".join(sorted(final))
            hint = f"log {keys} before it: the official checker reads in order"
            rule = replace(rule, basis=Basis.OFFICIAL, hint=rule.hint or hint)
        breach = breach_of(rule, refusal.operands, refusal.value)
        settled = self._joiner is None or rule.key != self._joiner.key
        self._add_breach(rule, refusal.number, breach, settled=settled)

    def _conclude(self, compiled: CompiledRule, logged: Logged, *, success: bool) -> None:
        rule = compiled.rule
        if compiled.reaches and rule.code not in self._met | self._incomparable:
            self._missed(rule, logged, success=success)
        if rule.tensors is not None:
            self._compare_tensors(rule, logged, compiled.tensors)
        if rule.no_later_than:
            self._compare_start(rule, logged)
        if rule.covers_target and success:
            self._compare_stop(rule, logged)
        if compiled.formula and not compiled.in_passing:
            self._evaluate_at_the_end(rule, compiled.formula, logged)

    # ---- how often a key is logged ---------------------------------------------------------

    def _count(self, rule: Rule) -> None:
        logged, occurs = self.seen.get(rule.key), rule.occurs
        if isinstance(occurs, Mapping) and "or" in occurs:
            keys = {rule.key, occurs["or"]}
            if not keys & self.seen.keys():
                self._missing(rule, keys)
        elif isinstance(occurs, Mapping):
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

    def _count_within(self, rule: Rule, logged: Logged | None, limits: Mapping[str, Any]) -> None:
        """Check ``at_least`` and ``at_most`` of the number of records, equal or not."""
        count = logged.count if logged else 0
        if meets(count, limits):
            return
        excess = count > limits.get("at_most", count)
        expected = needed_in_words(limits)
        self._add(
            rule,
            logged.last_number if logged and excess else None,
            value=count,
            expected=f"logged {expected} times",
            message=f"{_times_logged(rule, count)}; expected {expected}",
            settled=excess,
        )

    def _repeated(self, rule: Rule, logged: Logged) -> None:
        if logged.same:
            rule = replace(rule, severity=Severity.NOTE, basis=Basis.ADVICE)
            values = "always with the same value"
        else:
            values = "with different values"
            line = self._line_of(logged.first_number)
            first, last = shown(logged.first), shown(logged.last)
            rule = replace(rule, hint=rule.hint or f"{first} on line {line}, {last} in the end")
        self._add(
            rule,
            logged.last_number,
            value=logged.count,
            expected="logged once",
            message=f"{_times_logged(rule, logged.count)}, {values}; expected once",
            settled=not logged.same,
        )

    # ---- targets, tensors, times and formulas ----------------------------------------------

    def _missed(self, rule: Rule, logged: Logged, *, success: bool) -> None:
        """Report a missed target; the rules forgive one such run, unless it says success."""
        if not success and rule.basis is Basis.BOTH:
            rule = replace(rule, basis=Basis.OFFICIAL)
        expected = _target_in_words(rule)
        subject = f"{rule.key} never reaches the target, the last value is {{found}}"
        message = f"{subject}; expected {{expected}}"
        self._add(rule, logged.last_number, value=logged.last, expected=expected, message=message)

    def _compare_start(self, rule: Rule, logged: Logged) -> None:
        """Report a key whose first record is later than that of a key of ``no_later_than``."""
        keys = [key for key in rule.no_later_than if key in self.seen]
        key = min(keys, key=lambda key: self.seen[key].earliest_ms, default=rule.key)
        late_ms = logged.earliest_ms - self.seen[key].earliest_ms
        if late_ms > _CLOCKS_MS:
            self._report_time(rule, logged, late_ms, "after", key)

    def _compare_stop(self, rule: Rule, logged: Logged) -> None:
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
        self, rule: Rule, logged: Logged, distance_ms: float, side: str, event: str
    ) -> None:
        limit = "no later" if side == "after" else "no earlier"
        self._add(
            rule,
            logged.first_number,
            value=round(distance_ms / 1000, 3),
            expected=f"{limit} than {event}",
            message=f"{rule.key} is logged {{found:,.1f}} seconds {side} {event}; expected {limit}",
            settled=True,
        )

    def _compare_tensors(self, rule: Rule, logged: Logged, expected: frozenset[str]) -> None:
        if differences := self._tensors.differences(expected):
            subject = f"{rule.key} does not list each tensor of the model once"
            self._add(
                rule,
                logged.last_number,
                value=differences,
                expected=f"{len(expected)} tensors",
                message=f"{subject}: {{found:s}}; expected {{expected}}",
                settled=self._tensors.has_too_many(expected),
            )

    def _evaluate_at_the_end(self, rule: Rule, formula: Formula, logged: Logged) -> None:
        """Evaluate a formula on the final values; other rules report missing keys."""
        if not formula.names - {"value"} <= self.seen.keys():
            return
        last = Record(rule.key, 0, logged.last, logged.metadata)
        if not formula.answer(last, self.seen):
            operands = formula.operands(last, self.seen)
            if not rule.last or None not in operands.metadata.values():
                breach = breach_of(rule, operands, logged.last)
                self._add_breach(rule, logged.last_number, breach)


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


# ---- a broken formula in words --------------------------------------------------------------

_LONGEST = 100  # characters of a calculation
_FOR_ROUNDING = 0.001  # a tolerance below this part of a number only allows for rounding
_DIGITS = 12  # of the difference between doubles
_OF_A_RECORD = frozenset({"value", "nth"})


class _Terms(NamedTuple):
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
        return Breach(value, _in_general(terms, operands), rule.message or message)
    needed = _expected(terms, expects, operands)
    member = member_of(expects.amount, "metadata")
    if member and operands.metadata.get(member) is None:
        message = f"{rule.key} has no {member} in its metadata; expected {{expected}}"
        return Breach(None, needed, rule.message or message)
    value = _found(expects.amount, operands, value)
    return Breach(value, needed, rule.message or _message(rule, expects))


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
    number = amount(tree, operands)
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
        number = amount(bound, self._operands)
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
        tolerance = limit.tolerance and amount(limit.tolerance, self._operands)
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
        numbers = [amount(limit.bound, self._operands) for limit in limits]
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
        before, after = (amount(part, self._operands) for part in (rounded[0], node))
        return self.visit(rounded[0]) if before == after else node
