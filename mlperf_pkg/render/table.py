"""One table, and how it is written: Markdown, CSV, rows of JSON, HTML. ``Terminal`` writes text."""

import codecs
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from mlperf_pkg.infra.text import escape_cell, escape_html, escape_markdown
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import MAX_DEPTH, Report, as_json, encodable

HEADING = "bold"
PLAIN = ""
MARKED = "Marked"  # the column of a CSV that names the marked cells of a row

_LONG = 40  # characters of a cell, beyond which its lines are wrapped in HTML

HEAD = ("tool", "usage", "round", "round_reason")
"""The fields of a report with which JSON begins that has other results of a check."""

_TOO_DEEP = "\n" + 2 * MAX_DEPTH * " "
# Patterns of numbers that msgspec may write differently from Python: 1e16 and 0.00001, for which
# Python writes 1e+16 and 1e-05.
_EXPONENT = r"e[-1-9]\d*[],}](?! )"
_SMALL = r"0\.0000(?<=[:,[-]0\.0000)"

_ESCAPED = "mlperf_pkg.json"
"""How characters are encoded that are not ASCII."""

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")

Span = tuple[str, str]
"""A piece of text and its style."""


def shown(value: Any) -> str:
    """Return the text of a cell in a document: numbers as 1,152, of at most 10 digits; None: -."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return wording.NOTHING
    if isinstance(value, float):
        return f"{value:,.10g}"
    if type(value) is int:
        return f"{value:,}"
    return str(value)


class Column(Struct, frozen=True):
    """A column of a table.

    ``title`` heads it in documents (text, Markdown, HTML), ``key`` names it in data (CSV, JSON): a
    column without one of them is left out there. ``of`` returns its value from a row; without it,
    rows are sequences, and the value is at the place of the column; such a value may be a ``Span``.
    ``show`` returns the text of a value in documents, and ``style`` the style of the cell of a row.

    In text, a column is at most ``width`` wide, or as wide as a word; the first one is as wide as
    the others leave room, and a cell that is wider has a line of its own above the other cells.
    ``numbers`` are aligned to the right.
    """

    title: str | None = None
    width: int = 0
    numbers: bool = False
    unit: str = ""
    key: str | None = None
    of: Callable[[Any], Any] | None = None
    show: Callable[[Any], str] = shown
    style: Callable[[Any], str] | None = None

    @property
    def heading(self) -> str:
        """The title with the unit, if any: ``Energy (kJ)``."""
        return f"{self.title} ({self.unit})" if self.unit else self.title or ""


class RowGroup(Struct, frozen=True):
    """Rows of a table, indented below their title if any, and paragraphs (remarks) below."""

    title: str
    rows: Sequence[Any]
    remarks: Sequence[str] = ()


class Table(Struct, frozen=True):
    """A table: columns, rows in groups, and a note below.

    ``marked`` are the cells that differ from what is expected, as (row, column), both from 0;
    ``unverified`` are scores, which say so in documents.
    """

    columns: Sequence[Column]
    groups: Sequence[RowGroup] = ()
    title: str = ""
    note: str = ""
    marked: frozenset[tuple[int, int]] = frozenset()
    unverified: frozenset[tuple[int, int]] = frozenset()

    @property
    def rows(self) -> list[Any]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group.rows]

    @property
    def titled(self) -> list[tuple[int, Column]]:
        """The columns of documents with their places."""
        return [pair for pair in enumerate(self.columns) if pair[1].title is not None]

    @property
    def keyed(self) -> list[tuple[int, Column]]:
        """The columns of data with their places."""
        return [pair for pair in enumerate(self.columns) if pair[1].key is not None]

    def values(self, row: Any) -> list[Any]:
        """Return the cells of a row in data."""
        return [_value(row, place, column) for place, column in self.keyed]

    def spans(self, row: Any) -> list[Span]:
        """Return the cells of a row in documents, with their styles."""
        return [_span(row, place, column) for place, column in self.titled]

    def texts(self, number: int, row: Any) -> list[tuple[int, Column, str]]:
        """Return the cells of the row of this number in documents, with places and columns."""
        cells = []
        for (content, _), (place, column) in zip(self.spans(row), self.titled, strict=True):
            text = content
            if (number, place) in self.unverified:
                text += f" ({wording.UNVERIFIED})"
            cells.append((place, column, text))
        return cells


def table_of(columns: Sequence[Column], rows: Iterable[Any], **more: Any) -> Table:
    """Return a table whose rows are one group without a title."""
    return Table(columns, (RowGroup("", list(rows)),), **more)


def by_key(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Return values by their keys, such as rows by the titles of groups, in the order of both."""
    groups: dict[_Key, list[_Item]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _value(row: Any, place: int, column: Column) -> Any:
    return row[place] if column.of is None else column.of(row)


def _span(row: Any, place: int, column: Column) -> Span:
    value = _value(row, place, column)
    if isinstance(value, tuple):
        return value
    style = column.style(row) if column.style else PLAIN
    return column.show(value), style


# ---- Markdown -----------------------------------------------------------------------------


def markdown(table: Table) -> str:
    """Return a table for each group, below its title and above its remarks; marked cells are bold.

    Without groups, the result is empty.
    """
    paragraphs = []
    first = 0
    for group in table.groups:
        if group.title:
            paragraphs.append(f"### {escape_markdown(group.title)}")
        if group.rows:
            paragraphs.append(_markdown_rows(table, group.rows, first))
        if group.remarks:
            paragraphs.append("\n".join(f"- {escape_markdown(text)}" for text in group.remarks))
        first += len(group.rows)
    if table.note:
        paragraphs.append(escape_markdown(table.note))
    return "\n\n".join(paragraphs)


def document(*paragraphs: str) -> str:
    """Return paragraphs of Markdown as a document, without empty ones."""
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _markdown_rows(table: Table, rows: Sequence[Any], first: int) -> str:
    """Return rows below the heads of their columns; ``first`` is the number of the first one."""
    lines = _markdown_heads([column for _, column in table.titled])
    for number, row in enumerate(rows, first):
        cells = []
        for place, _, text in table.texts(number, row):
            cell = escape_markdown(text)
            is_marked = (number, place) in table.marked
            cells.append(f"**{cell}**" if is_marked else cell)
        lines.append(_markdown_line(cells))
    return "\n".join(lines)


def _markdown_heads(columns: Sequence[Column]) -> list[str]:
    headings = []
    alignments = []
    for column in columns:
        headings.append(escape_markdown(column.heading))
        alignments.append("---:" if column.numbers else "---")
    return [_markdown_line(headings), _markdown_line(alignments)]


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# ---- data ---------------------------------------------------------------------------------


def records(table: Table) -> list[dict[str, Any]]:
    """Return the rows as objects of JSON: the values of the columns by key."""
    keys = [column.key or "" for _, column in table.keyed]
    objects = []
    for row in table.rows:
        values = map(as_json, table.values(row))
        objects.append(dict(zip(keys, values, strict=True)))
    return objects


def csv(table: Table) -> str:
    """Return the rows as CSV; the header has the keys of the columns.

    If cells are marked, a last column (``Marked``) names their columns.
    """
    keys = [column.key for _, column in table.keyed]
    rows = [table.values(row) for row in table.rows]
    if table.marked:
        keys.append(MARKED)
        marked_keys: dict[int, list[str]] = {}
        for number, place in sorted(table.marked):
            marked_keys.setdefault(number, []).append(table.columns[place].key or "")
        for number, row in enumerate(rows):
            row.append(", ".join(marked_keys.get(number, ())))
    return csv_text(keys, rows)


def csv_text(header: Sequence[str | None], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV with ``\\n`` line ends; None is empty, and no text is a formula."""
    from csv import writer  # noqa: PLC0415 - slow to import

    stream = io.StringIO()
    lines = writer(stream, lineterminator="\n")
    lines.writerow(header)
    for row in rows:
        cells = map(as_json, row)
        lines.writerow([escape_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return stream.getvalue()


def json_text(value: Any) -> str:
    """Return JSON of structs and plain values, in ASCII to survive any terminal or pipe."""
    try:
        text = _indented(encodable(value))
        if _TOO_DEEP not in text:
            return text
    except (ValueError, msgspec.DecodeError, RecursionError):
        pass  # NaN, halves of surrogate pairs, or nested too deeply
    return _indented(as_json(value))


def report_json(report: Report, _: object) -> str:
    """Render the whole report in the format ``mlperf-pkg/report/3``."""
    return json_text(report)


def _indented(value: Any) -> str:
    """Return the text of ``json.dumps`` with ``indent=2``, many times faster."""
    text = msgspec.json.encode(value).decode()
    may_differ = re.search(_EXPONENT, text) or ("0.0000" in text and re.search(_SMALL, text))
    if may_differ or "\x7f" in text:
        text = json.dumps(msgspec.to_builtins(value), allow_nan=False, check_circular=False)
    ascii_text = text.encode("ascii", _ESCAPED)
    return msgspec.json.format(ascii_text, indent=2).decode("ascii") + "\n"


def _escaped(error: Any) -> tuple[str, int]:
    """Return characters that are not ASCII as escapes of JSON, and where they end."""
    characters = error.object[error.start : error.end]
    return json.dumps(characters)[1:-1], error.end


codecs.register_error(_ESCAPED, _escaped)


# ---- HTML ---------------------------------------------------------------------------------


def html(table: Table, *, headed: bool = False, checks: bool = False) -> str:
    """Return an element ``table``: numbers have the class ``n``, marked cells the class ``m``.

    In a ``headed`` table, the first cell of a row is its heading, with a checkbox for ``checks``,
    and long cells have the class ``t``.
    """
    head = "".join(_html_head(column) for _, column in table.titled)
    lines = []
    for number, row in enumerate(table.rows):
        cells = []
        for place, column, text in table.texts(number, row):
            classes = ["n"] if column.numbers else []
            if headed and len(text) > _LONG:
                classes.append("t")
            if (number, place) in table.marked:
                classes.append("m")
            if headed and place == 0:
                cells.append(_html_row_head(text, classes, checks=checks))
            else:
                cells.append(f"<td{_class(classes)}>{escape_html(text)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>\n</table>"


def _html_head(column: Column) -> str:
    """Return the head of a column, which may be wrapped after underscores."""
    title = escape_html(column.heading).replace("_", "_<wbr>")
    classes = _class(["n"] if column.numbers else [])
    return f'<th scope="col"{classes}>{title}</th>'


def _html_row_head(text: str, classes: Sequence[str], *, checks: bool) -> str:
    head = escape_html(text)
    if checks:
        head = f'<label><input type="checkbox"> {head}</label>'
    return f'<th scope="row"{_class(classes)}>{head}</th>'


def _class(names: Sequence[str]) -> str:
    return f' class="{" ".join(names)}"' if names else ""
