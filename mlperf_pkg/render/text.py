"""A report for a terminal or a pipe: tables, findings and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts
from mlperf_pkg.render import findings, headings
from mlperf_pkg.render.groups import (
    CodeGroup,
    SubmitterRow,
    Submitters,
    by_code,
    subjects_in_words,
)
from mlperf_pkg.render.terminal import HEADING, PLAIN, STYLES, Column, Group, Span, Terminal
from mlperf_pkg.render.view import Show, View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, SystemRow, folder, name

_Row = TypeVar("_Row")

_MOST_RUNS = 20  # raw logs that are listed without ``--verbose``

_VERDICTS = (Column("Official", 11), Column("Rules", 11))
_SETS = (
    Column("Result sets"),
    Column("Runs", 5, numbers=True),
    Column("Minutes", 9, numbers=True),
    Column("RCP margin", 16),
    *_VERDICTS,
)
_RUNS = (
    Column("Runs"),
    Column("Minutes", 9, numbers=True),
    Column("Status, dropped", 16),
    *_VERDICTS,
)
SUBMITTERS = (
    Column("Submitters", whole=True),
    Column("Sets", 4, numbers=True),
    *_VERDICTS,
    Column("Errors", 6, numbers=True),
    Column("Warnings", 8, numbers=True),
    Column("RCP failures", 12, numbers=True),
)
_STATISTICS = (
    Column("Codes"),
    Column("Findings", 8, numbers=True),
    Column("Places", 9, numbers=True),
    Column("Submitters", 40),
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
    if not view.quiet:
        for table in (_submitters, _sets, _systems, _runs, _findings, _configuration):
            table(terminal, report, view)
    _summary(terminal, report, view)
    return terminal.text()


def warnings_text(report: Report, view: View) -> str:
    """Render only the warnings of a report; empty if there are none."""
    warnings = [f for f in report.findings if f.severity is Severity.WARNING and not f.waiver]
    terminal = Terminal(view)
    _findings(terminal, replace(report, findings=warnings), view)
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


def _submitters(terminal: Terminal, report: Report, _: View) -> None:
    """Add the submissions, if there are several."""
    submitters = Submitters(report)
    if submitters.number > 1:
        terminal.table(SUBMITTERS, [Group("", [submitter_cells(row) for row in submitters.rows()])])


def submitter_cells(row: SubmitterRow) -> list[Span]:
    """Return the cells of a submitter, for the columns of ``SUBMITTERS``."""
    failures = str(row.rcp_failures) if row.rcp_failures else wording.NOTHING
    numbers = [str(row.errors or wording.NOTHING), str(row.warnings or wording.NOTHING), failures]
    cells = [(cell, PLAIN) for cell in numbers]
    return [(row.name, PLAIN), (str(row.result_sets), PLAIN), *verdict_spans(row.verdicts), *cells]


def _in_detail(report: Report, view: View) -> bool:
    return view.verbose or Submitters(report).number <= 1


def _sets(terminal: Terminal, report: Report, view: View) -> None:
    if report.result_sets and _in_detail(report, view):
        titles = headings.system_titles(report)
        terminal.table(_SETS, _grouped(report.result_sets, titles, _set))


def _set(row: ResultSetRow) -> list[Span]:
    cells = (wording.benchmark(row), wording.runs(row), wording.minutes(row.score_minutes))
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
    """Add all runs with ``verbose``, else only raw logs, if they are few."""
    rows = report.runs if view.verbose else tuple(_raw(report))
    if rows and (view.verbose or len(rows) <= _MOST_RUNS):
        terminal.table(_RUNS, _grouped(rows, _run_title, _run))


def _raw(report: Report) -> Iterator[RunRow]:
    sets = (row for row in report.result_sets if row.submitter is not None)
    submitted = {row.id for row in sets if "/results/" in f"/{row.path}"}
    return (run for run in report.runs if run.set not in submitted)


def _run_title(row: RunRow) -> str:
    about = row.set or f"{row.benchmark or 'no benchmark'}, {row.division or 'no division'}"
    parent = folder(row.path)
    return f"{parent}: {about}" if parent else about


def _run(row: RunRow) -> list[Span]:
    cells = (name(row.path), wording.minutes(row.minutes), wording.outcome(row))
    return [*((cell, PLAIN) for cell in cells), *verdict_spans(row.verdict)]


def _findings(terminal: Terminal, report: Report, view: View) -> None:
    if view.statistics:
        _statistics(terminal, report)
        return
    groups = by_code(findings.shown(report.findings, view))
    submitters = Submitters(report)
    for title, members in _titled(groups):
        terminal.line((title, HEADING))
        for group in members:
            if _in_full(group, view):
                for finding in group.findings:
                    _finding(terminal, finding, view)
            else:
                _group(terminal, group, submitters)
        terminal.line()


def _configuration(terminal: Terminal, report: Report, _: View) -> None:
    """Add the configuration that the user must complete for raw logs."""
    if report.configuration:
        terminal.line((f"Save this as {CONFIG_NAME} and complete it", HEADING))
        for line in report.configuration.splitlines():
            terminal.line((line, PLAIN))
        terminal.line()


def _in_full(group: CodeGroup, view: View) -> bool:
    """Return whether the findings of a group are shown one by one."""
    return view.show is Show.ALL or len(group.subjects) == 1


def _titled(groups: Iterable[CodeGroup]) -> Iterator[tuple[str, list[CodeGroup]]]:
    """Yield the groups of each severity with its heading, and those that are waived."""
    by_title: dict[str, list[CodeGroup]] = {}
    for group in groups:
        title = "Waived" if group.first.waiver else f"{group.first.severity.capitalize()}s"
        by_title.setdefault(title, []).append(group)
    yield from by_title.items()


def _group(terminal: Terminal, group: CodeGroup, submitters: Submitters) -> None:
    first = group.first
    terminal.line((f"  {group.text}  ", PLAIN), (findings.label(first), _style(first)))
    of_round = submitters.number > 1
    words = submitters.of_group(group) if of_round else subjects_in_words(group)
    number = len(group.subjects)
    terminal.line((f"    {number} {_noun(group, submitters)}: {words}", PLAIN))
    if of_round and first.about not in submitters.roots:
        terminal.line((f"    first {findings.location(first)}", "dim"))
    _remarks(terminal, first)


def _noun(group: CodeGroup, submitters: Submitters) -> str:
    """Return what the findings of a group are about."""
    if group.first.about in submitters.roots:
        return "submissions"
    return "files" if group.first.set is None else "result sets"


def _finding(terminal: Terminal, finding: Finding, view: View) -> None:
    terminal.line(
        (f"  {findings.location(finding)}: {findings.sentence(finding)}  ", PLAIN),
        (findings.label(finding), _style(finding)),
    )
    _remarks(terminal, finding)
    if view.show is Show.ALL and finding.source:
        terminal.line((f"    source: {finding.source}", "dim"))


def _remarks(terminal: Terminal, finding: Finding) -> None:
    for remark in findings.remarks(finding):
        terminal.line((f"    {remark}", "dim"))


def _style(finding: Finding) -> str:
    return PLAIN if finding.waiver else STYLES[finding.severity]


def _statistics(terminal: Terminal, report: Report) -> None:
    """Add the number of findings by code and, if there is a submission, submitter."""
    groups, submitters = by_code(report.findings), Submitters(report)
    titled = [
        Group(title, [_statistic(group, submitters) for group in members])
        for title, members in _titled(groups)
    ]
    if titled:
        terminal.table(_STATISTICS if submitters.number else _STATISTICS[:-1], titled)


def _statistic(group: CodeGroup, submitters: Submitters) -> list[Span]:
    numbers = (str(len(group.findings)), str(sum(finding.count for finding in group.findings)))
    by_submitter = [submitters.of_group(group)] if submitters.number else []
    cells = (findings.label(group.first), *numbers, *by_submitter)
    return [(cell, PLAIN) for cell in cells]


def _summary(terminal: Terminal, report: Report, view: View) -> None:
    for basis, verdict in _both(report.verdict):
        words = headings.verdict_in_words(report, basis)
        terminal.paragraph(
            (f"{basis}: ".ljust(len("official: ")), PLAIN),
            (wording.VERDICTS[verdict], STYLES[verdict]),
            (f", {words}" if words else "", PLAIN),
        )
    if view.quiet:
        return
    terminal.paragraph((f"{headings.counts_in_words(report)}{_hidden(report, view)}", PLAIN))
    terminal.paragraph((headings.round_in_words(report), PLAIN))
    for sentence in (*headings.systems_in_words(report), headings.unjudged_in_words(report)):
        if sentence:
            terminal.paragraph((sentence, PLAIN))


def _hidden(report: Report, view: View) -> str:
    """Return how to see the findings that are not shown one by one."""
    shown = findings.shown(report.findings, view)
    if len(shown) == len(report.findings) and all(_in_full(g, view) for g in by_code(shown)):
        return ""
    return " (--show all lists them)"


def _both(verdicts: Verdicts) -> Iterable[tuple[Basis, Verdict]]:
    return ((Basis.OFFICIAL, verdicts.official), (Basis.RULES, verdicts.rules))
