"""The findings about the rules that a log breaks."""

from collections.abc import Callable
from typing import Any

from mlperf_pkg.findings import Finding, Pending
from mlperf_pkg.log.record import printable
from mlperf_pkg.rulebook.formula import Operands
from mlperf_pkg.rulebook.model import Rule


class RuleFindings:
    """The reporter of the broken rules of one log; ``report`` receives the findings.

    ``line_of`` returns the line of a record by its number in the log. ``crash`` says why the
    official checker crashes on this log, if a rule is the reason.
    """

    def __init__(
        self, path: str, report: Callable[[Finding], None], line_of: Callable[[int], int]
    ) -> None:
        """Start at the head of the log ``path``."""
        self.crash: str | None = None
        self.line_of = line_of
        self._path = path
        self._report = report
        self._ended = False

    def end(self) -> None:
        """Begin with the findings that are made once the whole log was read."""
        self._ended = True

    def add(
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
        if not self._ended:
            kind = Finding
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

    def add_formula(
        self, rule: Rule, number: int, operands: Operands, value: Any, kind: type[Finding] = Pending
    ) -> None:
        """Report a formula that does not hold for the ``operands`` of a record with a ``value``."""
        # Most logs break no formula, and need none of what puts one into words.
        from mlperf_pkg.rulebook.expectation import breach_of  # noqa: PLC0415

        breaking, expected, words = breach_of(rule, operands, value)
        message = rule.message or words
        self.add(rule, number, value=breaking, expected=expected, message=message, kind=kind)

    def crash_at(self, number: int, reason: str) -> None:
        """Note why the official checker crashes at a record; only the first crash counts."""
        if self.crash is None:
            self.crash = f"line {self.line_of(number)}: {reason}"
