"""A report as workflow commands of GitHub Actions, shown as annotations beside the files.

GitHub shows ten errors, ten warnings and ten notices of a step (and fifty annotations of a job), so
only the most important are written, and the first one says how many are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mlperf_pkg.findings import Finding, Severity
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import ci, findings, headings
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report

SHOWN = 10  # annotations of one kind that GitHub shows for a step
_KINDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_OF_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_OF_PROPERTIES = {**_OF_DATA, ":": "%3A", ",": "%2C"}


def github(report: Report, view: View) -> str:
    """Render one annotation per line: a notice with the verdicts, then the findings."""
    shown = sorted(
        findings.shown(report.findings, view),
        key=lambda finding: (ci.importance(finding), view.checkout.path_of(finding)),
    )
    annotated = list(_first_of_each_kind(shown))
    left_out = Counter(map(_kind, shown)) - Counter(map(_kind, annotated))
    lines = [_command("notice", {"title": "MLPerf check"}, _summary(report, left_out))]
    lines += [
        _command(_kind(finding), _properties(finding, view), ci.finding_text(finding))
        for finding in annotated
    ]
    return "\n".join(lines) + "\n"


def _first_of_each_kind(shown: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings that GitHub shows beside the notice with the verdicts."""
    kinds = Counter(["notice"])
    for finding in shown:
        kind = _kind(finding)
        kinds[kind] += 1
        if kinds[kind] <= SHOWN:
            yield finding


def _kind(finding: Finding) -> str:
    return "notice" if finding.waiver else _KINDS[finding.severity]


def _summary(report: Report, left_out: Mapping[str, int]) -> str:
    lines = [ci.verdicts_in_words(report), headings.counts_in_words(report)]
    lines.append(visible(headings.round_in_words(report)))
    if left_out:
        numbers = ", ".join(wording.counted(number, kind) for kind, number in left_out.items())
        lines.append(
            f"left out: {numbers}; GitHub shows {SHOWN} of a kind, the job summary lists all"
        )
    return "\n".join(lines)


def _properties(finding: Finding, view: View) -> dict[str, str]:
    title = f"waived {finding.code}" if finding.waiver else finding.code
    title = f"{title} {finding.set}" if finding.set else title
    line = {"line": str(finding.line)} if finding.line else {}
    return {"file": visible(view.checkout.path_of(finding)), **line, "title": visible(title)}


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    pairs = (f"{name}={_escaped(value, _OF_PROPERTIES)}" for name, value in properties.items())
    return f"::{kind} {','.join(pairs)}::{_escaped(message, _OF_DATA)}"


def _escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(character, character) for character in text)
