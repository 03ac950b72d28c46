"""What the official tools say of a check, from its report."""

from __future__ import annotations

from collections.abc import Iterable

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.findings import Basis, Finding, Severity, Unchecked
from mlperf_pkg.results.report import Report

_CRASHES = frozenset(
    {
        *("LOG113", "RCP103", "SET104", "SET110"),
        *("SYS001", "SYS002", "SYS003", "SYS004", "SYS102"),
        *("TREE103", "TREE104", "TREE106", "TREE107", "TREE108", "TREE109", "POW104", "POW105"),
    }
)
"""Codes of findings on which an official tool raises an exception."""
_SUMMARIZER_CRASHES = frozenset({"LOG113", "SET104", "TREE107", "TREE108", "POW105", "SET130"})
"""Codes of findings on which the summarizer raises an exception, besides those on descriptions."""


def rejects(findings: Iterable[Finding]) -> bool:
    """Return whether the official package checker finds errors, or something was not checked."""
    return any(
        finding.fails(Basis.OFFICIAL) or isinstance(finding, Unchecked)
        for finding in findings
        if not finding.code.startswith("REPO")  # of the repository checker
    )


def crashes(findings: Iterable[Finding]) -> bool:
    """Return whether an official tool raises an exception."""
    return bool(crash_paths(findings))


def crash_paths(findings: Iterable[Finding]) -> set[str]:
    """Return the paths at which an official tool raises an exception."""
    return _paths(f for f in findings if f.code in _CRASHES and f.fails(Basis.OFFICIAL))


def package_crash_paths(checked: Checked) -> set[str]:
    """Return the paths at which the package checker raises an exception.

    It reads the division from the description of each system with results, even before round 1.0.
    """
    undivided = {
        context.path
        for context in checked.contexts
        if context.system and "division" not in (context.system.contents or {"division"})
    }
    return crash_paths(checked.report.findings) | undivided


def summary_crash_paths(findings: Iterable[Finding]) -> set[str]:
    """Return the paths in result sets at which the summarizer raises an exception."""
    return _paths(f for f in findings if f.code in _SUMMARIZER_CRASHES)


def _paths(findings: Iterable[Finding]) -> set[str]:
    return {place.path for finding in findings for place in finding.occurrences}


def warned_runs(report: Report) -> set[str]:
    """Return the logs that ``--werror`` rejects: a key is logged several times with one value."""
    return {
        place.path
        for finding in report.findings
        if finding.severity is Severity.NOTE and finding.expected == "logged once"
        for place in finding.occurrences
    }
