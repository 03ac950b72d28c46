"""A report as Markdown, for the summary of a CI job."""

from __future__ import annotations

from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import findings, headings, tables
from mlperf_pkg.render.terminal import Group
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report


def markdown(report: Report, view: View) -> str:
    """Render verdicts, results and findings, a section each."""
    sections = ("## MLPerf check", verdicts(report), _results(report), _findings(report, view))
    return "\n\n".join(section for section in sections if section) + "\n"


def section(titles: dict[str, bool], group: Group) -> str:
    """Return a heading, a table (``titles`` as for ``tables.markdown_table``) and remarks."""
    rows = [[cell for cell, _ in row] for row in group.rows]
    table = tables.markdown_table(titles, rows) if rows else ""
    remarks = "".join(f"\n- {escape_markdown(remark)}" for remark in group.remarks)
    return f"### {escape_markdown(group.title)}\n\n{table}{remarks}".rstrip()


def verdicts(report: Report) -> str:
    """Return both verdicts, the counts and the round, as a list."""
    lines = [
        f"**{basis}**: {escape_markdown(headings.verdict_sentence(report, basis))}"
        for basis in (Basis.OFFICIAL, Basis.RULES)
    ]
    lines.append(headings.counts_in_words(report))
    lines.append(escape_markdown(headings.round_in_words(report)))
    return "\n".join(f"- {line}" for line in lines)


def _results(report: Report) -> str:
    return f"### Results\n\n{tables.results_markdown(report).rstrip()}"


def _findings(report: Report, view: View) -> str:
    lines = [_finding(finding) for finding in findings.shown(report.findings, view)]
    return "\n".join(["### Findings", "", *lines]) if lines else ""


def _finding(finding: Finding) -> str:
    lines = map(escape_markdown, (findings.sentence(finding), *findings.remarks(finding)))
    text = "\n  <br>".join(lines)
    return (
        f"- {escape_markdown(findings.location(finding))}:"
        f" **{wording.severity(finding)} {escape_markdown(findings.label(finding))}**:"
        f" {text}"
    )
