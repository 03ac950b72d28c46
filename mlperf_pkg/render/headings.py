"""What groups of results and whole reports are called."""

from __future__ import annotations

from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.render.findings import counts
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow

_SAYS = {
    (Basis.OFFICIAL, Verdict.PASS): "{reference} accepts this",
    (Basis.OFFICIAL, Verdict.FAIL): "{reference} rejects this",
    (Basis.OFFICIAL, Verdict.NOT_CHECKED): "{reference} was not reproduced here",
    (Basis.RULES, Verdict.PASS): "nothing against the written rules",
    (Basis.RULES, Verdict.FAIL): "against the written rules",
    (Basis.RULES, Verdict.NOT_CHECKED): "the rulebook does not cover this",
}


def system_title(row: ResultSetRow, report: Report) -> str:
    """The system of a result set, with what tells it from the others of the report."""
    named = (each.submitter for each in report.result_sets)
    first = next(named, None)
    several = any(each != first for each in named)
    owner = f"{row.submitter}: " if row.submitter and several else ""
    system = row.system or "no system named"
    about = [row.division or "no division"]
    if row.submitter is None and row.path != ".":
        about.append(f"in {row.path}")
    if report.round is None:
        about.append(f"round {row.round}")
    return f"{owner}{system} ({', '.join(about)})"


def verdict_in_words(report: Report, basis: Basis) -> str:
    """What a verdict (OFFICIAL or RULES) means, and of how much it does not speak."""
    verdict: Verdict = getattr(report.verdict, basis)
    if verdict is Verdict.NOT_CHECKED and any(map(_not_as_packed, report.findings)):
        return "not known to be the files that were packed"
    said = _SAYS[basis, verdict].format(reference=report.tool["reference"])
    rows = report.result_sets or report.runs
    open_ = sum(getattr(row.verdict, basis) is Verdict.NOT_CHECKED for row in rows)
    if not open_ or verdict is Verdict.NOT_CHECKED:
        return said
    noun = "result set" if report.result_sets else "log"
    return f"{said}; {open_} of {wording.counted(len(rows), noun)} not checked"


def _not_as_packed(finding: Finding) -> bool:
    return finding.code.startswith("PACK") and finding.severity is Severity.ERROR


def counts_in_words(report: Report) -> str:
    """``2 errors, 1 warning, 0 notes``, and what was waived or left out."""
    found = counts(report.findings)
    told = [wording.counted(found[severity], severity.value) for severity in Severity]
    if waived := sum(finding.waiver is not None for finding in report.findings):
        told.append(f"{waived} waived")
    if report.hidden:
        told.append(f"{wording.counted(report.hidden, 'finding')} left out by --select or --ignore")
    return ", ".join(told)


def round_in_words(report: Report) -> str:
    """The round and why it was chosen."""
    named = f"round {report.round}: " if report.round else ""
    return f"{named}{report.round_reason}"
