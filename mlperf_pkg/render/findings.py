"""Findings in words: where they are, what they say, and which of them a view shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from mlperf_pkg.findings import MAX_LINES, Basis, Finding, Occurrence, Severity
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording

_MOST_FILES = 3  # files of a finding that are named one by one
_MOST_LINES = 3


def shown(findings: Iterable[Finding], view: View) -> list[Finding]:
    """Return the findings of the severities that the view shows, and waived findings."""
    severities = view.show.severities
    return [finding for finding in findings if finding.waiver or finding.severity in severities]


def counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Count the findings of each severity, without waived ones."""
    by_severity = Counter(finding.severity for finding in findings if not finding.waiver)
    return {severity: by_severity[severity] for severity in Severity}


def location(finding: Finding) -> str:
    """Return the only file with its line, or what several files belong to.

    Of several files in the folder that was checked, which has no name of its own, it is the first.
    A finding on a whole set of raw logs is at the id, as their folder may hold several sets.
    """
    of_raw_set = finding.set and finding.set == finding.subject and not finding.runs
    if of_raw_set or (len(finding.occurrences) > 1 and not _unnamed(finding)):
        return finding.about
    return finding.path if finding.line is None else f"{finding.path}:{finding.line}"


def sentence(finding: Finding) -> str:
    """Return the message, and in brackets at which places it applies."""
    extent = _extent(finding)
    return f"{finding.text} ({extent})" if extent else finding.text


def label(finding: Finding) -> str:
    """Return the code, and the basis unless both verdicts depend on the finding."""
    return finding.code if finding.basis is Basis.BOTH else f"{finding.code} [{finding.basis}]"


def remarks(finding: Finding) -> list[str]:
    """Return the lines below the message: a hint or the waiver."""
    if waiver := finding.waiver:
        return [f"waived by {waiver.approved_by} until {waiver.until}: {waiver.reason}"]
    return [f"hint: {finding.hint}"] if finding.hint else []


def _extent(finding: Finding) -> str:
    first, *others = (_below(place, finding.about) for place in finding.occurrences)
    runs = f"{finding.runs} of {wording.counted(finding.of_runs or 0, 'run')}" * bool(finding.runs)
    if not others:
        return runs + (_more_lines(first) if runs else _more_lines(first).removeprefix(", "))
    if _unnamed(finding):
        return runs or f"and {wording.counted(len(others), 'other file')}: {_named(others)}"
    if runs:
        return f"{runs}; first {_short(first)}"
    return f"{len(others) + 1} files: {_named((first, *others))}"


def _unnamed(finding: Finding) -> bool:
    """Return whether the files of a finding have nothing in common that has a name."""
    return finding.subject in (None, ".")


def _named(places: Sequence[Occurrence]) -> str:
    names = [_short(place) for place in places[:_MOST_FILES]]
    rest = len(places) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _below(place: Occurrence, about: str) -> Occurrence:
    """Return a place with its path within what the finding is about."""
    return replace(place, path=place.path.removeprefix(f"{about}/"))


def _short(place: Occurrence) -> str:
    line = f":{place.lines[0]}" if place.lines else ""
    return f"{place.path}{line}"


def _more_lines(place: Occurrence) -> str:
    """Return the lines after the first, or their number, which may be larger than what is kept."""
    others = len(place.lines) - 1 if len(place.lines) < MAX_LINES else place.count - 1
    if others <= 0:
        return ""
    if others <= _MOST_LINES:
        lines = ", ".join(map(str, place.lines[1:]))
        return f", also on line{'' if others == 1 else 's'} {lines}"
    return f", and {others} more lines"
