"""A report as text, Markdown, log lines, JSON and CSV."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import (
    Finding,
    Severity,
    Verdict,
    Verdicts,
    folded,
    verdicts_of,
    without_pass,
)
from mlperf_pkg.infra.text import escape_markdown, visible
from mlperf_pkg.render import findings as words
from mlperf_pkg.render import table as rendered
from mlperf_pkg.render import tables
from mlperf_pkg.render.findings import Show, View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, RowGroup, Span, Table, by_key, shown
from mlperf_pkg.render.terminal import RCP_MARGIN, STYLES, Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.amounts import Subjects, Thing
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, common_folder
from mlperf_pkg.submission.submitters import spellings

_Row = TypeVar("_Row")

_MOST_RUNS = 20  # raw logs that are listed without ``--verbose``
_MOST_KINDS = 12  # of findings of several submitters, without ``--show``
_MOST_ROWS = 3  # of a message on a terminal


def _verdict(title: str, field: str) -> Column:
    of = attrgetter(field)
    show = wording.VERDICTS.__getitem__
    return Column(title, 11, of=of, show=show, style=lambda row: STYLES[of(row)])


def _number(title: str, width: int, field: str) -> Column:
    """Return a column of numbers that shows ``-`` for 0."""
    return Column(title, width, numbers=True, of=attrgetter(field), show=_unless_zero)


def _unless_zero(number: int) -> str:
    return shown(number or None)


_OF_ROW = (_verdict("Official", "verdict.official"), _verdict("Rules", "verdict.rules"))
_MINUTES = Column("Minutes", 9, numbers=True, show=wording.minutes)
_SETS = (
    Column("Result sets", of=wording.benchmark),
    Column("Runs", 5, numbers=True, of=wording.runs),
    replace(_MINUTES, of=attrgetter("score_minutes")),
    RCP_MARGIN,
    *_OF_ROW,
)
_RUNS = (
    Column("Runs", of=attrgetter("label")),
    replace(_MINUTES, of=attrgetter("minutes")),
    Column("Status, dropped", 16, of=wording.outcome),
    *_OF_ROW,
)
_CONFIGURED_RUNS = (
    *_RUNS[:2],
    Column("Batch", 6, numbers=True, of=attrgetter("batch_size")),
    Column("Scale", 6, numbers=True, of=attrgetter("accelerators")),
    *_RUNS[2:],
)
SUBMITTERS = (
    Column("Submitters", of=attrgetter("name")),
    Column("Sets", 4, numbers=True, of=attrgetter("result_sets")),
    *_OF_ROW,
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


# ---- text for people --------------------------------------------------------------------


def text(report: Report, view: View) -> str:
    """Render the verdicts, then tables and findings, the most important first."""
    terminal = Terminal(view)
    _summary(terminal, report, view)
    if not view.quiet:
        terminal.line()
        for table in _tables(report, view):
            terminal.table(table)
        if not view.statistics:
            _findings(terminal, report, view)
        if report.configuration:  # to be completed for raw logs
            heading = (
                f"Complete the following lines, and save them as {CONFIG_NAME} beside systems/"
            )
            terminal.line((heading, HEADING))
            for line in report.configuration.splitlines():
                terminal.line((line, PLAIN))
    return f"{terminal.text().rstrip()}\n"


def warnings_text(report: Report, view: View, errors: Collection[str] = ()) -> str:
    """Render only the warnings of a report, and its ``errors`` of some codes, if there are any."""
    shown: list[Finding] = []
    for finding in report.findings:
        is_shown = finding.severity is Severity.WARNING or finding.code in errors
        if is_shown and not finding.waiver:
            shown.append(finding)
    terminal = Terminal(view)
    _findings(terminal, replace(report, findings=shown), view)
    return terminal.text()


def _grouped(rows: Iterable[_Row], title: Callable[[_Row], str]) -> list[RowGroup]:
    """Return rows below their titles, in the order of the report."""
    groups = by_key((title(row), row) for row in rows)
    return [RowGroup(heading, members) for heading, members in groups.items()]


def _tables(report: Report, view: View) -> Iterator[Table]:
    """Yield submissions, if there are several, result sets, systems, runs, and ``statistics``.

    Unless ``verbose``, systems are left out if the result sets show their verdicts already, and of
    the runs there are only raw logs, if they are few.
    """
    submitters = Submitters(report)
    if submitters.number > 1:
        yield submitters.table()
    if report.result_sets and (view.verbose or submitters.number <= 1):
        yield Table(_SETS, _grouped(report.result_sets, words.system_titles(report)))
    if report.systems and (view.verbose or not report.result_sets):
        owners = _grouped(report.systems, lambda row: row.submitter or "unnamed submitter")
        yield Table(_SYSTEMS, owners)
    runs = _listed_runs(report, submitters, view)
    if runs:
        columns = _CONFIGURED_RUNS if view.verbose else _RUNS
        yield Table(columns, _run_groups(runs))
    if report.findings and view.statistics:
        yield _statistics(report, submitters)


def _listed_runs(report: Report, submitters: Submitters, view: View) -> Sequence[RunRow]:
    """Return all runs in a ``verbose`` view, else those of raw logs, if they are few."""
    if view.verbose:
        return report.runs
    submitted = {row.id for row in submitters.submitted}
    raw = [run for run in report.runs if run.set not in submitted]
    return raw if len(raw) <= _MOST_RUNS else []


def _run_groups(runs: Iterable[RunRow]) -> list[RowGroup]:
    """Return the runs of each set below its folder, with their paths in it."""
    groups: list[RowGroup] = []
    for about, rows in by_key((_set_of(row), row) for row in runs).items():
        place = common_folder([row.path for row in rows])
        title = f"{place}: {about}" if place else about
        below = [replace(row, path=row.path.removeprefix(f"{place}/")) for row in rows]
        groups.append(RowGroup(title, below))
    return groups


def _set_of(row: RunRow) -> str:
    return row.set or f"{row.benchmark or 'no benchmark'}, {row.division or 'no division'}"


def _findings(terminal: Terminal, report: Report, view: View) -> None:
    submitters = Submitters(report)
    kinds = folded_kinds(words.shown(report.findings, view))
    hidden: list[CodeGroup] = []
    if submitters.number > 1 and not view.all_kinds and view.show is not Show.ALL:
        hidden = kinds[_MOST_KINDS:]
        kinds = kinds[:_MOST_KINDS]
    for titled in by_heading(kinds):
        terminal.line((titled.title, HEADING))
        for kind in titled.rows:
            if _in_full(kind, view):
                for finding in kind.findings:
                    _finding(terminal, finding, view, kind.followers)
            else:
                _kind(terminal, kind, submitters)
        terminal.line()
    if hidden:
        more = wording.counted(len(hidden), "more code")
        terminal.line((f"and {more}; --show {view.show} lists all codes", PLAIN))


def folded_kinds(findings: Sequence[Finding]) -> list[CodeGroup]:
    """Return kinds of findings: first the causes of others, which are folded under them."""
    followers = words.followers(findings)
    folded_ids = {finding.id for finding in chain.from_iterable(followers.values())}
    causes = [finding for finding in findings if finding.id in followers]
    others = [f for f in findings if f.id not in followers and f.id not in folded_ids]
    kinds = [replace(kind, followers=followers) for kind in by_code(causes)]
    return [*sorted(kinds, key=_cause_order), *by_code(others)]


def _cause_order(kind: CodeGroup) -> tuple[bool, int]:
    """Return a sort key: what is wrong with runs first, then the causes of most findings."""
    number = sum(len(kind.followers[finding.id]) for finding in kind.findings)
    return kind.first.runs is None, -number


def _in_full(kind: CodeGroup, view: View) -> bool:
    """Return whether the findings of a kind are shown one by one."""
    return view.show is Show.ALL or len(kind.subjects) == 1


def by_heading(kinds: Iterable[CodeGroup]) -> list[RowGroup]:
    """Return the kinds of each severity below its heading, and those that are waived."""
    return _grouped(kinds, _heading)


def _heading(kind: CodeGroup) -> str:
    """Return what is above kinds of findings: causes, those of each severity, those waived."""
    if kind.followers:
        return "Causes"
    return "Waived" if kind.first.waiver else f"{kind.first.severity.capitalize()}s"


def _kind(terminal: Terminal, kind: CodeGroup, submitters: Submitters) -> None:
    first = kind.first
    label = _label(first, with_severity=bool(kind.followers))
    terminal.line((f"  {kind.text}  ", PLAIN), label, most=_MOST_ROWS)
    terminal.line((f"    {subjects_in_words(kind, submitters)}", PLAIN), most=_MOST_ROWS)
    _remarks(terminal, first)
    following = [kind.followers.get(finding.id, ()) for finding in kind.findings]
    _follow(terminal, list(chain.from_iterable(following)), "this cause")


def subjects_in_words(kind: CodeGroup, submitters: Submitters) -> str:
    """Return what the findings of a kind are about, and whose it is."""
    first = kind.first
    number = submitters.things_in_words(kind)
    if submitters.number <= 1:
        return f"{number}: {wording.shortened(kind.subjects, _MOST_NAMED)}"
    whose = f"{number}{submitters.whose(kind)}"
    return (
        whose if first.about in submitters.roots else f"{whose}; first in {words.location(first)}"
    )


def _finding(
    terminal: Terminal, finding: Finding, view: View, followers: Mapping[str, Sequence[Finding]]
) -> None:
    """Show a finding, and how many ``followers`` it has; a verbose view shows which."""
    following = followers.get(finding.id, ())
    _one(terminal, finding, view, _label(finding, with_severity=bool(followers)))
    if view.verbose or view.show is Show.ALL:
        for follower in following:
            label = _label(follower, with_severity=True)
            _one(terminal, follower, view, label, "    follows: ")
    else:
        _follow(terminal, following, "this cause")


def _one(terminal: Terminal, finding: Finding, view: View, label: Span, margin: str = "  ") -> None:
    text = f"{margin}{words.location(finding)}: {words.sentence(finding)}  "
    most = 0 if view.show is Show.ALL else _MOST_ROWS
    terminal.line((text, PLAIN), label, most=most)
    if finding.cause is None or margin == "  ":
        _remarks(terminal, finding)
    if view.show is Show.ALL and finding.source:
        terminal.line((f"    source: {finding.source}", "dim"))


def _follow(terminal: Terminal, following: Sequence[Finding], cause: str) -> None:
    """Say in one line how many findings follow from ``this cause``, and their codes."""
    if not following:
        return
    verb = "follow"
    pronoun = "them"
    if len(following) == 1:
        verb = "follows"
        pronoun = "it"
    number = wording.counted(len(following), "finding")
    codes = sorted({finding.code for finding in following})
    text = f"    {number} {verb} from {cause} (-v lists {pronoun}): "
    terminal.line((f"{text}{wording.shortened(codes, _MOST_NAMED)}", PLAIN), most=_MOST_ROWS)


def _label(finding: Finding, *, with_severity: bool) -> Span:
    label = words.label(finding)
    if with_severity:
        label = f"{finding.severity} {label}"
    return label, _style(finding)


def _remarks(terminal: Terminal, finding: Finding) -> None:
    for remark in words.remarks(finding):
        terminal.line((f"    {remark}", "dim"), most=_MOST_ROWS)


def _style(finding: Finding) -> str:
    return PLAIN if finding.waiver else STYLES[finding.severity]


def _statistics(report: Report, submitters: Submitters) -> Table:
    """Return the number of findings by code and, if there is a submission, submitter."""
    columns = [
        Column("Codes", of=lambda kind: words.label(kind.first)),
        Column("Findings", 8, numbers=True, of=lambda kind: len(kind.findings)),
        Column("Places", 9, numbers=True, of=attrgetter("places")),
    ]
    if submitters.number:
        owners = Column("Submitters", 40, of=lambda kind: submitters.owners(kind.findings))
        columns.append(owners)
    return Table(columns, by_heading(by_code(report.findings)))


def _summary(terminal: Terminal, report: Report, view: View) -> None:
    for basis in words.BASES:
        label, verdict, extent = words.verdict_parts(report, basis)
        terminal.paragraph(
            (f"{label}: ".ljust(len("official: ")), PLAIN),
            (wording.VERDICTS[verdict], STYLES[verdict]),
            (extent, PLAIN),
        )
    if view.quiet:
        return
    counts = words.counts_in_words(report)
    if not _lists_all(report.findings, view):
        counts += " (to list every finding: --show all)"
    for sentence in (counts, words.round_in_words(report), *words.sets_in_words(report)):
        terminal.paragraph((sentence, PLAIN))


def _lists_all(findings: Sequence[Finding], view: View) -> bool:
    """Return whether all findings are shown one by one."""
    visible_findings = words.shown(findings, view)
    if len(visible_findings) < len(findings):
        return False
    kinds = folded_kinds(visible_findings)
    if not view.verbose and view.show is not Show.ALL and any(kind.followers for kind in kinds):
        return False
    return all(_in_full(kind, view) for kind in kinds)


# ---- findings by code and by submitter --------------------------------------------------

_MOST_NAMED = 6  # result sets, or submitters, of one code


class CodeGroup(Struct, frozen=True):
    """All findings of one code, severity and basis; those of each waiver apart.

    If they are causes, ``followers`` is what follows from all causes, by the id of the cause.
    """

    findings: tuple[Finding, ...]
    followers: Mapping[str, Sequence[Finding]] = {}

    @property
    def first(self) -> Finding:
        """The first of them."""
        return self.findings[0]

    @property
    def text(self) -> str:
        """The message with the values of all findings; of several messages the first."""
        merged = folded(self.findings)[0]
        is_one_text = all(finding.message == merged.message for finding in self.findings)
        if is_one_text and not merged.differs_by_place:
            return merged.text
        return merged.text_with(len(self.findings) - 1)

    @property
    def places(self) -> int:
        """In how many places they are."""
        return sum(finding.count for finding in self.findings)

    @property
    def firsts(self) -> list[Finding]:
        """The first finding on each thing that they are about."""
        firsts: dict[str, Finding] = {}
        for finding in self.findings:
            firsts.setdefault(finding.about, finding)
        return list(firsts.values())

    @property
    def subjects(self) -> tuple[str, ...]:
        """The paths, or ids of sets of raw logs, of what they are about."""
        return tuple(finding.about for finding in self.firsts)


class SubmitterRow(Struct, frozen=True):
    """A submitter in a table: its verdicts, and its numbers of findings."""

    name: str
    result_sets: int
    verdict: Verdicts
    errors: int
    warnings: int
    rcp_failures: int


def by_code(findings: Iterable[Finding]) -> list[CodeGroup]:
    """Return the findings by code: the most important and most frequent first, waived ones last."""

    by_kind = by_key((_kind_key(finding), finding) for finding in findings)
    kinds = [CodeGroup(tuple(members)) for members in by_kind.values()]
    return sorted(kinds, key=_kind_order)


def _kind_key(finding: Finding) -> tuple[str, tuple[int, int], str]:
    waived = "\n".join(words.remarks(finding)) if finding.waiver else ""
    return waived, words.importance(finding), finding.code


def _kind_order(kind: CodeGroup) -> tuple[Any, ...]:
    waived, importance, code = _kind_key(kind.first)
    return waived, importance, -len(kind.subjects), code


class Submitters:
    """The submitters of a report: which of them a path belongs to; ``number`` is how many.

    ``submitted`` are the result sets that are in a submission, ``roots`` the submitters by the path
    of the submission.
    """

    def __init__(self, report: Report) -> None:
        """Take the submissions from the paths of result sets, and the submitters of raw logs."""
        self._report = report
        self._subjects = Subjects(report)
        owners = (row.submitter for row in report.result_sets if row.submitter)
        self.number = len(spellings(owners))
        self.submitted: list[ResultSetRow] = []
        self.roots: dict[str, str] = {}
        self._by_set: dict[str, str] = {}
        named = [row for row in report.result_sets if row.submitter is not None]
        name_of: dict[str, str] = {}
        for spelling, alike in spellings(row.submitter or "" for row in named).items():
            name_of.update(dict.fromkeys(alike, spelling))
        for row in named:
            submitter = name_of[row.submitter or ""]
            self._by_set[row.id] = submitter
            if "/results/" in f"/{row.path}":
                self.submitted.append(row)
                self.roots[root(row.path)] = submitter

    def of(self, finding: Finding) -> str | None:
        """Return the submitter of what a finding is about; None outside submissions."""
        if finding.set in self._by_set:
            return self._by_set[finding.set]
        place = finding.path
        while place and place not in self.roots:
            place, _, _ = place.rpartition("/")
        return self.roots.get(place)

    def rows(self) -> Iterator[SubmitterRow]:
        """Yield a row for each submitter, by name, and one for what is outside of them."""
        findings = by_key((self.of(finding), finding) for finding in self._report.findings)
        sets: dict[str, list[ResultSetRow]] = {}
        for row in self._report.result_sets:
            if row.id in self._by_set:
                sets.setdefault(self._by_set[row.id], []).append(row)
        for submitter in sorted(sets, key=str.lower):
            yield self._row(submitter, sets[submitter], findings.pop(submitter, []))
        rest = list(chain.from_iterable(findings.values()))
        if rest:
            yield self._row("elsewhere", [], rest)

    def table(self) -> Table:
        """Return the rows, with the number of submitters where companies submit together."""
        number = len(self._report.submitters)
        remarks = []
        if number != self.number:
            submitters = wording.counted(number, "submitter")
            submissions = wording.counted(self.number, "submission")
            remarks.append(
                f"{submitters} in {submissions}, as each company of a joint submission counts"
                " as one submitter; a company with several folders counts once"
            )
        return Table(SUBMITTERS, [RowGroup("", list(self.rows()), remarks)])

    def _row(
        self, name: str, rows: Sequence[ResultSetRow], findings: Sequence[Finding]
    ) -> SubmitterRow:
        verdicts = [row.verdict for row in rows]
        verdicts.append(verdicts_of(findings).failures)
        verdict = without_pass(Verdicts.worst(verdicts), findings)
        if self._report.verdict.official is Verdict.NOT_CHECKED:  # of the whole: of no part
            verdict = replace(verdict, official=Verdict.NOT_CHECKED)
        number_of = words.counts(findings)
        rcp_failures = 0
        for row in rows:
            if wording.rcp_state(row) == "fail":
                rcp_failures += 1
        return SubmitterRow(
            name=name,
            result_sets=len(rows),
            verdict=verdict,
            errors=number_of[Severity.ERROR],
            warnings=number_of[Severity.WARNING],
            rcp_failures=rcp_failures,
        )

    def things_in_words(self, group: CodeGroup) -> str:
        """Return what the findings of a code are about: ``2 result sets and 1 submission``."""
        numbers = Counter(self._subjects.of(finding).thing for finding in group.firsts)
        things = [wording.counted(numbers[thing], thing) for thing in Thing if numbers[thing]]
        return wording.enumerated(things)

    def owners(self, findings: Iterable[Finding]) -> str:
        """Return how many of the findings each submitter has: ``3 by ACME, 1 by Dell``."""
        numbers = self._numbers(findings).most_common()
        parts = [f"{number} {whose}" for whose, number in numbers]
        return wording.shortened(parts, _MOST_NAMED, "submitter")

    def whose(self, group: CodeGroup) -> str:
        """Return whose the subjects of a code are: ``, both by ACME``, ``: 3 by ACME, 1 by B``."""
        firsts = group.firsts
        numbers = self._numbers(firsts)
        if len(numbers) > 1:
            return f": {self.owners(firsts)}"
        [submitter] = numbers
        every = "both" if len(firsts) == 2 else "all"  # noqa: PLR2004
        return f", {every} {submitter}"

    def _numbers(self, findings: Iterable[Finding]) -> Counter[str]:
        """Return the numbers of findings ``by ACME``, by others, and ``elsewhere``."""
        owners = map(self.of, findings)
        return Counter(f"by {owner}" if owner else "elsewhere" for owner in owners)


def root(path: str) -> str:
    """Return the path of the submission that holds a result set."""
    head, _, _ = f"/{path}".rpartition("/results/")
    return head.removeprefix("/")


# ---- Markdown ---------------------------------------------------------------------------

MAX_BYTES = 1_000_000  # GitHub rejects a summary larger than 1 MiB


def markdown(report: Report, view: View) -> str:
    """Render verdicts, submitters of a round, results and findings, a section each."""
    sections = [f"## MLPerf check\n\n{verdicts(report)}"]
    submitters = Submitters(report)
    if submitters.number > 1:  # nothing for one submission
        sections.append(f"### Submitters\n\n{rendered.markdown(submitters.table())}")
    sections.append(f"### Results\n\n{tables.results_markdown(report).rstrip()}")
    lines = "\n\n".join(sections).split("\n")
    findings = words.shown(report.findings, view)
    if findings:
        lines += ["", "### Findings", "", *map(_finding_item, findings)]
    return _shortened(lines)


def _shortened(lines: list[str]) -> str:
    """Return the lines, or items, that fit into a summary, and how many do not."""
    ends = accumulate(len(line.encode("utf-8", "replace")) + 1 for line in lines)
    kept = bisect_right(list(ends), MAX_BYTES)
    left_out = len(lines) - kept
    if left_out:
        lines[kept:] = ["", f"{left_out} more lines are left out: a summary has at most 1 MiB."]
    return "\n".join(lines) + "\n"


def verdicts(report: Report) -> str:
    """Return both verdicts, the counts and the round, as a list."""
    lines = []
    for basis in words.BASES:
        label, verdict, extent = words.verdict_parts(report, basis)
        sentence = f"{wording.VERDICTS[verdict]}{extent}"
        lines.append(f"**{label}**: {escape_markdown(sentence)}")
    lines.append(words.counts_in_words(report))
    for sentence in (words.round_in_words(report), *words.sets_in_words(report)):
        lines.append(escape_markdown(sentence))
    return "\n".join(f"- {line}" for line in lines)


def _finding_item(finding: Finding) -> str:
    where = escape_markdown(words.location(finding))
    label = escape_markdown(words.label(finding))
    head = f"**{wording.severity(finding)} {label}**"
    lines = [words.sentence(finding), *words.remarks(finding)]
    text = "\n  <br>".join(map(escape_markdown, lines))
    return f"- {where}: {head}: {text}"


# ---- log lines, JSON and CSV ------------------------------------------------------------

_LEVELS = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}


def log(report: Report, view: View) -> str:
    """Render ``LEVEL - text`` lines, as the official tools do: round, findings, verdicts."""
    lines = [_log_line("INFO", words.round_in_words(report))]
    if not view.quiet:
        for finding in words.shown(report.findings, view):
            level = "INFO" if finding.waiver else _LEVELS[finding.severity]
            lines.append(_log_line(level, in_line(finding)))
    for basis in words.BASES:
        label, verdict, extent = words.verdict_parts(report, basis)
        sentence = f"{label} verdict: {wording.VERDICTS[verdict]}{extent}"
        lines.append(_log_line("INFO", sentence))
    return "".join(lines)


def _log_line(level: str, text: str) -> str:
    return f"{level} - {visible(text)}\n"


def in_line(finding: Finding) -> str:
    """Return a finding in one line: its place, code, basis and message."""
    waived = "waived: " if finding.waiver else ""
    where = words.location(finding)
    return f"{where}: {waived}{words.label(finding)}: {words.sentence(finding)}"


def csv(report: Report, _: View) -> str:
    """Render the results, one row per result set."""
    return tables.results_csv(report)
