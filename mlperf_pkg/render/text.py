"""A report for a terminal or a pipe: tables, findings and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from mlperf_pkg.findings import Basis, Severity, Verdict, Verdicts
from mlperf_pkg.render import findings, headings
from mlperf_pkg.render.terminal import PLAIN, STYLES, Column, Group, Span, Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, SystemRow, folder, name

_Row = TypeVar("_Row")

_VERDICTS = (Column("Official", 11), Column("Rules", 11))
_SETS = (
    Column("Result sets"),
    Column("Runs", 5, numbers=True),
    Column("Minutes", 9, numbers=True),
    Column("RCP margin", 12),
    *_VERDICTS,
)
_RUNS = (
    Column("Runs"),
    Column("Minutes", 9, numbers=True),
    Column("Status, dropped", 16),
    *_VERDICTS,
)
_SYSTEMS = (
    Column("Systems"),
    Column("Division", 8),
    Column("Accelerators", 12, numbers=True),
    *_VERDICTS,
)


def text(report: Report, view: View) -> str:
    """Render text of at most ``view.width`` columns, except for findings: they are never cut."""
    terminal = Terminal(view)
    for table in (_sets, _systems, _runs, _findings):
        table(terminal, report, view)
    _summary(terminal, report, view)
    return terminal.text()


def verdict_spans(verdicts: Verdicts) -> list[Span]:
    """Return both verdicts as cells."""
    both = (verdicts.official, verdicts.rules)
    return [(wording.VERDICTS[verdict], STYLES[verdict]) for verdict in both]


def _grouped(
    rows: Iterable[_Row], title: Callable[[_Row], str], cells: Callable[[_Row], Sequence[Span]]
) -> list[Group]:
    """Return rows below their titles, in the order of the report."""
    groups: dict[str, list[Sequence[Span]]] = {}
    for row in rows:
        groups.setdefault(title(row), []).append(cells(row))
    return [Group(title, members) for title, members in groups.items()]


def _sets(terminal: Terminal, report: Report, _: View) -> None:
    if report.result_sets:
        groups = _grouped(report.result_sets, lambda row: headings.system_title(row, report), _set)
        terminal.table(_SETS, groups)


def _set(row: ResultSetRow) -> list[Span]:
    cells = (row.benchmark, wording.runs(row), wording.minutes(row.score_minutes))
    rcp = (wording.rcp(row), STYLES[Verdict.FAIL] if wording.rcp_state(row) == "fail" else PLAIN)
    return [*((cell, PLAIN) for cell in cells), rcp, *verdict_spans(row.verdict)]


def _systems(terminal: Terminal, report: Report, view: View) -> None:
    """Add the systems, unless the result sets show their verdicts already."""
    if report.systems and (view.verbose or not report.result_sets):
        terminal.table(_SYSTEMS, _grouped(report.systems, _owner, _system))


def _owner(row: SystemRow) -> str:
    return row.submitter or "unnamed submitter"


def _system(row: SystemRow) -> list[Span]:
    number = wording.NOTHING if row.accelerators is None else str(row.accelerators)
    cells = (row.id, row.division or wording.NOTHING, number)
    return [*((cell, PLAIN) for cell in cells), *verdict_spans(row.verdict)]


def _runs(terminal: Terminal, report: Report, view: View) -> None:
    """Add all runs with ``verbose``, else only loose logs."""
    rows = report.runs if view.verbose else tuple(_loose(report))
    if rows:
        terminal.table(_RUNS, _grouped(rows, _run_title, _run))


def _loose(report: Report) -> Iterator[RunRow]:
    submitted = {row.path for row in report.result_sets if row.submitter is not None}
    return (run for run in report.runs if folder(run.path) not in submitted)


def _run_title(row: RunRow) -> str:
    about = f"{row.benchmark or 'no benchmark'}, {row.division or 'no division'}"
    parent = folder(row.path)
    return f"{parent}: {about}" if parent else about


def _run(row: RunRow) -> list[Span]:
    cells = (name(row.path), wording.minutes(row.minutes), wording.outcome(row))
    return [*((cell, PLAIN) for cell in cells), *verdict_spans(row.verdict)]


def _findings(terminal: Terminal, report: Report, view: View) -> None:
    folded_findings = findings.shown(report, view)
    for folded in folded_findings:
        _finding(terminal, folded, view)
    if folded_findings:
        terminal.line()


def _finding(terminal: Terminal, folded: findings.Folded, view: View) -> None:
    finding = folded.first
    terminal.line(
        (f"{wording.location(finding)}: ", PLAIN),
        (wording.severity(finding), STYLES[finding.severity] if not finding.waiver else PLAIN),
        (f" {finding.code}: {folded.message}", PLAIN),
    )
    for remark in folded.remarks:
        terminal.line((f"  {remark}", "dim"))
    if view.verbose and finding.source:
        terminal.line((f"  source: {finding.source}", "dim"))


def _summary(terminal: Terminal, report: Report, view: View) -> None:
    for basis, verdict in _both(report.verdict):
        terminal.paragraph(
            (f"{basis}: ".ljust(len("official: ")), PLAIN),
            (wording.VERDICTS[verdict], STYLES[verdict]),
            (f" - {headings.verdict_in_words(report, basis)}", PLAIN),
        )
    notes = findings.counts(report.findings)[Severity.NOTE]
    hidden = " (--verbose shows the notes)" if notes and not view.verbose else ""
    terminal.paragraph((f"{headings.counts_in_words(report)}{hidden}", PLAIN))
    terminal.paragraph((headings.round_in_words(report), PLAIN))


def _both(verdicts: Verdicts) -> Iterable[tuple[Basis, Verdict]]:
    return ((Basis.OFFICIAL, verdicts.official), (Basis.RULES, verdicts.rules))
