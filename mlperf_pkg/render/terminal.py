"""A page of text for a terminal or a pipe; everything on it is made safe to show.

Plain lines that fit are written as they are; colours, folding and wide characters are for rich,
which takes longer to import than most checks to run.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.view import View

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
        self._made: Console | None = None

    def line(self, *spans: Span) -> None:
        """One line of any length: it is neither cut nor wrapped."""
        plain = self._plain(spans)
        if plain is None:
            self._console().print(_text(*spans), soft_wrap=True)
        else:
            self._stream.write(f"{plain}\n")

    def paragraph(self, *spans: Span) -> None:
        """Text wrapped at the width of the page."""
        plain = self._plain(spans)
        if plain is None or len(plain) > self._view.width:
            self._console().print(_text(*spans), overflow="fold")
        else:
            self._stream.write(f"{plain}\n")

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

    def _plain(self, spans: Iterable[Span]) -> str | None:
        """The text of spans, if each of its characters is as wide as the next, and of no colour."""
        text = "".join(visible(part) for part, _ in spans)
        return text if text.isascii() and not self._view.color else None

    def _console(self) -> Console:
        from rich.console import Console  # noqa: PLC0415 - slow to import

        if self._made is None:
            self._made = Console(
                file=self._stream,
                width=self._view.width,
                height=_HEIGHT,
                force_terminal=self._view.color,
                color_system="standard" if self._view.color else None,
                highlight=False,
                legacy_windows=False,
                _environ={},
            )
        return self._made

    def _remark(self, remark: str) -> None:
        from rich.padding import Padding  # noqa: PLC0415 - slow to import

        self._console().print(Padding(_text((remark, PLAIN)), (0, 0, 0, _GAP)), overflow="fold")

    def _fitted(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> list[Column]:
        """The columns no wider than their contents."""
        cells = zip(*([(column.title, HEADING) for column in columns], *rows), strict=True)
        wanted = [max(_width(visible(text)) for text, _ in column) for column in cells]
        others = [min(n, column.width) for n, column in zip(wanted[1:], columns[1:], strict=True)]
        left = self._view.width - sum(others) - _GAP * len(others)
        widths = [min(wanted[0], max(left, _LEAST)), *others]
        return [replace(column, width=n) for column, n in zip(columns, widths, strict=True)]

    def _rows(self, columns: Sequence[Column], rows: Iterable[Sequence[Span]]) -> None:
        listed = list(rows)
        lines = [self._plain_row(columns, row) for row in listed]
        if None in lines:
            self._rich_rows(columns, listed)
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
        from rich.table import Table  # noqa: PLC0415 - slow to import

        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, _GAP, 0, 0))
        for column in columns:
            table.add_column(
                width=column.width,
                justify="right" if column.numbers else "left",
                overflow="fold",
            )
        for row in rows:
            table.add_row(*(_text(span) for span in row))
        self._console().print(table)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - slow to import

    return cell_len(text)


def _indented(row: Sequence[Span]) -> list[Span]:
    (first, style), *others = row
    return [(f"{' ' * _GAP}{first}", style), *others]


def _text(*spans: Span) -> Text:
    from rich.text import Text  # noqa: PLC0415 - slow to import

    text = Text()
    for part, style in spans:
        text.append(visible(part), style)
    return text
