"""Headings of groups of results, and a report summarised in words."""

from __future__ import annotations

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.render.findings import counts
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow

NO_RESULT_SET = "no result set: no log names its benchmark"

_MEANINGS = {
    (Basis.OFFICIAL, Verdict.PASS): "{reference} accepts this",
    (Basis.OFFICIAL, Verdict.FAIL): "{reference} rejects this",
    (Basis.OFFICIAL, Verdict.NOT_CHECKED): "the verdict of {reference} is unknown",
    (Basis.RULES, Verdict.PASS): "no violation of the written rules found",
    (Basis.RULES, Verdict.FAIL): "violates the written rules",
    (Basis.RULES, Verdict.NOT_CHECKED): "the rulebook does not cover this",
}


def system_title(row: ResultSetRow, report: Report) -> str:
    """Return the system of a result set, with the details that distinguish it in the report."""
    submitters = (other.submitter for other in report.result_sets)
    first = next(submitters, None)
    differ = any(submitter != first for submitter in submitters)
    owner = f"{row.submitter}: " if row.submitter and differ else ""
    system = row.system or "unnamed system"
    details = [row.division or "no division"]
    if row.submitter is None and row.path != ".":
        details.append(f"in {row.path}")
    if report.round is None:
        details.append(f"round {row.round}")
    return f"{owner}{system} ({', '.join(details)})"


def verdict_in_words(report: Report, basis: Basis) -> str:
    """Return what a verdict (OFFICIAL or RULES) means, and how much was not checked."""
    verdict: Verdict = getattr(report.verdict, basis)
    if verdict is Verdict.NOT_CHECKED and any(map(_not_as_packed, report.findings)):
        return "not confirmed as the files that were packed"
    meaning = _MEANINGS[basis, verdict].format(reference=report.tool["reference"])
    rows = report.result_sets or report.runs
    unchecked = sum(getattr(row.verdict, basis) is Verdict.NOT_CHECKED for row in rows)
    if not unchecked or verdict is Verdict.NOT_CHECKED:
        return meaning
    noun = "result set" if report.result_sets else "log"
    return f"{meaning}; {unchecked} of {wording.counted(len(rows), noun)} not checked"


def _not_as_packed(finding: Finding) -> bool:
    return finding.code.startswith("PACK") and finding.severity is Severity.ERROR


def counts_in_words(report: Report) -> str:
    """Return ``2 errors, 1 warning, 0 notes``, and how many were waived or hidden."""
    numbers = counts(report.findings)
    parts = [wording.counted(numbers[severity], severity.value) for severity in Severity]
    if waived := sum(finding.waiver is not None for finding in report.findings):
        parts.append(f"{waived} waived")
    if report.hidden:
        parts.append(f"{wording.counted(report.hidden, 'finding')} hidden by --select or --ignore")
    return ", ".join(parts)


def round_in_words(report: Report) -> str:
    """Return the round and why it was chosen."""
    prefix = f"round {report.round}: " if report.round else ""
    return f"{prefix}{report.round_reason}"
