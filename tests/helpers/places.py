"""The places of findings, one by one."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mlperf_pkg.findings import Finding


def unfolded(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings as they were made: one for every line, or every time, of every place."""
    for finding in findings:
        for place in finding.occurrences:
            lines = place.lines or (None,)
            times = place.count if len(lines) == 1 else 1
            assert len(lines) * times == place.count, "more lines than a finding keeps"
            for line in lines * times:
                yield replace(finding.at(place), line=line)
