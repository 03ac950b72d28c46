"""Lines of text that several of these commands write alike."""

from __future__ import annotations

from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.rules import wrapped
from mlperf_pkg.render.terminal import PLAIN, Terminal


def add_item(terminal: Terminal, mark: str, text: str) -> None:
    """Add an item of a list: its further lines start two columns after the first."""
    for line in wrapped(mark, visible(text), len(mark) + 2).split("\n"):
        terminal.line((line, PLAIN))
