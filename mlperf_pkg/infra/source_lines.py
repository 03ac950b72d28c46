"""Single lines of a file, as text to show."""

from __future__ import annotations

from collections.abc import Collection

from mlperf_pkg.infra.source import Source

_READ_BYTES = 1 << 20


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
