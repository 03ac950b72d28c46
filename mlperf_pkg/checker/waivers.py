"""Waivers: approved findings, which are reported but do not fail the check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.config import WaiverConfig
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts, without_pass
from mlperf_pkg.rulebook.load import finding_of
from mlperf_pkg.run.model import Run

if TYPE_CHECKING:
    from mlperf_pkg.checks.descriptions import SystemFile
    from mlperf_pkg.checks.result_sets import SetResult


def today() -> str:
    """Return the current day in UTC (ISO 8601)."""
    return datetime.now(UTC).date().isoformat()


class Waivers(Struct, frozen=True):
    """The waivers of the file ``origin``, and the ``day`` on which they apply (ISO 8601)."""

    configs: tuple[WaiverConfig, ...] = ()
    origin: str = ""
    day: str = field(default_factory=today)

    def refuse_unknown_codes(self) -> None:
        """Check that every code exists.

        Raises:
            UserError: a code does not exist; the message has its line and a similar code.
        """
        if not self.configs:
            return
        from mlperf_pkg.rulebook.explain import known_code  # noqa: PLC0415 - reads every explanation

        for config in self.configs:
            try:
                known_code(config.code)
            except UserError as error:
                raise UserError(f"{self.origin}:{config.line}: {error}") from error

    def waive(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings, each with its waiver if it has one."""
        return tuple(map(self._waive_finding, findings)) if self.configs else tuple(findings)

    def waive_run(self, run: Run) -> Run:
        """Return the run with its findings waived."""
        if not self.configs:
            return run
        findings = self.waive(run.findings)
        return replace(run, findings=findings, verdicts=_waived_verdicts(run.verdicts, findings))

    def waive_system(self, system: SystemFile) -> SystemFile:
        """Return the system description with its findings waived."""
        return replace(system, findings=self.waive(system.findings))

    def waive_set(self, result: SetResult) -> SetResult:
        """Return the result set with its own findings waived; those of its runs already are."""
        if not self.configs:
            return result
        findings = self.waive(result.findings)
        row = result.row
        passed = Verdict.NOT_CHECKED if row.runs_required is None else Verdict.PASS
        verdict = _waived_verdicts(row.verdict, [*findings, *result.run_findings], passed)
        return replace(result, findings=findings, row=replace(row, verdict=verdict))

    def stale(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Report waivers that have ended, or that match none of all ``findings``."""
        all_findings = list(findings)
        for config in self.configs:
            if config.waiver.until < self.day:
                code = "WAIVE101"
                message = f"this waiver ended on {config.waiver.until}"
            elif not any(_matches(config, finding) for finding in all_findings):
                code = "WAIVE102"
                message = f"this waiver matches no finding {config.code.upper()} in {config.path}"
            else:
                continue
            yield finding_of(code, message, self.origin, line=config.line)

    def _waive_finding(self, finding: Finding) -> Finding:
        for config in self.configs:
            if config.waiver.until >= self.day and _matches(config, finding):
                return replace(finding, waiver=config.waiver)
        return finding


def _matches(config: WaiverConfig, finding: Finding) -> bool:
    """Return whether a waiver matches the code, and the path, its last parts or a folder above."""
    if config.code.upper() != finding.code:
        return False
    pattern = config.path.rstrip("/")
    forms = (pattern, f"*/{pattern}", f"{pattern}/*", f"*/{pattern}/*")
    return any(fnmatchcase(finding.path, form) for form in forms)


def _waived_verdicts(
    verdicts: Verdicts, findings: Iterable[Finding], passed: Verdict = Verdict.PASS
) -> Verdicts:
    """Return the verdicts after waiving, in which only that of the rules may become ``passed``."""
    findings = list(findings)
    if verdicts.rules is not Verdict.FAIL or any(f.fails(Basis.RULES) for f in findings):
        return verdicts
    return without_pass(replace(verdicts, rules=passed), findings)
