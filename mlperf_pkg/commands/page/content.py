"""The content of a page, as values without markup, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.commands.charts import DrawnSet
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.render import findings as words
from mlperf_pkg.render import headings
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, SystemRow, description_path

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
    drawn: DrawnSet
    accelerators: int | None
    findings: tuple[ShownFinding, ...]

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
        """The heading: benchmark, system and submitter."""
        names = (self.row.benchmark, self.row.system, self.row.submitter)
        return ", ".join(name for name in names if name)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts of the result set by title."""
        row = self.row
        facts = [
            ("Olympic mean", f"{wording.minutes(row.unscaled_minutes)} minutes"),
            ("Scaling factor", f"{row.scaling_factor:.4f}"),
            ("Score", f"{wording.minutes(row.score_minutes)} minutes"),
            ("Summarizer", f"{wording.minutes(row.official_minutes)} minutes"),
            ("Seeds", "pass" if row.seeds.official_pass else "FAIL"),
            ("Path", row.path),
        ]
        facts += [("Note", row.score_note)] if row.score_note else []
        facts += [("RCP", row.rcp.explanation)] if row.rcp else []
        return facts


class Content(Struct, frozen=True):
    """A page."""

    report: Report
    verdicts: tuple[VerdictSummary, ...]
    sections: tuple[Section, ...]
    findings: tuple[ShownFinding, ...]

    @property
    def title(self) -> str:
        """The title of the page."""
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
            "RCP margin": "",
            "Division": "",
            "Summarizer": "n",
            "Runs": "n",
            "Accelerators": "n",
        }

    @property
    def choices(self) -> dict[str, list[str]]:
        """The values by which results can be filtered, by column."""
        rows = [section.row for section in self.sections]
        columns: dict[str, list[str | None]] = {
            "Round": [row.round for row in rows],
            "Submitter": [row.submitter for row in rows],
            "Benchmark": [row.benchmark for row in rows],
            "Division": [row.division for row in rows],
        }
        choices = {
            name: sorted({value for value in values if value}) for name, values in columns.items()
        }
        return {name: values for name, values in choices.items() if len(values) > 1}


def shown_findings(report: Report) -> list[Finding]:
    """Return the findings of a page: all, errors first, waived ones last."""
    return sorted(
        report.findings, key=lambda finding: (bool(finding.waiver), _ORDER[finding.severity])
    )


def content(
    report: Report, drawn: Sequence[DrawnSet], lines: Mapping[tuple[str, int], str]
) -> Content:
    """Return the page of a report; ``lines`` are the raw lines of findings by path and line."""
    findings = tuple(
        _finding(index, finding, lines) for index, finding in enumerate(shown_findings(report))
    )
    ordered = sorted(drawn, key=lambda drawn_set: _sort_key(drawn_set.row))
    return Content(
        report=report,
        verdicts=tuple(_verdict(report, basis) for basis in (Basis.OFFICIAL, Basis.RULES)),
        sections=tuple(_sections(ordered, findings, report.systems)),
        findings=findings,
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
    return VerdictSummary(basis.value, badge(verdict), headings.verdict_in_words(report, basis))


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


def _sort_key(row: ResultSetRow) -> tuple[str, ...]:
    names = (row.round, row.submitter, row.system, row.benchmark, row.division, row.path)
    return tuple(name or "" for name in names)


def _sections(
    drawn: Iterable[DrawnSet], findings: Sequence[ShownFinding], systems: Iterable[SystemRow]
) -> Iterable[Section]:
    accelerators = {system.path: system.accelerators for system in systems}
    by_folder: dict[str, list[ShownFinding]] = {}
    for shown in findings:
        by_folder.setdefault(shown.finding.about, []).append(shown)
    for index, drawn_set in enumerate(drawn):
        yield Section(
            id=f"s{index}",
            drawn=drawn_set,
            accelerators=accelerators.get(description_path(drawn_set.row)),
            findings=tuple(by_folder.get(drawn_set.row.path, ())),
        )
