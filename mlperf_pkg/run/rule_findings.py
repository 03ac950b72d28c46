"""Report broken rules as findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlperf_pkg.findings import Finding, Pending
from mlperf_pkg.log.record import printable
from mlperf_pkg.rulebook.model import Rule


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
