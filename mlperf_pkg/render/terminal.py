"""Text for a terminal or a pipe: lines, paragraphs and tables, made safe to show.

Plain lines that fit are written directly; colours, folding and wide characters are left to rich,
which takes longer to import than most checks take to run.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Span, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.NOT_CHECKED: "yellow",
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}

_GAP = 2
_MIN_WIDTH = 8  # columns left to the first column of a table, however narrow the view
_HEIGHT = 25  # passed to rich so that it does not query the terminal


class Terminal:
    """Collect lines and tables; ``text()`` returns them as laid out for a terminal or a pipe."""

    def __init__(self, view: View) -> None:
        """Start empty; ``view`` sets width and colours, the environment is not read."""
        self._view = view
        self._stream = io.StringIO()
        self._rich: Console | None = None

    def line(self, *spans: Span) -> None:
        """Add one line of any length, neither cut nor wrapped."""
        plain = self._plain(spans)
        if plain is None:
            self._console().print(_text(*spans), soft_wrap=True)
        else:
            self._stream.write(f"{plain}\n")

    def paragraph(self, *spans: Span) -> None:
        """Add text wrapped at the width of the view."""
        plain = self._plain(spans)
        if plain is None or len(plain) > self._view.width:
            self._console().print(_text(*spans), overflow="fold")
        else:
            self._stream.write(f"{plain}\n")

    def table(self, table: Table, *, apart: bool = False) -> None:
        """Add a table that fits the width, and an empty line after it or, ``apart``, each group.

        Text too wide for its column is folded.
        """
        indented = [
            Group(group.title, [_indented(table.spans(row)) for row in group.rows], group.remarks)
            for group in table.groups
        ]
        titled = [column for _, column in table.titled]
        columns = self._fitted(titled, [row for group in indented for row in group.rows])
        self._rows(columns, [[(column.heading, HEADING) for column in columns]])
        for group in indented:
            if group.title:
                self.paragraph((group.title, HEADING))
            self._rows_of_group(columns, group.rows)
            for remark in group.remarks:
                self._remark(remark)
            if apart:
                self.line()
        if not apart:
            self.line()

    def text(self) -> str:
        """Return all lines, without spaces at their ends."""
        lines = self._stream.getvalue().split("\n")
        return "\n".join(line.rstrip() for line in lines)

    def _plain(self, spans: Iterable[Span]) -> str | None:
        """Return the text of spans, or None if it needs rich: not ASCII, or coloured."""
        text = "".join(visible(part) for part, _ in spans)
        return text if text.isascii() and not self._view.color else None

    def _console(self) -> Console:
        from rich.console import Console

        if self._rich is None:
            self._rich = Console(
                file=self._stream,
                width=self._view.width,
                height=_HEIGHT,
                force_terminal=self._view.color,
                color_system="standard" if self._view.color else None,
                highlight=False,
                legacy_windows=False,
                _environ={},
            )
        return self._rich

    def _remark(self, remark: str) -> None:
        from rich.padding import Padding

        self._console().print(Padding(_text((remark, PLAIN)), (0, 0, 0, _GAP)), overflow="fold")

    def _fitted(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> list[Column]:
        """Return the columns narrowed to their contents."""
        cells = zip(*([(column.heading, HEADING) for column in columns], *rows), strict=True)
        needed = [max(_width(visible(text)) for text, _ in column) for column in cells]
        others = [min(n, column.width) for n, column in zip(needed[1:], columns[1:], strict=True)]
        left = self._view.width - sum(others) - _GAP * len(others)
        widths = [min(needed[0], max(left, _MIN_WIDTH)), *others]
        return [replace(column, width=n) for column, n in zip(columns, widths, strict=True)]

    def _rows_of_group(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> None:
        """Add rows; a first cell that is too wide for its ``whole`` column gets its own line."""
        wide = [
            i for i, row in enumerate(rows) if columns[0].whole and self._too_wide(columns, row)
        ]
        begin = 0
        for index in wide:
            self._rows(columns, rows[begin:index])
            (first, *others), begin = rows[index], index + 1
            if index == 0 or rows[index - 1][0] != first:
                self.line(first)
            self._rows(columns, [[("", PLAIN), *others]])
        self._rows(columns, rows[begin:])

    @staticmethod
    def _too_wide(columns: Sequence[Column], row: Sequence[Span]) -> bool:
        return _width(visible(row[0][0])) > columns[0].width

    def _rows(self, columns: Sequence[Column], rows: Iterable[Sequence[Span]]) -> None:
        spans = list(rows)
        lines = [self._plain_row(columns, row) for row in spans]
        if None in lines:
            self._rich_rows(columns, spans)
        else:
            self._stream.writelines(f"{line}\n" for line in lines)

    def _plain_row(self, columns: Sequence[Column], row: Sequence[Span]) -> str | None:
        cells: list[str] = []
        for column, span in zip(columns, row, strict=True):
            text = self._plain([span])
            if text is None or len(text) > column.width:
                return None
            width = column.width
            cells.append(text.rstrip().rjust(width) if column.numbers else text.ljust(width))
        line = (" " * _GAP).join(cells)
        return line if len(line) <= self._view.width else None

    def _rich_rows(self, columns: Sequence[Column], rows: Iterable[Sequence[Span]]) -> None:
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, _GAP, 0, 0))
        for column in columns:
            table.add_column(
                width=column.width, justify="right" if column.numbers else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*(_text(span) for span in row))
        self._console().print(table)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _indented(row: Sequence[Span]) -> list[Span]:
    (first, style), *others = row
    return [(f"{' ' * _GAP}{first}", style), *others]


def _text(*spans: Span) -> Text:
    from rich.text import Text

    text = Text()
    for part, style in spans:
        text.append(visible(part), style)
    return text
