"""The raw lines of logs and system descriptions that findings are about."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source, raw_lines
from mlperf_pkg.submission.model import Place

EXCERPT = 300  # characters of a line that are shown


def excerpts(checked: Checked, findings: Iterable[Finding]) -> dict[tuple[str, int], str]:
    """Return the raw lines of findings by path and line, as far as they can be read.

    Raises:
        UserError: an input is in a store.
    """
    sources = _local_sources(checked)
    numbers: dict[str, set[int]] = {}
    for finding in findings:
        if finding.line and finding.path in sources:
            numbers.setdefault(finding.path, set()).add(finding.line)
    texts: dict[tuple[str, int], str] = {}
    for path, lines in numbers.items():
        with suppress(OSError):
            raw = raw_lines(sources[path], lines, EXCERPT)
            texts |= {(path, line): text for line, text in raw.items()}
    return texts


def _local_sources(checked: Checked) -> dict[str, Source]:
    """Return the logs and system descriptions of a check by their paths in its report.

    Raises:
        UserError: one of them is in a store.
    """
    places = (place for contents in checked.inputs for place in contents.places.values())
    return {place.label: _local_source(place) for place in places}


def _local_source(place: Place) -> Source:
    if place.source.stored:
        raise UserError(f"{place.path}: is in an object store; expected a path of this machine")
    return place.source
