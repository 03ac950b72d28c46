"""The items of lists in text, which several commands of ``rcp`` write."""

from __future__ import annotations

from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.rules import wrapped
from mlperf_pkg.render.table import PLAIN
from mlperf_pkg.render.terminal import Terminal


def add_item(terminal: Terminal, mark: str, text: str) -> None:
    """Add an item of a list; its continuation lines are indented by two columns."""
    for line in wrapped(mark, visible(text), len(mark) + 2).split("\n"):
        terminal.line((line, PLAIN))
