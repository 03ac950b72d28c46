"""What a page says, in the order in which it says it; all words, no markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.commands.charts import DrawnSet
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.render import findings as folding
from mlperf_pkg.render import headings
from mlperf_pkg.render.findings import Folded
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import Report, ResultSetRow, SystemRow, description_path

MOST_FINDINGS = 800
_ORDER = {severity: place for place, severity in enumerate(Severity)}


class Badge(Struct, frozen=True):
    """A verdict: ``word`` to be read, ``kind`` (pass, fail, not_checked) to be coloured by."""

    word: str
    kind: str


class Judgement(Struct, frozen=True):
    """One of the two verdicts over everything."""

    name: str
    badge: Badge
    words: str


class Told(Struct, frozen=True):
    """A finding of a page: its place in it, and the line that it is about, if that was read."""

    id: str
    folded: Folded
    severity: str
    location: str
    raw: str | None

    @property
    def finding(self) -> Finding:
        """The finding itself."""
        return self.folded.first


class Section(Struct, frozen=True):
    """A result set of the page."""

    id: str
    drawn: DrawnSet
    accelerators: int | None
    findings: tuple[Told, ...]

    @property
    def row(self) -> ResultSetRow:
        """Its row in the report."""
        return self.drawn.row

    @property
    def official(self) -> Badge:
        """The official verdict."""
        return badge(self.row.verdict.official)

    @property
    def rules(self) -> Badge:
        """The verdict by the rules."""
        return badge(self.row.verdict.rules)

    @property
    def title(self) -> str:
        """What it is called in a heading."""
        named = (self.row.benchmark, self.row.system, self.row.submitter)
        return ", ".join(part for part in named if part)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What is told of it beside its runs."""
        row = self.row
        listed = [
            ("Olympic mean", f"{words.minutes(row.unscaled_minutes)} minutes"),
            ("Scaling factor", f"{row.scaling_factor:.4f}"),
            ("Score", f"{words.minutes(row.score_minutes)} minutes"),
            ("Summarizer", f"{words.minutes(row.official_minutes)} minutes"),
            ("Seeds", "pass" if row.seeds.official_pass else "FAIL"),
            ("Path", row.path),
        ]
        listed += [("Note", row.score_note)] if row.score_note else []
        listed += [("RCP", row.rcp.explanation)] if row.rcp else []
        return listed


class Content(Struct, frozen=True):
    """A page: ``hidden`` is the number of findings that it has no room for."""

    report: Report
    judgements: tuple[Judgement, ...]
    sections: tuple[Section, ...]
    findings: tuple[Told, ...]
    hidden: int

    @property
    def title(self) -> str:
        """What the page is called."""
        usage = {"training": "Training", "hpc": "HPC"}.get(self.report.usage, self.report.usage)
        return f"MLPerf {usage} {self.report.round or 'of several rounds'}"

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the results, each with its class: ``n`` for numbers."""
        return {
            **({} if self.report.round else {"Round": ""}),
            "Submitter": "",
            "System": "",
            "Benchmark": "",
            "Score": "n",
            "Official": "",
            "Rules": "",
            "RCP": "",
            "Division": "",
            "Summarizer": "n",
            "Runs": "n",
            "Accelerators": "n",
        }

    @property
    def choices(self) -> dict[str, list[str]]:
        """What results can be filtered by: the values of some columns."""
        rows = [section.row for section in self.sections]
        columns: dict[str, list[str | None]] = {
            "Round": [row.round for row in rows],
            "Submitter": [row.submitter for row in rows],
            "Benchmark": [row.benchmark for row in rows],
            "Division": [row.division for row in rows],
        }
        known = {
            name: sorted({value for value in values if value}) for name, values in columns.items()
        }
        return {name: values for name, values in known.items() if len(values) > 1}


def shown_findings(report: Report) -> tuple[list[Folded], int]:
    """The findings that a page has room for, errors first, and how many it leaves out."""
    listed = folding.shown(report, View())
    listed.sort(key=lambda each: (bool(each.first.waiver), _ORDER[each.first.severity]))
    return listed[:MOST_FINDINGS], max(0, len(listed) - MOST_FINDINGS)


def content(
    report: Report, drawn: Sequence[DrawnSet], lines: Mapping[tuple[str, int], str]
) -> Content:
    """A page of a report; ``lines`` are the raw lines of findings by path and line."""
    listed, hidden = shown_findings(report)
    told = tuple(_told(index, each, lines) for index, each in enumerate(listed))
    ordered = sorted(drawn, key=lambda each: _place(each.row))
    return Content(
        report=report,
        judgements=tuple(_judgement(report, basis) for basis in (Basis.OFFICIAL, Basis.RULES)),
        sections=tuple(_sections(ordered, told, report.systems)),
        findings=told,
        hidden=hidden,
    )


def amount(value: float | None) -> str:
    """Epochs or samples, however many a log claims."""
    try:
        return words.NOTHING if value is None else f"{value:,.10g}"
    except OverflowError:
        return "more than any number"


def badge(verdict: Verdict) -> Badge:
    """A verdict as a badge."""
    return Badge(words.VERDICTS[verdict], verdict.value)


def _judgement(report: Report, basis: Basis) -> Judgement:
    verdict: Verdict = getattr(report.verdict, basis)
    return Judgement(basis.value, badge(verdict), headings.verdict_in_words(report, basis))


def _told(index: int, folded: Folded, lines: Mapping[tuple[str, int], str]) -> Told:
    finding = folded.first
    return Told(
        id=f"f{index}",
        folded=folded,
        severity=words.severity(finding),
        location=words.location(finding),
        raw=lines.get((finding.path, finding.line or 0)),
    )


def _place(row: ResultSetRow) -> tuple[str, ...]:
    named = (row.round, row.submitter, row.system, row.benchmark, row.division, row.path)
    return tuple(each or "" for each in named)


def _sections(
    drawn: Iterable[DrawnSet], told: Sequence[Told], systems: Iterable[SystemRow]
) -> Iterable[Section]:
    accelerators = {system.path: system.accelerators for system in systems}
    about: dict[str, list[Told]] = {}
    for each in told:
        for folder in {each.finding.path, each.finding.path.rpartition("/")[0]}:
            about.setdefault(folder, []).append(each)
    for index, one in enumerate(drawn):
        yield Section(
            id=f"s{index}",
            drawn=one,
            accelerators=accelerators.get(description_path(one.row)),
            findings=tuple(about.get(one.row.path, ())),
        )
