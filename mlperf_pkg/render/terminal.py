"""Text for a terminal or a pipe: lines, paragraphs and tables, made safe to show.

Text is wrapped between words only; a word that is too long for the width stays whole.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from msgspec.structs import replace

from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Span, Table
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow

STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.NOT_CHECKED: "yellow",
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}


def _style_of_rcp(row: ResultSetRow) -> str:
    return STYLES[Verdict.FAIL] if wording.rcp_state(row) in ("fail", "missing") else PLAIN


RCP_MARGIN = Column("RCP margin", 16, of=wording.rcp, style=_style_of_rcp)

_EMPTY: Span = (PLAIN, PLAIN)
_GAP = 2
_MIN_WIDTH = 8  # columns left to the first column of a table, however narrow the view
_CUT = " ...  "  # in place of what a line has too much
_WORD = r"\S+( \[\w+\]$)?"  # with the basis after a code
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Terminal:
    """Collect lines and tables; ``text()`` returns them as laid out for a terminal or a pipe."""

    def __init__(self, view: View) -> None:
        """Start empty; ``view`` sets width and colours, the environment is not read."""
        self._view = view
        self._lines: list[str] = []

    def line(self, *spans: Span, most: int = 0) -> None:
        """Add one line, which only a view that ``wraps`` wraps.

        There it has at most ``most`` lines: the first span is cut at a word.
        """
        width = self._view.width if self._view.wraps else math.inf
        lines = _wrapped(spans, width)
        while most and _rows(lines, width) > most and spans[0][0] != _CUT:
            (text, style), *rest = spans
            text = text.removesuffix(_CUT)
            longest = text[: most * self._view.width]
            kept, _, _ = longest.rpartition(" ")
            spans = ((f"{kept}{_CUT}", style), *rest)
            lines = _wrapped(spans, width)
        for line in lines:
            self._lines.append(self._painted(line))

    def paragraph(self, *spans: Span) -> None:
        """Add text wrapped at the width of the view, every line indented like the first."""
        self._lines += map(self._painted, _wrapped(spans, self._view.width, 0))

    def table(self, table: Table, *, apart: bool = False) -> None:
        """Add a table that fits the width, and an empty line after it or, ``apart``, each group.

        Text too wide for its column is wrapped.
        """
        cells = []
        for group in table.groups:
            cells.append([_indented(table.spans(row)) for row in group.rows])
        titled = [column for _, column in table.titled]
        columns = self._fitted(titled, list(chain.from_iterable(cells)))
        self._table_rows(columns, [[(column.heading, HEADING) for column in columns]])
        for group, cells_of_group in zip(table.groups, cells, strict=True):
            if group.title:
                self.paragraph((group.title, HEADING))
            self._table_rows(columns, cells_of_group)
            for remark in group.remarks:
                self.paragraph((f"{' ' * _GAP}{remark}", PLAIN))
            if apart:
                self.line()
        if not apart:
            self.line()

    def text(self) -> str:
        """Return all lines, without spaces at their ends."""
        return "".join(f"{line.rstrip()}\n" for line in self._lines)

    def _painted(self, spans: Sequence[Span]) -> str:
        """Return visible text with the escapes of its styles, if the view has colours."""
        parts = []
        for text, style in spans:
            if style and text and self._view.color:
                codes = ";".join(_CODES[name] for name in style.split())
                parts.append(f"\x1b[{codes}m{text}\x1b[0m")
            else:
                parts.append(text)
        return "".join(parts)

    def _fitted(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> list[Column]:
        """Return the columns narrowed to their contents, but none narrower than a word."""
        fitted: list[Column] = []
        for column, *cells in zip(columns, *rows, strict=True):
            texts = [column.heading]
            for text, _ in cells:
                texts.append(visible(text))
            width = max(map(_width, texts))
            if fitted:  # not the first one, which gets the rest of the view
                width = min(width, max(_longest_word(texts), column.width))
            fitted.append(replace(column, width=width))
        first, *others = fitted
        taken = sum(column.width + _GAP for column in others)
        left = max(self._view.width - taken, _MIN_WIDTH)
        return [replace(first, width=min(first.width, left)), *others]

    def _table_rows(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> None:
        """Add rows; a first cell that is too wide has its own line, and does so once."""
        above: Span | None = None
        for first, *others in rows:
            row = [first, *others]
            if _width(visible(first[0])) > columns[0].width:
                if first != above:
                    self._lines.append(self._painted(*_folded([first], math.inf)))
                row[0] = _EMPTY
            above = first
            cells = [
                _folded([cell], column.width) for cell, column in zip(row, columns, strict=True)
            ]
            for line in zip_longest(*cells, fillvalue=[_EMPTY]):
                self._lines.append((" " * _GAP).join(map(self._cell, line, columns)))

    def _cell(self, spans: Sequence[Span], column: Column) -> str:
        space = " " * (column.width - _width(_text(spans)))
        painted = self._painted(spans)
        if column.numbers:
            return space + painted
        return painted + space


def _longest_word(texts: Iterable[str]) -> int:
    words = chain.from_iterable(text.split() for text in texts)
    return max(map(_width, words), default=0)


def _text(spans: Iterable[Span]) -> str:
    return "".join(text for text, _ in spans)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _rows(lines: Iterable[Sequence[Span]], width: float) -> int:
    """Return how many rows of a terminal lines take."""
    rows = 0
    for line in lines:
        rows += max(1, math.ceil(_width(_text(line)) / width))
    return rows


def _indented(row: Sequence[Span]) -> list[Span]:
    (first, style), *others = row
    indent = " " * _GAP
    return [(f"{indent}{first}", style), *others]


def _wrapped(spans: Sequence[Span], width: float, more: int = _GAP) -> list[list[Span]]:
    """Return lines; those after an indented one are indented by ``more`` further columns."""
    text = visible(_text(spans))
    indent = len(text) - len(text.lstrip())
    hanging = indent + more if indent else 0
    first, *others = _folded(spans, width, hanging)
    lines = [first]
    for line in others:
        lines.append([(" " * hanging, PLAIN), *line])
    return lines


def _folded(spans: Sequence[Span], width: float, hanging: int = 0) -> list[list[Span]]:
    """Return lines of visible text, all but the first narrower by ``hanging``."""
    shown = [(visible(text), style) for text, style in spans]
    lines = []
    for first, last in _breaks(_text(shown), width, hanging):
        line = []
        start = 0
        for text, style in shown:
            line.append((text[max(0, first - start) : max(0, last - start)], style))
            start += len(text)
        lines.append(line)
    return lines


def _breaks(text: str, width: float, hanging: int) -> Iterator[tuple[int, int]]:
    """Yield where lines start and end, each with as many words as fit."""
    start = end = 0
    room = width
    for word in re.finditer(_WORD, text):
        if end and _width(text[start : word.end()]) > room:
            yield start, end
            start = word.start()
            room = width - hanging
        end = word.end()
    yield start, end
