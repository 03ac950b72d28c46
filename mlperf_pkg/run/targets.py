"""The targets of a run: which evaluation reached them first, and which missed them last."""

from typing import Any

from msgspec.structs import replace

from mlperf_pkg.findings import Basis
from mlperf_pkg.log.record import Record
from mlperf_pkg.rulebook.constraints import needed_in_words
from mlperf_pkg.rulebook.formula import LoggedKey, Seen, number_if_none
from mlperf_pkg.rulebook.model import Rule
from mlperf_pkg.rulebook.table import RuleTable, Target
from mlperf_pkg.run.convergence import reason_of
from mlperf_pkg.run.rule_findings import RuleFindings


class Targets:
    """Compares the evaluations of one log with its targets: the rules with ``reaches``.

    ``reached_number`` is the number of the record that reached the last target, ``reached_ms`` the
    time of the first record that reached one; both are None if none did. ``reached_late`` says that
    the latter is logged after ``run_stop``.
    """

    def __init__(self, table: RuleTable, findings: RuleFindings) -> None:
        """Start at the head of a log with the rules of a ``table``."""
        self.reached_number: int | None = None
        self.reached_ms: float | None = None
        self.reached_late = False
        self._findings = findings
        self._codes = [compiled.rule.code for compiled in table.concluded if compiled.reaches]
        # Codes of rules: a record reached their target, or could not be compared with it.
        self._met: set[str] = set()
        self._incomparable: set[str] = set()
        self._last_missed: tuple[Rule, Any] | None = None

    @property
    def reached(self) -> bool | None:
        """Whether some record met each target; None if there are no targets."""
        if not self._codes:
            return None
        return self._findings.crash is None and self._met.issuperset(self._codes)

    def compare(self, target: Target, record: Record, number: int, seen: Seen) -> None:
        """Compare a record with the target of a rule."""
        rule, reaches = target
        try:
            is_reached = reaches(record, seen)
        except Exception as error:  # noqa: BLE001 - on any error, the official checker crashes
            self._findings.crash_at(number, reason_of(error))
            if rule.code not in self._incomparable:
                self._incomparable.add(rule.code)  # once is enough
                expected = _target_in_words(rule)
                kind = number_if_none(record.value, expected)
                message = f"{rule.key} is {{found}}; expected {kind}{{expected}}"
                self._findings.add(
                    rule, number, value=record.value, expected=expected, message=message
                )
            return
        if not is_reached:
            self._last_missed = (rule, record.value)
            return
        self._last_missed = None
        self._met.add(rule.code)
        if self.reached_number is None and self.reached:
            self.reached_number = number
        if self.reached_ms is None:
            self.reached_ms = record.time_ms
            self.reached_late = "run_stop" in seen

    def check_success(self, rule: Rule, record: Record, number: int) -> None:
        """Report a success after an evaluation that missed a target which was reached before."""
        if self._last_missed is None:
            return
        target, value = self._last_missed
        metadata = record.metadata
        is_success = isinstance(metadata, dict) and metadata.get("status") == "success"
        if is_success and target.code in self._met:
            missed = (
                f"{rule.key} says success, but the evaluation before it has the value {{found}}"
            )
            expected = _target_in_words(target)
            message = f"{missed}; expected {number_if_none(value, expected)}{{expected}}"
            self._findings.add(rule, number, value=value, expected=expected, message=message)

    def check_reached(self, rule: Rule, logged: LoggedKey, seen: Seen, *, success: bool) -> None:
        """Report a missed target; the rules forgive one such run, unless it says success."""
        if rule.code in self._met or rule.code in self._incomparable:
            return
        if not success:
            if rule.basis is Basis.RULES:
                return
            if rule.basis is Basis.BOTH:
                rule = replace(rule, basis=Basis.OFFICIAL)
        expected = _target_in_words(rule)
        last = "ends at {found}"
        size = seen.get("global_batch_size")
        if size and isinstance(size.last, int) and "batch size" in expected:
            last += f" at batch size {size.last:,}"
        needed = f"{number_if_none(logged.last, expected)}{{expected}}"
        message = f"{rule.key} never reaches the target, and {last}; expected {needed}"
        number = logged.last_number
        self._findings.add(rule, number, value=logged.last, expected=expected, message=message)


def _target_in_words(rule: Rule) -> str:
    return rule.needed or needed_in_words(rule.reaches or {})
