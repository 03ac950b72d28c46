"""A page of text for a terminal or a pipe; everything on it is made safe to show."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mlperf_pkg.diagnostics import Severity, Verdict
from mlperf_pkg.escape import visible
from mlperf_pkg.render.view import View

HEADING = "bold"
PLAIN = ""
STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.NOT_CHECKED: "yellow",
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}

_GAP = 2
_LEAST = 8  # columns left to the first column of a table, however narrow the page
_HEIGHT = 25  # told to rich so that it asks no terminal

Span = tuple[str, str]
"""A piece of text and its style."""


class Column(Struct, frozen=True):
    """A column of a table: its title, its width at most and whether it holds numbers.

    The first column of a table takes what the others leave, whatever its own width.
    """

    title: str
    width: int = 0
    numbers: bool = False


class Group(Struct, frozen=True):
    """Rows of a table below a line of their own, and paragraphs below them; all is indented."""

    title: str
    rows: Sequence[Sequence[Span]]
    remarks: Sequence[str] = ()


class Page:
    """Collects lines and tables; ``text()`` is the page."""

    def __init__(self, view: View) -> None:
        """An empty page, which knows nothing of the environment."""
        self._view = view
        self._stream = io.StringIO()
        self._console = Console(
            file=self._stream,
            width=view.width,
            height=_HEIGHT,
            force_terminal=view.color,
            color_system="standard" if view.color else None,
            highlight=False,
            legacy_windows=False,
            _environ={},
        )

    def line(self, *spans: Span) -> None:
        """One line of any length: it is neither cut nor wrapped."""
        self._console.print(_text(*spans), soft_wrap=True)

    def paragraph(self, *spans: Span) -> None:
        """Text wrapped at the width of the page."""
        self._console.print(_text(*spans), overflow="fold")

    def table(
        self, columns: Sequence[Column], groups: Iterable[Group], *, apart: bool = False
    ) -> None:
        """A table that fits the page, with an empty line after it or, ``apart``, each group.

        What is too wide for its column is folded.
        """
        listed = [Group(g.title, [_indented(row) for row in g.rows], g.remarks) for g in groups]
        columns = self._fitted(columns, [row for group in listed for row in group.rows])
        self._rows(columns, [[(column.title, HEADING) for column in columns]])
        for group in listed:
            self.paragraph((group.title, HEADING))
            self._rows(columns, group.rows)
            for remark in group.remarks:
                self._remark(remark)
            if apart:
                self.line()
        if not apart:
            self.line()

    def text(self) -> str:
        """The page, without spaces at the ends of its lines."""
        lines = self._stream.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines)

    def _remark(self, remark: str) -> None:
        self._console.print(Padding(_text((remark, PLAIN)), (0, 0, 0, _GAP)), overflow="fold")

    def _fitted(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> list[Column]:
        """The columns no wider than their contents."""
        cells = zip(*([(column.title, HEADING) for column in columns], *rows), strict=True)
        wanted = [max(cell_len(visible(text)) for text, _ in column) for column in cells]
        others = [min(n, column.width) for n, column in zip(wanted[1:], columns[1:], strict=True)]
        left = self._view.width - sum(others) - _GAP * len(others)
        widths = [min(wanted[0], max(left, _LEAST)), *others]
        return [replace(column, width=n) for column, n in zip(columns, widths, strict=True)]

    def _rows(self, columns: Sequence[Column], rows: Iterable[Sequence[Span]]) -> None:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, _GAP, 0, 0))
        for column in columns:
            table.add_column(
                width=column.width,
                justify="right" if column.numbers else "left",
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(_text(span) for span in row))
        self._console.print(table)


def _indented(row: Sequence[Span]) -> list[Span]:
    (first, style), *others = row
    return [(f"{' ' * _GAP}{first}", style), *others]


def _text(*spans: Span) -> Text:
    text = Text()
    for part, style in spans:
        text.append(visible(part), style)
    return text
