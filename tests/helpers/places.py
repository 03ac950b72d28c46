"""The places of findings, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mlperf_pkg.findings import Finding


def unfolded(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings as they were made: one for every line, or every time, of every place."""
    for finding in findings:
        for place in finding.occurrences:
            lines = place.lines or (None,) * place.count
            assert len(lines) == place.count, "more lines than a finding keeps"
            for line in lines:
                yield replace(finding.at(place), line=line)
