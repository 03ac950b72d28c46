"""Text for a terminal or a pipe: lines, paragraphs and tables, made safe to show.

Text is wrapped between words only; a word that is too long for the width stays whole.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, zip_longest

from msgspec.structs import replace

from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Span, Table
from mlperf_pkg.results import wording

STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.NOT_CHECKED: "yellow",
    Severity.ERROR: "bold red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "cyan",
}

RCP_MARGIN = Column(
    "RCP margin",
    16,
    of=wording.rcp,
    style=lambda row: STYLES[Verdict.FAIL] if wording.rcp_state(row) == "fail" else PLAIN,
)

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
        while most and _rows(_wrapped(spans, width), width) > most and spans[0][0] != _CUT:
            (text, style), *rest = spans
            kept = text.removesuffix(_CUT)[: most * self._view.width].rpartition(" ")[0]
            spans = ((f"{kept}{_CUT}", style), *rest)
        self._lines += map(self._painted, _wrapped(spans, width))

    def paragraph(self, *spans: Span) -> None:
        """Add text wrapped at the width of the view, every line indented like the first."""
        self._lines += map(self._painted, _wrapped(spans, self._view.width, 0))

    def table(self, table: Table, *, apart: bool = False) -> None:
        """Add a table that fits the width, and an empty line after it or, ``apart``, each group.

        Text too wide for its column is wrapped.
        """
        indented = [[_indented(table.spans(row)) for row in group.rows] for group in table.groups]
        titled = [column for _, column in table.titled]
        columns = self._fitted(titled, list(chain.from_iterable(indented)))
        self._table_rows(columns, [[(column.heading, HEADING) for column in columns]])
        for group, rows in zip(table.groups, indented, strict=True):
            if group.title:
                self.paragraph((group.title, HEADING))
            self._table_rows(columns, rows)
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
        return "".join(
            f"\x1b[{';'.join(_CODES[name] for name in style.split())}m{text}\x1b[0m"
            if style and text and self._view.color
            else text
            for text, style in spans
        )

    def _fitted(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> list[Column]:
        """Return the columns narrowed to their contents, but none narrower than a word."""
        widths: list[int] = []
        for column, *cells in zip(columns, *rows, strict=True):
            texts = [column.heading, *(visible(text) for text, _ in cells)]
            word = max(_width(word) for text in texts for word in text.split() or [""])
            needed = max(map(_width, texts))
            widths.append(min(needed, max(word, column.width)) if widths else needed)
        left = self._view.width - sum(widths[1:]) - _GAP * len(widths[1:])
        widths[0] = min(widths[0], max(left, _MIN_WIDTH))
        return [replace(column, width=n) for column, n in zip(columns, widths, strict=True)]

    def _table_rows(self, columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> None:
        """Add rows; a first cell that is too wide has its own line, and does so once."""
        above: Span | None = None
        for first, *others in rows:
            row = [first, *others]
            if _width(visible(first[0])) > columns[0].width:
                if first != above:
                    self._lines.append(self._painted(*_folded([first], math.inf)))
                row[0] = (PLAIN, PLAIN)
            above = first
            cells = [
                _folded([cell], column.width) for cell, column in zip(row, columns, strict=True)
            ]
            for line in zip_longest(*cells, fillvalue=[(PLAIN, PLAIN)]):
                parts = map(self._cell, line, columns)
                self._lines.append((" " * _GAP).join(parts))

    def _cell(self, spans: Sequence[Span], column: Column) -> str:
        space = " " * (column.width - _width("".join(text for text, _ in spans)))
        text = self._painted(spans)
        return space + text if column.numbers else text + space


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _rows(lines: Iterable[Sequence[Span]], width: float) -> int:
    """Return how many rows of a terminal lines take."""
    texts = ("".join(text for text, _ in line) for line in lines)
    return sum(max(1, math.ceil(_width(text) / width)) for text in texts)


def _indented(row: Sequence[Span]) -> list[Span]:
    (first, style), *others = row
    return [(f"{' ' * _GAP}{first}", style), *others]


def _wrapped(spans: Sequence[Span], width: float, more: int = _GAP) -> list[list[Span]]:
    """Return lines; those after an indented one are indented by ``more`` further columns."""
    text = "".join(visible(part) for part, _ in spans)
    indent = len(text) - len(text.lstrip())
    hanging = indent + more if indent else 0
    first, *others = _folded(spans, width, hanging)
    return [first, *([(" " * hanging, PLAIN), *other] for other in others)]


def _folded(spans: Sequence[Span], width: float, hanging: int = 0) -> list[list[Span]]:
    """Return lines of visible text, all but the first narrower by ``hanging``."""
    shown = [(visible(text), style) for text, style in spans]
    starts = list(accumulate((len(text) for text, _ in shown), initial=0))
    return [
        [
            (text[max(0, first - start) : max(0, last - start)], style)
            for (text, style), start in zip(shown, starts, strict=False)
        ]
        for first, last in _breaks("".join(text for text, _ in shown), width, hanging)
    ]


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
