"""The places of findings, one by one."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mlperf_pkg.findings import Finding, Occurrence


def unfolded(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings as they were made: one for every line, or every time, of every place."""
    for finding in findings:
        for place in finding.occurrences:
            for line in _lines(place):
                yield replace(finding.at(place), line=line)


def _lines(place: Occurrence) -> tuple[int | None, ...]:
    """The line of each time that a finding was made at a place."""
    lines = place.lines or (None,)
    times = place.count if len(lines) == 1 else 1
    assert len(lines) * times == place.count, "more lines than a finding keeps"
    return lines * times
