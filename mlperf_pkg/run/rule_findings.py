"""The findings about the rules that a log breaks."""

from collections.abc import Callable, Iterable
from typing import Any

from mlperf_pkg.findings import Basis, Finding, Pending
from mlperf_pkg.log.record import printable
from mlperf_pkg.rulebook.formula import Operands
from mlperf_pkg.rulebook.model import Rule

_ALL_VERDICTS = frozenset({Basis.OFFICIAL, Basis.RULES})
_VERDICTS = {Basis.BOTH: _ALL_VERDICTS, Basis.OFFICIAL: frozenset({Basis.OFFICIAL})}
"""The verdicts that an error of a basis fails; of any other basis, that of the rules."""


class RuleFindings:
    """The reporter of the broken rules of one log; ``report`` receives the findings.

    ``line_of`` returns the line of a record by its number in the log. ``crash`` says why the
    official checker crashes on this log, if a rule is the reason. ``silent`` says that no rule was
    broken so far.
    """

    def __init__(
        self, path: str, report: Callable[[Finding], None], line_of: Callable[[int], int]
    ) -> None:
        """Start at the head of the log ``path``."""
        self.crash: str | None = None
        self.silent = True
        self.line_of = line_of
        self._path = path
        self._report = report
        self._ended = False
        self._broken: dict[str, set[Basis]] = {}
        self._wordings: dict[str, str] = {}  # of what formulas expect

    def mark(self, key: str, basis: Basis) -> None:
        """Note an error in the value of a key, after which its formulas are silent."""
        self._broken.setdefault(key, set()).update(_VERDICTS.get(basis, {Basis.RULES}))

    def failed_by(self, key: str) -> set[Basis]:
        """Return the verdicts, OFFICIAL or RULES, that errors in the value of a key fail."""
        return self._broken.get(key, set())

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
        self.silent = False
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
        """Report a formula that does not hold for the ``operands`` of a record with a ``value``.

        Nothing is reported of one whose other keys are wrong themselves, if that fails as much.
        """
        if self._is_explained(rule, operands.values):
            return
        # Most logs break no formula, and need none of what puts one into words.
        from mlperf_pkg.rulebook.expectation import breach_of  # noqa: PLC0415

        breaking, expected, words = breach_of(rule, operands, value, self._wordings)
        message = rule.message or words
        self.add(rule, number, value=breaking, expected=expected, message=message, kind=kind)

    def _is_explained(self, rule: Rule, operands: Iterable[str]) -> bool:
        """Return whether errors in the other keys of a formula fail every verdict that it fails."""
        failed: set[Basis] = set()
        for key in operands:
            failed |= self.failed_by(key)
        return failed.issuperset(_VERDICTS.get(rule.basis, {Basis.RULES}))

    def crash_at(self, number: int, reason: str) -> None:
        """Note why the official checker crashes at a record; only the first crash counts."""
        if self.crash is None:
            self.crash = f"line {self.line_of(number)}: {reason}"
