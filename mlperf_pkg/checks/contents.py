"""The submission as a whole: something to check, every system with results, code at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import Basis, Finding, Severity, without_official
from mlperf_pkg.submission.model import Submission

_SOURCE = "submission_rules, Structure"
_FIRST_ROUND = (1, 0)  # in which the package checker looks at descriptions
_UNREADABLE = frozenset({"SYS001", "SYS002", "SYS003", "SYS004"})


def of_systems(
    submission: Submission, systems: Iterable[SystemFile], version: tuple[int, ...]
) -> Iterator[Finding]:
    """The findings of the descriptions, as far as the official package checker looks at them.

    Before round 1.0 it only reads the division of systems with results, and dies without it.
    """
    used = {each.system for each in submission.result_sets}
    hint = "before round 1.0 the package checker does not look at descriptions"
    for system in systems:
        for finding in system.findings:
            deadly = finding.code in _UNREADABLE or finding.expected == "division"
            seen = version >= _FIRST_ROUND or (system.id in used and deadly)
            yield finding if seen else without_official(finding, hint)


def check_contents(submission: Submission) -> Iterator[Finding]:
    """What no single file or result set can tell."""
    path = submission.place.label or "."
    if not any(each.logs for each in submission.result_sets):
        message = "no result set with a log: nothing was checked"
        yield Finding(code="TREE101", message=message, path=path, basis=Basis.RULES, source=_SOURCE)
    used = {each.system for each in submission.result_sets}
    for system in submission.systems:
        if system.path.stem not in used:
            yield Finding(
                code="TREE120",
                message=f"a system description without results in results/{system.path.stem}/",
                path=system.label,
                severity=Severity.WARNING,
                basis=Basis.RULES,
                source=_SOURCE,
            )
    if submission.code is None:
        yield Finding(
            code="CODE100",
            message="no benchmarks/ folder: the code was not checked",
            path=path,
            severity=Severity.WARNING,
            basis=Basis.RULES,
            source="submission_rules, Code",
        )
