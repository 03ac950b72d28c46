"""Findings as a reader wants them: those that say the same of many places become one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, folder, name

_LISTED = 3  # places of a folded finding that are named one by one


class Folded(Struct, frozen=True):
    """A finding, the first of its kind, and in words where else it holds (empty: nowhere)."""

    first: Finding
    extent: str = ""

    @property
    def basis(self) -> str:
        """Whose rule it is, in brackets; empty for both, as that needs no remark."""
        return "" if self.first.basis is Basis.BOTH else f"[{self.first.basis}]"

    @property
    def message(self) -> str:
        """The message with its basis and extent."""
        return " ".join(part for part in (self.first.message, self.basis, self.extent) if part)

    @property
    def remarks(self) -> list[str]:
        """What is to be read below it: how to mend it, who waived it."""
        hint, waiver = self.first.hint, self.first.waiver
        listed = [f"hint: {hint}"] if hint and not waiver else []
        if waiver:
            until = f"until {waiver.until}"
            listed.append(f"waived by {waiver.approved_by} {until}: {waiver.reason}")
        return listed


def shown(report: Report, view: View) -> list[Folded]:
    """The findings to show, by file: with ``verbose`` each of them, else folded without notes."""
    if view.verbose:
        return [Folded(finding) for finding in report.findings]
    logs = Counter(folder(run.path) for run in report.runs)
    paths = {run.path for run in report.runs}
    sets = {row.path for row in report.result_sets}
    kinds: dict[tuple[str, ...], list[Finding]] = {}
    for finding in report.findings:
        if finding.severity is not Severity.NOTE or finding.waiver:
            whole = finding.path in sets
            kinds.setdefault(_kind(finding, whole), []).append(finding)
    return [
        Folded(min(alike, key=_natural), _extent(alike, logs if alike[0].path in paths else None))
        for alike in kinds.values()
    ]


def counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """How many findings there are of each severity, without those that are waived."""
    found = Counter(finding.severity for finding in findings if not finding.waiver)
    return {severity: found[severity] for severity in Severity}


def _kind(finding: Finding, whole: bool) -> tuple[str, ...]:
    """Findings of one kind become one; those about the ``whole`` of a result set stay apart."""
    said = (finding.code, finding.severity, finding.basis, finding.message, finding.hint or "")
    waiver = (str(finding.waiver),) if finding.waiver else ()
    return (finding.path if whole else folder(finding.path), *said, *waiver)


def _natural(finding: Finding) -> tuple[list[tuple[int, str]], int]:
    """Files by name with their numbers as numbers, then lines."""
    parts = re.split(r"([0-9]+)", finding.path)
    return [(int(p), "") if p.isdecimal() else (0, p) for p in parts], finding.line or 0


def _extent(alike: Sequence[Finding], logs: Counter[str] | None) -> str:
    """Where findings that say the same were made, if in more than one place."""
    ordered = sorted(alike, key=_natural)
    first_of_file = {finding.path: finding for finding in reversed(ordered)}
    if len(first_of_file) == 1:
        return _lines([finding.line for finding in ordered[1:] if finding.line])
    places = [name(wording.location(finding)) for finding in reversed(first_of_file.values())]
    number = f"{len(places)} {'files' if logs is None else 'logs'}"
    if logs and logs[folder(alike[0].path)] == len(places):
        number = f"all {number}"
    listed = ", ".join(places) if len(places) <= _LISTED else f"{places[0]} ... {places[-1]}"
    return f"(in {number}: {listed})"


def _lines(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    return f"(also on line{'' if len(lines) == 1 else 's'} {', '.join(map(str, lines))})"
