"""Waivers: findings that somebody approved. They are told in every report, but are no errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.config import WaiverConfig
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts
from mlperf_pkg.run.model import Run


def today() -> str:
    """The day it is, in UTC."""
    return datetime.now(UTC).date().isoformat()


class Waivers(Struct, frozen=True):
    """The waivers of the file ``origin`` that hold on the day ``on`` (ISO 8601)."""

    listed: tuple[WaiverConfig, ...] = ()
    origin: str = ""
    on: str = field(default_factory=today)

    def check_codes(self) -> None:
        """Refuse codes that no finding can have.

        Raises:
            UserError: there is such a code; the line and the nearest one are named.
        """
        if not self.listed:
            return
        from mlperf_pkg.rulebook.explain.codes import known_code  # noqa: PLC0415 - reads every explanation

        for given in self.listed:
            try:
                known_code(given.code)
            except UserError as error:
                raise UserError(f"{self.origin}:{given.line}: {error}") from error

    def on_findings(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings, those with a waiver marked so."""
        return tuple(map(self._on_finding, findings)) if self.listed else tuple(findings)

    def on_run(self, run: Run) -> Run:
        """The run with its findings waived."""
        if not self.listed:
            return run
        findings = self.on_findings(run.findings)
        return replace(run, findings=findings, verdicts=_again(run.verdicts, findings))

    def on_system(self, system: SystemFile) -> SystemFile:
        """The system description with its findings waived."""
        if not self.listed:
            return system
        return replace(system, findings=self.on_findings(system.findings))

    def on_set(self, result: SetResult) -> SetResult:
        """The result set with its findings waived; those of its runs are so already."""
        if not self.listed:
            return result
        findings = self.on_findings(result.findings)
        row, told = result.row, [*findings, *result.run_findings]
        passed = Verdict.NOT_CHECKED if row.runs_required is None else Verdict.PASS
        row = replace(row, verdict=_again(row.verdict, told, passed))
        return replace(result, findings=findings, row=row)

    def stale(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """What is to be said of the waivers themselves, after all ``findings`` are known."""
        told = list(findings)
        for given in self.listed:
            if given.waiver.until < self.on:
                yield self._about(given, "WAIVE101", f"this waiver ended on {given.waiver.until}")
            elif not any(_covers(given, finding) for finding in told):
                yield self._about(
                    given, "WAIVE102", f"no finding {given.code.upper()} in {given.path} is waived"
                )

    def _on_finding(self, finding: Finding) -> Finding:
        for given in self.listed:
            if given.waiver.until >= self.on and _covers(given, finding):
                return replace(finding, waiver=given.waiver)
        return finding

    def _about(self, given: WaiverConfig, code: str, message: str) -> Finding:
        return Finding(
            code=code,
            message=message,
            path=self.origin,
            line=given.line,
            severity=Severity.WARNING,
            basis=Basis.ADVICE,
            hint="take it out, or have it approved again",
            source="mlperf-pkg: waivers",
        )


def _covers(given: WaiverConfig, finding: Finding) -> bool:
    """By code, and by the whole path, its last parts, or a folder above it."""
    if given.code.upper() != finding.code:
        return False
    pattern = given.path.rstrip("/")
    forms = (pattern, f"*/{pattern}", f"{pattern}/*", f"*/{pattern}/*")
    return any(fnmatchcase(finding.path, form) for form in forms)


def _again(
    verdicts: Verdicts, findings: Iterable[Finding], passed: Verdict = Verdict.PASS
) -> Verdicts:
    """The verdicts once findings are waived: only that of the rules can change, to ``passed``."""
    if verdicts.rules is not Verdict.FAIL or any(f.fails(Basis.RULES) for f in findings):
        return verdicts
    return replace(verdicts, rules=passed)
