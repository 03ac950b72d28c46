"""The content of a page, as values without markup, in the order of the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from mlperf_pkg.commands.charts.scaling import Looks
from mlperf_pkg.commands.page.cards import Card, cards
from mlperf_pkg.commands.page.columns import Column, choices, columns, in_words
from mlperf_pkg.commands.page.entries import Entry
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.render import findings
from mlperf_pkg.render import findings as words
from mlperf_pkg.render.text import SubmitterRow, Submitters
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow

_ORDER = {severity: index for index, severity in enumerate(Severity)}


class Badge(Struct, frozen=True):
    """A verdict: ``word`` is shown, ``kind`` (pass, fail, not_checked) decides the colour."""

    word: str
    kind: str


class VerdictSummary(Struct, frozen=True):
    """One of the two verdicts on the whole report, with its meaning in words."""

    name: str
    badge: Badge
    words: str


class ShownFinding(Struct, frozen=True):
    """A finding of a page: the id of its element, and the raw line, None if it was not read."""

    id: str
    finding: Finding
    severity: str
    location: str
    sentence: str
    remarks: tuple[str, ...]
    raw: str | None


class Section(Struct, frozen=True):
    """A result set of the page; ``id`` is that of its element."""

    id: str
    entry: Entry
    findings: tuple[ShownFinding, ...]

    @property
    def row(self) -> ResultSetRow:
        """Its row in the report."""
        return self.entry.row

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
        """The heading: benchmark, system and submitter."""
        names = (self.row.benchmark, self.row.system, self.row.submitter)
        return ", ".join(name for name in names if name)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts of the result set by title."""
        row, price = self.row, self.entry.price
        facts = [
            ("Score", f"{wording.minutes(row.score_minutes)} minutes"),
            ("Olympic mean", f"{wording.minutes(row.unscaled_minutes)} minutes"),
            ("Scaling factor", f"{row.scaling_factor:.4f}"),
            ("Summarizer", f"{wording.minutes(row.official_minutes)} minutes"),
            ("Seeds", "pass" if row.seeds.official_pass else "FAIL"),
        ]
        facts += [("Published", in_words(self.entry.standing))] if self.entry.standing else []
        facts += [("Price", f"{price.usd:,.0f} US dollars ({price.source})")] if price else []
        facts += [("Id", row.id), ("Path", row.path)]
        facts += [("Note", row.score_note)] if row.score_note else []
        facts += [("RCP", row.rcp.explanation)] if row.rcp else []
        return facts


class BenchmarkSections(Struct, frozen=True):
    """The result sets of a benchmark; ``id`` is that of the element of their common chart."""

    id: str
    title: str
    sections: tuple[Section, ...]


class Content(Struct, frozen=True):
    """A page; ``cards`` are those of a round, none for the results of one submitter."""

    report: Report
    verdicts: tuple[VerdictSummary, ...]
    submitters: tuple[SubmitterRow, ...]
    cards: tuple[Card, ...]
    benchmarks: tuple[BenchmarkSections, ...]
    findings: tuple[ShownFinding, ...]
    columns: tuple[Column, ...]
    looks: Looks

    @property
    def sections(self) -> list[Section]:
        """All result sets in the order of the page."""
        return [section for group in self.benchmarks for section in group.sections]

    @property
    def is_round(self) -> bool:
        """Whether it has the results of several submitters."""
        return is_round(self.report)

    @property
    def name(self) -> str:
        """What the page is about."""
        usage = {"training": "Training", "hpc": "HPC"}.get(self.report.usage, self.report.usage)
        return f"MLPerf {usage} {self.report.round or 'of several rounds'}"

    @property
    def title(self) -> str:
        """The title of the window: the verdicts, except for a round."""
        words = " / ".join(verdict.badge.word for verdict in self.verdicts)
        return f"{self.name}: {'results' if self.is_round else words}"

    @property
    def number(self) -> int:
        """The number of submitters."""
        return Submitters(self.report).number

    @property
    def choices(self) -> dict[str, list[str]]:
        """The values by which results can be filtered, by column."""
        return choices(self.columns, [section.entry for section in self.sections])


def is_round(report: Report) -> bool:
    """Return whether a report has the results of several submitters."""
    return Submitters(report).number > 1


def shown_findings(report: Report) -> list[Finding]:
    """Return the findings of a page: all, errors first, waived ones last."""
    return sorted(
        report.findings, key=lambda finding: (bool(finding.waiver), _ORDER[finding.severity])
    )


def content(
    report: Report,
    entries: Sequence[Entry],
    lines: Mapping[tuple[str, int], str],
    record: Sequence[PublishedSet] = (),
) -> Content:
    """Return the page of a report.

    ``lines`` are the raw lines of findings by path and line, ``record`` the published sets.
    """
    findings = tuple(
        _finding(index, finding, lines) for index, finding in enumerate(shown_findings(report))
    )
    ordered = sorted(entries, key=_sort_key)
    sections = list(_sections(ordered, findings))
    looks = Looks(entry.accelerator for entry in entries)
    by_id = {section.id: section.entry for section in sections}
    return Content(
        report=report,
        verdicts=tuple(_verdict(report, basis) for basis in (Basis.OFFICIAL, Basis.RULES)),
        submitters=tuple(Submitters(report).rows()),
        cards=cards(by_id, record) if is_round(report) else (),
        benchmarks=tuple(_by_benchmark(sections, named=report.round is None)),
        findings=findings,
        columns=columns(ordered),
        looks=looks,
    )


def amount(value: float | None) -> str:
    """Return a number of epochs or samples as text, however large."""
    try:
        return wording.NOTHING if value is None else f"{value:,.10g}"
    except OverflowError:
        return "more than any number"


def badge(verdict: Verdict) -> Badge:
    """Return a verdict as a badge."""
    return Badge(wording.VERDICTS[verdict], verdict.value)


def _verdict(report: Report, basis: Basis) -> VerdictSummary:
    verdict: Verdict = getattr(report.verdict, basis)
    return VerdictSummary(basis.value, badge(verdict), findings.verdict_in_words(report, basis))


def _finding(index: int, finding: Finding, lines: Mapping[tuple[str, int], str]) -> ShownFinding:
    return ShownFinding(
        id=f"f{index}",
        finding=finding,
        severity=wording.severity(finding),
        location=words.location(finding),
        sentence=words.sentence(finding),
        remarks=tuple(words.remarks(finding)),
        raw=lines.get((finding.path, finding.line or 0)),
    )


def _sort_key(entry: Entry) -> tuple[str, str, str, float, tuple[str, ...]]:
    """Return what orders result sets: the fastest of each round, benchmark and division first."""
    row = entry.row
    names = tuple(name or "" for name in (row.submitter, row.system, row.id))
    score = math.inf if row.score_minutes is None else row.score_minutes
    return row.round or "", row.benchmark, entry.division, score, names


def _sections(entries: Iterable[Entry], findings: Sequence[ShownFinding]) -> Iterable[Section]:
    by_set: dict[str | None, list[ShownFinding]] = {}
    for shown in findings:
        by_set.setdefault(shown.finding.set, []).append(shown)
    for index, entry in enumerate(entries):
        own = tuple(by_set.get(entry.row.id, ()))
        yield Section(id=f"s{index}", entry=entry, findings=own)


def _by_benchmark(sections: Iterable[Section], *, named: bool) -> Iterable[BenchmarkSections]:
    """Yield the result sets by benchmark; ``named``, with their round."""
    groups = groupby(sections, key=lambda section: (section.row.round, section.row.benchmark))
    for index, ((round_, benchmark), members) in enumerate(groups):
        title = f"{benchmark}, round {round_}" if named else benchmark
        yield BenchmarkSections(f"g{index}", title, tuple(members))
