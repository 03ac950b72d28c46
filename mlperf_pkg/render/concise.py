"""A report with one line per finding, as from a compiler, for editors and problem matchers."""

from __future__ import annotations

from msgspec.structs import replace

from mlperf_pkg.findings import Finding, Severity
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import ci, findings
from mlperf_pkg.render.view import Checkout, View
from mlperf_pkg.results.report import Report


def concise(report: Report, view: View) -> str:
    """Render ``path:line: severity CODE message``; paths are relative to the current folder."""
    paths = replace(view.checkout, root=view.checkout.here)
    return "".join(
        f"{_line(finding, paths)}\n" for finding in findings.shown(report.findings, view)
    )


def _line(finding: Finding, paths: Checkout) -> str:
    line = f":{finding.line}" if finding.line else ""
    severity = Severity.NOTE if finding.waiver else finding.severity
    text = ci.text_with_set(finding).replace("\n", "; ")
    return f"{visible(paths.path_of(finding))}{line}: {severity} {finding.code} {text}"
