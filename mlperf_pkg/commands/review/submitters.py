"""The submitters of a round, with the numbers of their results, verdicts and findings."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.commands.review.model import Cell, Round, Section, Table
from mlperf_pkg.findings import Finding, Severity, Verdict
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, description_path
from mlperf_pkg.submission.membership import submitters

_COLUMNS = (
    "Submitter",
    "Systems",
    "Results",
    "Largest",
    "Divisions",
    "Official FAIL",
    "Rules FAIL",
    "Errors",
    "Warnings",
)


def submitters_section(reviewed: Round) -> Section:
    """Return a table of all submitters, by name, also of those without a result set."""
    labels = {submission.name: submission.place.label for submission in reviewed.submissions}
    rows = tuple(
        _submitter_row(
            reviewed,
            name,
            [row for spelling in spellings for row in reviewed.sets[spelling]],
            [f for spelling in spellings for f in _findings_about(reviewed, labels[spelling])],
        )
        for name, spellings in submitters(reviewed.sets).items()
    )
    note = "Largest: accelerators of the largest system with results."
    table = Table("table", "Submitters", _COLUMNS, rows, note=note)
    return Section("submitters", "Submitters", (), (table,), tuple(_numbers_in_words(reviewed)))


def _findings_about(reviewed: Round, label: str) -> list[Finding]:
    """Return the findings about a submission; all of them if the only one has no label."""
    findings = reviewed.report.findings
    return [f for f in findings if not label or f"{f.about}/".startswith(f"{label}/")]


def _numbers_in_words(reviewed: Round) -> Iterator[str]:
    report = reviewed.report
    names = submitters(name for name, rows in reviewed.sets.items() if rows)
    systems = {(row.submitter, row.system) for row in report.results}
    counts = (
        wording.counted(len(names), "submitter"),
        wording.counted(len(systems), "system"),
        wording.counted(len(report.results), "result set"),
        wording.counted(len(report.runs), "run"),
    )
    yield ", ".join(counts)
    verdicts = [row.verdict for row in report.result_sets]
    official = sum(verdict.official is Verdict.FAIL for verdict in verdicts)
    rules = sum(verdict.rules is Verdict.FAIL for verdict in verdicts)
    yield f"result sets that fail: {official} by the official verdict, {rules} by the rules"


def _submitter_row(
    reviewed: Round, name: str, rows: list[ResultSetRow], findings: list[Finding]
) -> tuple[Cell, ...]:
    systems = [reviewed.systems.get(description_path(row)) for row in rows]
    sizes = [system.accelerators for system in systems if system and system.accelerators]
    return (
        name,
        len({(row.submitter, row.system) for row in rows}),
        len(rows),
        max(sizes, default=None),
        ", ".join(sorted({row.division or wording.NOTHING for row in rows})),
        sum(row.verdict.official is Verdict.FAIL for row in rows),
        sum(row.verdict.rules is Verdict.FAIL for row in rows),
        sum(finding.severity is Severity.ERROR for finding in findings),
        sum(finding.severity is Severity.WARNING for finding in findings),
    )
