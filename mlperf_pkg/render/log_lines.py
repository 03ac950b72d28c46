"""A report as plain log lines, one per finding: what scripts search with grep."""

from __future__ import annotations

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import findings, headings
from mlperf_pkg.render.view import View
from mlperf_pkg.results.report import Report

_LEVELS = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}


def log(report: Report, view: View) -> str:
    """Render ``LEVEL - text`` lines, as the official tools do: round, findings, verdicts."""
    lines = [("INFO", headings.round_in_words(report))]
    if not view.quiet:
        lines += [
            (level_of(finding), in_line(finding))
            for finding in findings.shown(report.findings, view)
        ]
    for basis in (Basis.OFFICIAL, Basis.RULES):
        lines.append(("INFO", f"{basis} verdict: {headings.verdict_sentence(report, basis)}"))
    return "".join(f"{level} - {visible(text)}\n" for level, text in lines)


def level_of(finding: Finding) -> str:
    """Return the level of a finding; a waived one is for information."""
    return "INFO" if finding.waiver else _LEVELS[finding.severity]


def in_line(finding: Finding) -> str:
    """Return a finding in one line: its place, code, basis and message."""
    waived = "waived: " if finding.waiver else ""
    where = findings.location(finding)
    return f"{where}: {waived}{findings.label(finding)}: {findings.sentence(finding)}"
