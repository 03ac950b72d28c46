"""The compiled rules of a run, asked of its records as they come and of the run at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Finding, Pending, Severity
from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.log.same_key import Group
from mlperf_pkg.rulebook.constraints import (
    Logged,
    Part,
    Seen,
    holds,
    needed_in_words,
)
from mlperf_pkg.rulebook.formula import Formula, NoAnswerError, names_in
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import Asked, Check, CompiledRule, RuleTable
from mlperf_pkg.run.joined_metrics import Joiner
from mlperf_pkg.run.tensors import TensorList

# What a run that was cut off lacks. By the rules it did not converge, which is forgiven once.
_AT_THE_END = frozenset(
    {"block_stop", "epoch_stop", "eval_accuracy", "eval_start", "eval_stop", "run_stop"}
)
Taker = Callable[[Record, int], None]
_GROUP = 4  # from so many records on it pays to ask them together
_MOST_REFUSED = 1000  # of a million the verdict needs no more


class RuleChecker:
    """Follows the records of one log; ``report`` receives each broken rule.

    Records are told by their number in the log, of which ``line_of`` makes the line to report.
    ``died`` tells why the official checker raises on this log, if a rule of it does; ``reached``
    whether the quality target was met, None where no rule asks for one.
    """

    def __init__(
        self,
        table: RuleTable,
        path: str,
        report: Callable[[Finding], None],
        line_of: Callable[[int], int],
    ) -> None:
        """Start at the head of the log ``path``."""
        self._table = table
        self._path = path
        self._report = report
        self._line_of = line_of
        self._seen: dict[str, Logged] = {}
        self._met: set[str] = set()
        self._incomparable: set[str] = set()
        self._last_evaluation: bool | None = None
        self._tensors = TensorList()
        self._series: dict[str, tuple[int, int]] = {}
        self._refused: list[tuple[CompiledRule, tuple[Any, ...], Any, int]] = []
        self._joiner = Joiner(table.joined) if table.joined else None
        self._ended = False
        self.died: str | None = None

    def take(self, block: Block, others: Mapping[str, Taker]) -> None:
        """Take the next records, in order; ``others`` take some of them as well.

        Of keys that nobody needs in order all records are asked at once, which is faster and
        finds the same. The findings of a key come in order; those of a code are all of one key.
        """
        table = self._table
        in_order: list[int] = []
        groups: dict[str, list[int]] = {}
        for key, indexes in block.indexes.items():
            if key in others or key in table.in_order:
                in_order += indexes
            elif key in table.together:
                count = self._before_group(key, indexes, block)
                in_order += indexes[:count]
                if count < len(indexes):
                    groups[key] = indexes[count:]
        in_order.sort()
        first, followed = block.first, table.followed
        for index, record in zip(in_order, block.select(in_order), strict=True):
            key = record.key
            if key in followed:
                self._take(record, first + index)
            if key in others:
                others[key](record, first + index)
        for key, indexes in groups.items():
            self._take_group(key, indexes, block)

    def _take(self, record: Record, number: int) -> None:
        key = record.key
        logged = self._seen.get(key)
        if rules := self._table.keys.get(key):
            asked = rules.later if logged else rules.first
            if asked.rules:
                self._ask(asked, record, number)
        if logged:
            self._log_again(logged, record, number)
        else:
            time_ms = min(9e99, record.time_ms)
            value, metadata = record.value, record.metadata
            self._seen[key] = Logged(1, value, value, True, number, number, time_ms, metadata)
        if self._joiner and self._joiner.of == key:
            self._join(self._joiner, record, number)

    def _log_again(self, logged: Logged, record: Record, number: int) -> None:
        value = record.value
        logged.count += 1
        logged.last, logged.last_number, logged.metadata = value, number, record.metadata
        # As list.count does, identity makes NaN equal to itself.
        if logged.same and value is not logged.first and value != logged.first:
            logged.same = False
        if record.time_ms < logged.earliest_ms:  # noqa: PLR1730 - min() takes thrice as long
            logged.earliest_ms = record.time_ms

    # ---- many records of one key ----------------------------------------------------------

    def _before_group(self, key: str, indexes: Sequence[int], block: Block) -> int:
        """How many records at the head of a group have to be taken in order."""
        if len(indexes) < _GROUP:
            return len(indexes)
        logged = self._seen.get(key)
        if key in self._table.timed:
            times = block.times(indexes)
            earliest = logged.earliest_ms if logged else times[0]
            if not all([time >= earliest for time in times]):  # noqa: C419 - twice as fast
                return len(indexes)
        return 0 if logged else 1

    def _take_group(self, key: str, indexes: Sequence[int], block: Block) -> None:
        group = Group(indexes, block)
        asked = self._table.together[key]
        if broken := [compiled for compiled in asked if not self._all_hold(compiled, group)]:
            for index, record in zip(indexes, block.select(indexes), strict=True):
                number = block.first + index
                before = self._seen_before(number)
                for compiled in broken:
                    self._check(compiled, record, number, before)
        logged = self._seen[key]
        logged.count += len(indexes)
        logged.last_number = block.first + indexes[-1]

    def _all_hold(self, compiled: CompiledRule, group: Group) -> bool:
        """Whether no record of a group breaks a rule; False as well where that takes more."""
        try:
            for check in compiled.checks:
                if check.name == "after":  # what was logged before the first, was before all
                    held = all(self._was_before(key, group.first) for key in check.argument)
                elif check.name == "before":
                    held = not any(self._was_before(key, group.last) for key in check.argument)
                elif check.constraint.part is Part.VALUE:
                    held = all(map(check.holds, group.values))
                else:
                    continue
                if not held:
                    return False
            if compiled.of_metadata and not group.metadata_passes(compiled.of_metadata):
                return False
            if compiled.rule.tensors is not None:
                self._tensors.add(group.tensors())
        except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
            return False
        return True

    def _was_before(self, key: str, number: int) -> bool:
        return key in self._seen and self._seen[key].first_number < number

    def _seen_before(self, number: int) -> Seen:
        """The keys that were logged before a record: all that ``after`` and ``before`` look at."""
        return {key: each for key, each in self._seen.items() if each.first_number < number}

    # ---- one record -----------------------------------------------------------------------

    def _ask(self, asked: Asked, record: Record, number: int) -> None:
        if _passes(asked, record, self._seen):
            for compiled in asked.more:
                if compiled.asks_more:
                    self._check_more(compiled, record, number)
                if compiled.reaches:
                    self._reach(compiled, record, number)
        else:
            for compiled in asked.rules:
                self._check(compiled, record, number, self._seen)

    def _check(self, compiled: CompiledRule, record: Record, number: int, seen: Seen) -> None:
        if not _passes(compiled, record, seen):
            self._break_checks(compiled, record, number, seen)
        elif compiled.asks_more:
            self._check_more(compiled, record, number)
        if compiled.reaches:
            self._reach(compiled, record, number)

    def _break_checks(
        self, compiled: CompiledRule, record: Record, number: int, seen: Seen
    ) -> None:
        rule, check = compiled.rule, _first_failed(compiled.checks, record, seen)
        needed = check.constraint.needed(check.argument)
        self._break(rule, number, check.constraint.found(record), needed)
        if rule.fatal:
            self._die(f"line {self._line_of(number)}: no rules for {shown(record.value)}")

    def _check_more(self, compiled: CompiledRule, record: Record, number: int) -> None:
        rule = compiled.rule
        if rule.tensors is not None:
            try:
                self._tensors.add((record.metadata["tensor"],))
            except (TypeError, IndexError):
                self._break(rule, number, record.metadata, "metadata with tensor")
        if compiled.formula and compiled.in_passing and len(self._refused) < _MOST_REFUSED:
            nth = self._nth(rule) if rule.nth_since else None
            given = compiled.formula.given(record, self._seen, nth)
            if not _true(compiled.formula, given, compiled.without_answer):
                self._refused.append((compiled, given, record.value, number))
        if rule.reached and self._met and self._last_evaluation is False and _success(record):
            self._break(rule, number, None, "the target reached")

    def _nth(self, rule: Rule) -> int:
        """How many records of the rule's key came since the last record of ``nth_since``."""
        anchor = self._seen.get(rule.nth_since or "")
        restarts = anchor.count if anchor else 0
        known, count = self._series.get(rule.code, (restarts, 0))
        count = count if known == restarts else 0
        self._series[rule.code] = (restarts, count + 1)
        return count

    def _reach(self, compiled: CompiledRule, record: Record, number: int) -> None:
        assert compiled.reaches  # noqa: S101
        try:
            self._last_evaluation = bool(compiled.reaches(record, self._seen))
            if self._last_evaluation:
                self._met.add(compiled.rule.code)
        except Exception as error:  # noqa: BLE001 - the official checker dies, whatever it is
            self._die(f"line {self._line_of(number)}: {type(error).__name__}: {error}")
            if compiled.rule.code not in self._incomparable:
                self._incomparable.add(compiled.rule.code)  # once is enough
                needed = needed_in_words(compiled.rule.reaches or {})
                self._break(compiled.rule, number, record.value, needed)

    def _join(self, joiner: Joiner, record: Record, number: int) -> None:
        try:
            joiner.see(record, number)
        except Exception as error:  # noqa: BLE001 - the official checker dies, whatever it is
            self._die(f"line {self._line_of(number)}: {type(error).__name__}: {error}")
            rule = self._table.keys[joiner.key].rules[0].rule
            self._break(rule, number, record.metadata, f"metadata with {joiner.by}")

    def _die(self, reason: str) -> None:
        self.died = self.died or reason

    # ---- the run at its end ---------------------------------------------------------------

    @property
    def reached(self) -> bool | None:
        """Whether every target was met by some record; None where there is none to meet."""
        asked = [each.rule.code for each in self._table.concluded if each.reaches]
        return not self.died and all(code in self._met for code in asked) if asked else None

    def finish(self, success: bool, unofficial: Iterable[str]) -> None:
        """Ask what only the whole log can answer.

        ``success`` is what ``run_stop`` says; ``unofficial`` are keys of records that stand in
        the log but that the official parser does not read. What is found now is ``Pending``,
        unless no later record could have mended it.
        """
        self._ended = True
        if self._joiner:
            for record, number in self._joiner.records():
                self._take(record, number)
        for refused in self._refused:
            self._refuse(*refused)
        self._count(set(unofficial))
        for compiled in self._table.concluded:
            if logged := self._seen.get(compiled.rule.key):
                self._finish_logged(compiled, logged, success)

    def _count(self, hidden: set[str]) -> None:
        table, seen = self._table, self._seen
        well = table.needed <= seen.keys() and all(
            [seen[key].count == 1 for key in table.once]  # noqa: C419 - twice as fast
        )
        for compiled in table.intricate if well else table.counted:
            rule, key = compiled.rule, compiled.rule.key
            logged = self._seen.get(key)
            if isinstance(rule.occurs, Mapping) and "or" in rule.occurs:
                pair = {key, rule.occurs["or"]}
                if not pair & self._seen.keys():
                    self._missing(rule, " or ".join(sorted(pair)), bool(pair & hidden))
            elif isinstance(rule.occurs, Mapping):
                self._count_exactly(rule, logged, rule.occurs)
            elif rule.occurs and logged is None:
                self._missing(rule, key, key in hidden)
            elif rule.occurs == "once" and logged and logged.count > 1:
                self._repeated(rule, logged)

    def _refuse(
        self, compiled: CompiledRule, given: tuple[Any, ...], value: Any, number: int
    ) -> None:
        """A formula did not hold; if it does of the final values, only the order is at fault."""
        assert compiled.formula  # noqa: S101
        rule = compiled.rule
        names = compiled.formula.names
        keys = self._seen.keys() & names
        pairs = zip(names, given, strict=False)  # its members stand behind
        final = [self._seen[name].last if name in keys else own for name, own in pairs]
        if rule.basis is Basis.BOTH and _true(compiled.formula, (*final, *given[len(names) :])):
            hint = f"log {' and '.join(sorted(keys))} before it: the checker reads in order"
            rule = replace(rule, basis=Basis.OFFICIAL, hint=rule.hint or hint)
        settled = self._joiner is None or rule.key != self._joiner.key
        self._break(rule, number, value, str(rule.formula), settled=settled)

    def _finish_logged(self, compiled: CompiledRule, logged: Logged, success: bool) -> None:
        rule = compiled.rule
        if compiled.reaches and rule.code not in self._met | self._incomparable:
            self._missed(rule, logged, success)
        if rule.tensors is not None:
            self._compare_tensors(rule, logged, compiled.tensors)
        if compiled.formula and not compiled.in_passing and self._known(rule):
            last = Record(rule.key, 0, logged.last, logged.metadata)
            if not _true(compiled.formula, compiled.formula.given(last, self._seen)):
                self._break(rule, logged.last_number, logged.last, str(rule.formula))

    def _known(self, rule: Rule) -> bool:
        """Whether a formula has what it needs; what is missing is another rule's finding."""
        return names_in(rule.formula or "") - {"value"} <= self._seen.keys()

    def _missing(self, rule: Rule, what: str, hidden: bool) -> None:
        times = "once" if rule.occurs == "once" else "at least once"
        cut_off = rule.key in _AT_THE_END and "run_stop" not in self._seen
        if rule.basis is Basis.BOTH and (hidden or cut_off):
            rule = replace(rule, basis=Basis.OFFICIAL)
        note = "stands only where the checker does not read it" if hidden else "is not logged"
        self._break(rule, None, None, f"logged {times}", f"{what} {note}, needed {times}")

    def _count_exactly(self, rule: Rule, logged: Logged | None, limits: Mapping[str, Any]) -> None:
        """``at_least`` and ``at_most`` so many records, equal or not."""
        count = logged.count if logged else 0
        needed = f"logged {needed_in_words(limits)} times"
        if not holds(count, limits):
            excess = count > limits.get("at_most", count)
            last = logged.last_number if logged and excess else None
            message = f"{rule.key} is logged {count} times: needed {needed_in_words(limits)}"
            self._break(rule, last, count, needed, message, settled=excess)

    def _repeated(self, rule: Rule, logged: Logged) -> None:
        first = self._line_of(logged.first_number)
        times = f"{rule.key} is logged {logged.count} times, first in line {first}"
        if logged.same:
            rule = replace(rule, severity=Severity.NOTE, basis=Basis.ADVICE)
            times += ", always with the same value"
        else:
            times += ", with different values"
        message = f"{times}: needed once"
        settled = not logged.same
        self._break(rule, logged.last_number, logged.last, "logged once", message, settled=settled)

    def _missed(self, rule: Rule, logged: Logged, success: bool) -> None:
        """The target was not met; the rules forgive one such run, unless it claims success."""
        if not success and rule.basis is Basis.BOTH:
            rule = replace(rule, basis=Basis.OFFICIAL)
        needed = needed_in_words(rule.reaches or {})
        message = (
            f"{rule.key} never reaches the target: {shown(logged.last)} at last, needed {needed}"
        )
        self._break(rule, logged.last_number, logged.last, needed, message)

    def _compare_tensors(self, rule: Rule, logged: Logged, needed: frozenset[str]) -> None:
        if wrong := self._tensors.compared(needed):
            message = f"{rule.key} must list each tensor of the model once: {wrong}"
            asked, settled = f"{len(needed)} tensors", self._tensors.has_too_many(needed)
            self._break(rule, logged.last_number, None, asked, message, settled=settled)

    def _break(
        self,
        rule: Rule,
        number: int | None,
        found: Any,
        needed: str,
        message: str | None = None,
        *,
        settled: bool = False,
    ) -> None:
        needed = rule.needed or needed
        subject = f"{rule.key} is {shown(found)}" if found is not None else rule.key
        kind = Pending if self._ended and not settled else Finding
        finding = kind(
            code=rule.code,
            message=message or rule.message or f"{subject}, needed {needed}",
            path=self._path,
            line=None if number is None else self._line_of(number),
            severity=rule.severity,
            basis=rule.basis,
            found=found,
            expected=needed,
            hint=rule.hint,
            source=rule.source,
        )
        self._report(finding)


def _passes(asked: Asked | CompiledRule, record: Record, seen: Seen) -> bool:
    try:
        return asked.passes is None or bool(asked.passes(record, seen))
    except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
        return False


def _first_failed(checks: Iterable[Check], record: Record, seen: Seen) -> Check:
    """The first check that a record fails; one that it passes in another order is the last."""
    for check in checks:
        try:
            if not check.test(record, seen):
                break
        except Exception:  # noqa: BLE001 - as officially, what cannot be compared fails
            break
    return check


def _true(formula: Formula, given: tuple[Any, ...], without_answer: bool = False) -> bool:
    try:
        return formula.holds(given)
    except NoAnswerError:
        return without_answer


def _success(record: Record) -> bool:
    return isinstance(record.metadata, dict) and record.metadata.get("status") == "success"
