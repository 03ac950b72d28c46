"""A report for the code quality widget of GitLab."""

from __future__ import annotations

import json
from typing import Any

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import ci
from mlperf_pkg.render.view import View
from mlperf_pkg.results.report import Report

_ERRORS = {Basis.BOTH: "blocker", Basis.OFFICIAL: "critical", Basis.RULES: "major"}
_OTHERS = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(report: Report, view: View) -> str:
    """Render an array of all findings, including notes and waived findings."""
    fingerprints = ci.fingerprints(report.findings, view)
    pairs = zip(report.findings, fingerprints, strict=True)
    return (
        json.dumps([_issue(finding, fingerprint, view) for finding, fingerprint in pairs], indent=2)
        + "\n"
    )


def _issue(finding: Finding, fingerprint: str, view: View) -> dict[str, Any]:
    return {
        "description": ci.text_with_set(finding).replace("\n", "; "),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": _severity(finding),
        "location": {
            "path": visible(view.checkout.path_of(finding)),
            "lines": {"begin": finding.line or 1},
        },
    }


def _severity(finding: Finding) -> str:
    if finding.waiver:
        return "info"
    if finding.is_error:
        return _ERRORS.get(finding.basis, _OTHERS[Severity.ERROR])
    return _OTHERS[finding.severity]
