"""A report for a terminal or a pipe: tables, findings and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts
from mlperf_pkg.render import findings, headings
from mlperf_pkg.render.groups import CodeGroup, Submitters, by_code, subjects_in_words
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Table, shown, table_of
from mlperf_pkg.render.terminal import STYLES, Terminal
from mlperf_pkg.render.view import Show, View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, SystemRow, folder, name

_Row = TypeVar("_Row")

_MOST_RUNS = 20  # raw logs that are listed without ``--verbose``


def verdict_columns(verdicts: Callable[[Any], Verdicts]) -> tuple[Column, Column]:
    """Return a column for either verdict; ``verdicts`` returns those of a row."""

    def column(title: str, basis: str) -> Column:
        def verdict(row: Any) -> Verdict:
            value: Verdict = getattr(verdicts(row), basis)
            return value

        style = lambda row: STYLES[verdict(row)]  # noqa: E731
        return Column(title, 11, of=verdict, show=wording.VERDICTS.__getitem__, style=style)

    return column("Official", "official"), column("Rules", "rules")


def _rcp_style(row: ResultSetRow) -> str:
    return STYLES[Verdict.FAIL] if wording.rcp_state(row) == "fail" else PLAIN


def _number(title: str, width: int, field: str) -> Column:
    """Return a column of numbers that shows ``-`` for 0."""
    return Column(title, width, numbers=True, of=attrgetter(field), show=lambda n: shown(n or None))


_OF_ROW = verdict_columns(attrgetter("verdict"))
_MINUTES = Column("Minutes", 9, numbers=True, show=wording.minutes)
_SETS = (
    Column("Result sets", of=wording.benchmark),
    Column("Runs", 5, numbers=True, of=wording.runs),
    replace(_MINUTES, of=attrgetter("score_minutes")),
    Column("RCP margin", 16, of=wording.rcp, style=_rcp_style),
    *_OF_ROW,
)
_RUNS = (
    Column("Runs", of=lambda row: name(row.path)),
    replace(_MINUTES, of=attrgetter("minutes")),
    Column("Status, dropped", 16, of=wording.outcome),
    *_OF_ROW,
)
SUBMITTERS = (
    Column("Submitters", whole=True, of=attrgetter("name")),
    Column("Sets", 4, numbers=True, of=attrgetter("result_sets")),
    *verdict_columns(attrgetter("verdicts")),
    _number("Errors", 6, "errors"),
    _number("Warnings", 8, "warnings"),
    _number("RCP failures", 12, "rcp_failures"),
)
_SYSTEMS = (
    Column("Systems", of=attrgetter("id")),
    Column("Division", 8, of=attrgetter("division")),
    Column("Accelerators", 12, numbers=True, of=attrgetter("accelerators")),
    *_OF_ROW,
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


def _grouped(rows: Iterable[_Row], title: Callable[[_Row], str]) -> list[Group]:
    """Return rows below their titles, in the order of the report."""
    groups: dict[str, list[_Row]] = {}
    for row in rows:
        groups.setdefault(title(row), []).append(row)
    return [Group(title, members) for title, members in groups.items()]


def _submitters(terminal: Terminal, report: Report, _: View) -> None:
    """Add the submissions, if there are several."""
    submitters = Submitters(report)
    if submitters.number > 1:
        terminal.table(table_of(SUBMITTERS, submitters.rows()))


def _in_detail(report: Report, view: View) -> bool:
    return view.verbose or Submitters(report).number <= 1


def _sets(terminal: Terminal, report: Report, view: View) -> None:
    if report.result_sets and _in_detail(report, view):
        titles = headings.system_titles(report)
        terminal.table(Table(_SETS, _grouped(report.result_sets, titles)))


def _systems(terminal: Terminal, report: Report, view: View) -> None:
    """Add the systems, unless the result sets show their verdicts already."""
    if report.systems and (view.verbose or not report.result_sets):
        terminal.table(Table(_SYSTEMS, _grouped(report.systems, _owner)))


def _owner(row: SystemRow) -> str:
    return row.submitter or "unnamed submitter"


def _runs(terminal: Terminal, report: Report, view: View) -> None:
    """Add all runs with ``verbose``, else only raw logs, if they are few."""
    rows = report.runs if view.verbose else tuple(_raw(report))
    if rows and (view.verbose or len(rows) <= _MOST_RUNS):
        terminal.table(Table(_RUNS, _grouped(rows, _run_title)))


def _raw(report: Report) -> Iterator[RunRow]:
    sets = (row for row in report.result_sets if row.submitter is not None)
    submitted = {row.id for row in sets if "/results/" in f"/{row.path}"}
    return (run for run in report.runs if run.set not in submitted)


def _run_title(row: RunRow) -> str:
    about = row.set or f"{row.benchmark or 'no benchmark'}, {row.division or 'no division'}"
    parent = folder(row.path)
    return f"{parent}: {about}" if parent else about


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
    submitters = Submitters(report)
    groups = [Group(title, members) for title, members in _titled(by_code(report.findings))]
    columns = [
        Column("Codes", of=lambda group: findings.label(group.first)),
        Column("Findings", 8, numbers=True, of=lambda group: len(group.findings)),
        Column("Places", 9, numbers=True, of=lambda group: sum(f.count for f in group.findings)),
    ]
    if submitters.number:
        columns.append(Column("Submitters", 40, of=submitters.of_group))
    if groups:
        terminal.table(Table(columns, groups))


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
