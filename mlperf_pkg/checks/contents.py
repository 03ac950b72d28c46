"""The submission as a whole: something to check, every system with results, code at all."""

from __future__ import annotations

from collections.abc import Iterator

from mlperf_pkg.diagnostics import Basis, Diagnostic, Severity
from mlperf_pkg.submission import Submission

_SOURCE = "submission_rules, Structure"


def check_contents(submission: Submission) -> Iterator[Diagnostic]:
    """What no single file or result set can tell."""
    path = submission.place.label or "."
    if not any(each.logs for each in submission.result_sets):
        message = "no result set with a log: nothing was checked"
        yield Diagnostic(
            code="TREE101", message=message, path=path, basis=Basis.RULES, source=_SOURCE
        )
    used = {each.system for each in submission.result_sets}
    for system in submission.systems:
        if system.path.stem not in used:
            yield Diagnostic(
                code="TREE120",
                message=f"a system description without results in results/{system.path.stem}/",
                path=system.label,
                severity=Severity.WARNING,
                basis=Basis.RULES,
                source=_SOURCE,
            )
    if submission.code is None:
        yield Diagnostic(
            code="CODE100",
            message="no benchmarks/ folder: the code was not checked",
            path=path,
            severity=Severity.WARNING,
            basis=Basis.RULES,
            source="submission_rules, Code",
        )
