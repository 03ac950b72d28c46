"""The submitters of a round, and how they stand."""

from __future__ import annotations

from mlperf_pkg.commands.review.model import Cell, Round, Section, Table
from mlperf_pkg.findings import Finding, Severity, Verdict
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, description_path

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


def section(reviewed: Round) -> Section:
    """Return a table of all submitters, by name."""
    findings: dict[str, list[Finding]] = {}
    for finding in reviewed.report.findings:
        findings.setdefault(finding.about.partition("/")[0], []).append(finding)
    names = {submission.name: submission.place.label for submission in reviewed.submissions}
    rows = tuple(
        _row(reviewed, name, rows, findings.get(names.get(name, ""), []))
        for name, rows in reviewed.sets.items()
    )
    counts = (
        wording.counted(len(names), "submitter"),
        wording.counted(len(reviewed.report.systems), "system"),
        wording.counted(len(reviewed.report.result_sets), "result set"),
        wording.counted(len(reviewed.report.runs), "run"),
    )
    note = "Largest: accelerators of the largest system with results."
    table = Table("table", "Submitters", _COLUMNS, rows, note=note)
    return Section("submitters", "Submitters", (), (table,), (", ".join(counts),))


def _row(
    reviewed: Round, name: str, rows: tuple[ResultSetRow, ...], findings: list[Finding]
) -> tuple[Cell, ...]:
    systems = [reviewed.systems.get(description_path(row)) for row in rows]
    sizes = [system.accelerators for system in systems if system and system.accelerators]
    return (
        name,
        len({row.system for row in rows}),
        len(rows),
        max(sizes, default=None),
        ", ".join(sorted({row.division or wording.NOTHING for row in rows})),
        sum(row.verdict.official is Verdict.FAIL for row in rows),
        sum(row.verdict.rules is Verdict.FAIL for row in rows),
        sum(finding.severity is Severity.ERROR for finding in findings),
        sum(finding.severity is Severity.WARNING for finding in findings),
    )
