"""The raw lines of logs and system descriptions that findings are about."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.charts.drawing import local_sources
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.source import Source

EXCERPT = 300  # characters of a line that are shown
_READ_BYTES = 1 << 20


def excerpts(checked: Checked, findings: Iterable[Finding]) -> dict[tuple[str, int], str]:
    """Return the raw lines of findings by path and line, as far as they can be read.

    Raises:
        UserError: an input is in a store.
    """
    sources = local_sources(checked)
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


def raw_lines(source: Source, numbers: Collection[int], limit: int) -> dict[int, str]:
    """Return the text of the lines of these ``numbers``, each up to ``limit`` characters.

    Raises:
        OSError: the file cannot be read.
    """
    lines: dict[int, str] = {}
    last, line, start = max(numbers, default=0), 1, True
    with source.open() as stream:
        while line <= last and (piece := stream.readline(_READ_BYTES)):
            if start and line in numbers:
                text = piece.decode("utf-8", "replace").strip()
                lines[line] = text if len(text) <= limit else f"{text[: limit - 3]}..."
            start = piece.endswith(b"\n")
            line += start
    return lines
