"""A report as Markdown, for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterable

from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import findings, headings, tables
from mlperf_pkg.render.groups import Submitters
from mlperf_pkg.render.table import markdown as markdown_table
from mlperf_pkg.render.table import table_of
from mlperf_pkg.render.text import SUBMITTERS
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report

MAX_BYTES = 1_000_000  # GitHub rejects a summary larger than 1 MiB


def markdown(report: Report, view: View) -> str:
    """Render verdicts, submitters of a round, results and findings, a section each."""
    sections = ("## MLPerf check", verdicts(report), _submitters_section(report), _results_section(report))
    lines = "\n\n".join(section for section in sections if section).split("\n")
    if shown := findings.shown(report.findings, view):
        lines += ["", "### Findings", "", *map(_finding_item, shown)]
    return _bounded(lines)


def _bounded(lines: Iterable[str]) -> str:
    """Join rows and findings; leave out those that are too many, and say so."""
    kept, size, left_out = [], 0, 0
    for line in lines:
        size += len(line.encode("utf-8", "replace")) + 1
        if size <= MAX_BYTES:
            kept.append(line)
        else:
            left_out += 1
    if left_out:
        kept += ["", f"{left_out} more lines are left out: a summary has at most 1 MiB."]
    return "\n".join(kept) + "\n"


def verdicts(report: Report) -> str:
    """Return both verdicts, the counts and the round, as a list."""
    lines = [
        f"**{basis}**: {escape_markdown(headings.verdict_sentence(report, basis))}"
        for basis in (Basis.OFFICIAL, Basis.RULES)
    ]
    lines.append(headings.counts_in_words(report))
    rest = (*headings.systems_in_words(report), headings.unjudged_in_words(report))
    lines += map(escape_markdown, filter(None, (headings.round_in_words(report), *rest)))
    return "\n".join(f"- {line}" for line in lines)


def _submitters_section(report: Report) -> str:
    """Return a table of the submitters of a round; nothing for one submission."""
    submitters = Submitters(report)
    if submitters.number < 2:  # noqa: PLR2004 - several
        return ""
    return f"### Submitters\n\n{markdown_table(table_of(SUBMITTERS, submitters.rows()))}"


def _results_section(report: Report) -> str:
    return f"### Results\n\n{tables.results_markdown(report).rstrip()}"


def _finding_item(finding: Finding) -> str:
    lines = map(escape_markdown, (findings.sentence(finding), *findings.remarks(finding)))
    text = "\n  <br>".join(lines)
    return (
        f"- {escape_markdown(findings.location(finding))}:"
        f" **{wording.severity(finding)} {escape_markdown(findings.label(finding))}**:"
        f" {text}"
    )
