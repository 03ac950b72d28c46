"""Findings for people: equal findings of several files are folded into one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, folder, name

_MOST_NAMED = 3  # files of a folded finding that are named one by one


class Folded(Struct, frozen=True):
    """The first of several equal findings, and where the others are (empty without others)."""

    first: Finding
    extent: str = ""

    @property
    def basis(self) -> str:
        """The basis in brackets; empty if both verdicts depend on the finding."""
        return "" if self.first.basis is Basis.BOTH else f"[{self.first.basis}]"

    @property
    def message(self) -> str:
        """The message with basis and extent."""
        return " ".join(part for part in (self.first.message, self.basis, self.extent) if part)

    @property
    def remarks(self) -> list[str]:
        """The lines below the message: a hint or the waiver."""
        hint, waiver = self.first.hint, self.first.waiver
        if waiver:
            return [f"waived by {waiver.approved_by} until {waiver.until}: {waiver.reason}"]
        return [f"hint: {hint}"] if hint else []


def shown(report: Report, view: View) -> list[Folded]:
    """Return the findings to show: all with ``verbose``, else folded and without notes."""
    if view.verbose:
        return [Folded(finding) for finding in report.findings]
    logs = Counter(folder(run.path) for run in report.runs)
    paths = {run.path for run in report.runs}
    sets = {row.path for row in report.result_sets}
    kinds: dict[tuple[str, ...], list[Finding]] = {}
    for finding in report.findings:
        if finding.severity is not Severity.NOTE or finding.waiver:
            kinds.setdefault(_kind(finding, about_set=finding.path in sets), []).append(finding)
    return [
        Folded(min(equal, key=_natural), _extent(equal, logs if equal[0].path in paths else None))
        for equal in kinds.values()
    ]


def counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Count the findings of each severity, without waived ones."""
    by_severity = Counter(finding.severity for finding in findings if not finding.waiver)
    return {severity: by_severity[severity] for severity in Severity}


def _kind(finding: Finding, *, about_set: bool) -> tuple[str, ...]:
    """Return a key that equal findings share; findings ``about_set``, a result set, never do."""
    texts = (finding.code, finding.severity, finding.basis, finding.message, finding.hint or "")
    waiver = (str(finding.waiver),) if finding.waiver else ()
    return (finding.path if about_set else folder(finding.path), *texts, *waiver)


def _natural(finding: Finding) -> tuple[list[tuple[int, str]], int]:
    """Return a sort key: files by name, with numbers in it as numbers, then lines."""
    parts = re.split(r"([0-9]+)", finding.path)
    return [(int(p), "") if p.isdecimal() else (0, p) for p in parts], finding.line or 0


def _extent(equal: Sequence[Finding], logs: Counter[str] | None) -> str:
    """Return where equal findings are, if there are several; ``logs`` counts those of folders."""
    ordered = sorted(equal, key=_natural)
    first_of_file = {finding.path: finding for finding in reversed(ordered)}
    if len(first_of_file) == 1:
        return _lines([finding.line for finding in ordered[1:] if finding.line])
    names = [name(wording.location(finding)) for finding in reversed(first_of_file.values())]
    number = f"{len(names)} {'files' if logs is None else 'logs'}"
    if logs and logs[folder(equal[0].path)] == len(names):
        number = f"all {number}"
    listing = ", ".join(names) if len(names) <= _MOST_NAMED else f"{names[0]} ... {names[-1]}"
    return f"(in {number}: {listing})"


def _lines(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    return f"(also on line{'' if len(lines) == 1 else 's'} {', '.join(map(str, lines))})"
