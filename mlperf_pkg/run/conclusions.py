"""Check the whole log of a run at its end."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.findings import Basis, Severity
from mlperf_pkg.log.record import Record, shown
from mlperf_pkg.rulebook.constraints import holds as meets
from mlperf_pkg.rulebook.constraints import needed_in_words
from mlperf_pkg.rulebook.formula import Formula, Operands, names_in
from mlperf_pkg.rulebook.logged import Logged
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import CompiledRule, RuleTable
from mlperf_pkg.run.rules import Refusal, RuleChecker, target_in_words

_CLOCKS_MS = 1000.0  # by which the clocks of the processes of a run may differ
# Keys that a truncated log lacks. By the rules its run did not converge, which is forgiven once.
_AT_THE_END = frozenset(
    {"block_stop", "epoch_stop", "eval_accuracy", "eval_start", "eval_stop", "run_stop"}
)


def conclude(rules: RuleChecker, *, success: bool, hidden: Set[str]) -> None:
    """Check the rules that depend on the whole log.

    ``success`` is the status in ``run_stop``; ``hidden`` are the keys of records that the log holds
    but that the official parser does not read. Findings are now ``Pending``, unless no later
    record could have prevented them.
    """
    rules.findings.ended = True
    rules.take_joined()
    conclusions, table = _Conclusions(rules, hidden), rules.table
    for refusal in rules.evidence.refusals:
        of_joined = table.joined is not None and refusal.compiled.rule.key == table.joined.key
        conclusions.refuse(refusal, settled=not of_joined)
    conclusions.count(table)
    conclusions.conclude(table, success=success)


class _Conclusions:
    """Checks the rules that depend on the whole log, at its end."""

    def __init__(self, rules: RuleChecker, hidden: Set[str]) -> None:
        self._evidence = rules.evidence
        self._seen = rules.evidence.seen
        self._findings = rules.findings
        self._hidden = hidden

    def refuse(self, refusal: Refusal, *, settled: bool) -> None:
        """Report a formula that does not hold for a record.

        If it holds for the final values of the run, only the order of the records is wrong.
        """
        formula, rule = refusal.compiled.formula, refusal.compiled.rule
        assert formula  # noqa: S101
        final = {key: self._seen[key].last for key in self._seen.keys() & formula.names}
        operands = refusal.operands.with_values(final)
        changed = operands != refusal.operands
        if changed and rule.basis is Basis.BOTH and formula.evaluate(operands):
            keys = " and ".join(sorted(final))
            hint = f"log {keys} before it: the official checker reads in order"
            rule = replace(rule, basis=Basis.OFFICIAL, hint=rule.hint or hint)
        self._report_formula(rule, refusal.number, refusal.operands, refusal.value, settled=settled)

    def count(self, table: RuleTable) -> None:
        """Check how often keys are logged."""
        for compiled in table.counting.to_check(self._seen):
            rule, occurs = compiled.rule, compiled.rule.occurs
            logged = self._seen.get(rule.key)
            if isinstance(occurs, dict) and "or" in occurs:
                self._either(rule, frozenset({rule.key, occurs["or"]}))
            elif isinstance(occurs, dict):
                self._count_within(rule, logged, occurs)
            elif logged is None:
                self._missing(rule, rule.key, hidden=rule.key in self._hidden)
            elif occurs == "once" and logged.count > 1:
                self._repeated(rule, logged)

    def conclude(self, table: RuleTable, *, success: bool) -> None:
        """Check the other rules; ``success`` is the status in ``run_stop``."""
        for compiled in table.concluded:
            if logged := self._seen.get(compiled.rule.key):
                self._conclude(compiled, logged, success=success)

    # ---- how often a key is logged --------------------------------------------------------

    def _either(self, rule: Rule, keys: frozenset[str]) -> None:
        if not keys & self._seen.keys():
            self._missing(rule, " or ".join(sorted(keys)), hidden=bool(keys & self._hidden))

    def _missing(self, rule: Rule, subject: str, *, hidden: bool) -> None:
        times = "once" if rule.occurs == "once" else "at least once"
        cut_off = rule.key in _AT_THE_END and "run_stop" not in self._seen
        if rule.basis is Basis.BOTH and (hidden or cut_off):
            rule = replace(rule, basis=Basis.OFFICIAL)
        ignored = "appears only on lines the official checker ignores"
        message = f"{subject} {ignored if hidden else 'is not logged'}; expected {times}"
        self._findings.add(rule, None, expected=f"logged {times}", message=message)

    def _count_within(self, rule: Rule, logged: Logged | None, limits: Mapping[str, Any]) -> None:
        """Check ``at_least`` and ``at_most`` of the number of records, equal or not."""
        count = logged.count if logged else 0
        if meets(count, limits):
            return
        excess = count > limits.get("at_most", count)
        expected = needed_in_words(limits)
        self._findings.add(
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
            line = self._findings.line_of(logged.first_number)
            first, last = shown(logged.first), shown(logged.last)
            rule = replace(rule, hint=rule.hint or f"{first} on line {line}, {last} in the end")
        self._findings.add(
            rule,
            logged.last_number,
            value=logged.count,
            expected="logged once",
            message=f"{_times_logged(rule, logged.count)}, {values}; expected once",
            settled=not logged.same,
        )

    # ---- targets, tensors and formulas ----------------------------------------------------

    def _conclude(self, compiled: CompiledRule, logged: Logged, *, success: bool) -> None:
        rule, evidence = compiled.rule, self._evidence
        if compiled.reaches and rule.code not in evidence.met | evidence.incomparable:
            self._missed(rule, logged, success=success)
        if rule.tensors is not None:
            self._compare_tensors(rule, logged, compiled.tensors)
        if rule.no_later_than:
            self._compare_start(rule, logged)
        if rule.covers_target and success:
            self._compare_stop(rule, logged)
        if compiled.formula and not compiled.in_passing:
            self._evaluate(rule, compiled.formula, logged)

    def _missed(self, rule: Rule, logged: Logged, *, success: bool) -> None:
        """Report a missed target; the rules forgive one such run, unless it says success."""
        if not success and rule.basis is Basis.BOTH:
            rule = replace(rule, basis=Basis.OFFICIAL)
        expected = target_in_words(rule)
        subject = f"{rule.key} never reaches the target, the last value is {{found}}"
        message = f"{subject}; expected {{expected}}"
        self._findings.add(
            rule, logged.last_number, value=logged.last, expected=expected, message=message
        )

    def _compare_start(self, rule: Rule, logged: Logged) -> None:
        """Report a key whose first record is later than that of a key of ``no_later_than``."""
        keys = [key for key in rule.no_later_than if key in self._seen]
        key = min(keys, key=lambda key: self._seen[key].earliest_ms, default=rule.key)
        late_ms = logged.earliest_ms - self._seen[key].earliest_ms
        if late_ms > _CLOCKS_MS:
            self._report_time(rule, logged, late_ms, "after", key)

    def _compare_stop(self, rule: Rule, logged: Logged) -> None:
        """Report a stop before the first evaluation that reached the target.

        There is no tolerance for clocks if the evaluation is logged after the stop, too.
        """
        reached_ms = self._evidence.reached_ms
        early_ms = 0.0 if reached_ms is None else reached_ms - logged.earliest_ms
        start = self._seen.get("run_start")
        is_backwards = start is not None and logged.earliest_ms < start.earliest_ms  # RUN155
        allowed_ms = 0.0 if self._evidence.reached_late else _CLOCKS_MS
        if early_ms > allowed_ms and not is_backwards:
            event = "the evaluation that reached the target"
            self._report_time(rule, logged, early_ms, "before", event)

    def _report_time(
        self, rule: Rule, logged: Logged, distance_ms: float, side: str, event: str
    ) -> None:
        limit = "no later" if side == "after" else "no earlier"
        self._findings.add(
            rule,
            logged.first_number,
            value=round(distance_ms / 1000, 3),
            expected=f"{limit} than {event}",
            message=f"{rule.key} is logged {{found:,.1f}} seconds {side} {event}; expected {limit}",
            settled=True,
        )

    def _compare_tensors(self, rule: Rule, logged: Logged, expected: frozenset[str]) -> None:
        tensors = self._evidence.tensors
        if differences := tensors.differences(expected):
            subject = f"{rule.key} does not list each tensor of the model once"
            self._findings.add(
                rule,
                logged.last_number,
                value=differences,
                expected=f"{len(expected)} tensors",
                message=f"{subject}: {{found:s}}; expected {{expected}}",
                settled=tensors.has_too_many(expected),
            )

    def _evaluate(self, rule: Rule, formula: Formula, logged: Logged) -> None:
        """Evaluate a formula on the final values; other rules report missing keys."""
        if not names_in(rule.formula or "") - {"value"} <= self._seen.keys():
            return
        last = Record(rule.key, 0, logged.last, logged.metadata)
        if not formula.answer(last, self._seen):
            operands = formula.operands(last, self._seen)
            if not rule.last or None not in operands.metadata.values():
                self._report_formula(rule, logged.last_number, operands, logged.last)

    def _report_formula(
        self,
        rule: Rule,
        number: int,
        operands: Operands,
        value: Any,
        *,
        settled: bool = False,
    ) -> None:
        # Most logs break no formula, and need none of what puts one into words.
        from mlperf_pkg.run.broken_formula import breach_of  # noqa: PLC0415

        breach = breach_of(rule, operands, value)
        self._findings.add(
            rule,
            number,
            value=breach.found,
            expected=breach.expected,
            message=rule.message or breach.message,
            settled=settled,
        )


def _times_logged(rule: Rule, count: int) -> str:
    return f"{rule.key} is logged {{found:,}} time" + ("" if count == 1 else "s")
