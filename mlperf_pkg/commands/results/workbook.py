"""A publication as a workbook: a sheet for each division, with a section for each category."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, time
from itertools import count, groupby
from typing import Any

from mlperf_pkg.checks.described import CATEGORIES, category
from mlperf_pkg.commands.results.official import Cell, Summary, Table
from mlperf_pkg.commands.results.publication import Publication
from mlperf_pkg.commands.results.tables import COUNTS, HEAD, TAIL, Kind, Table, tables
from mlperf_pkg.infra.numbers import to_finite
from mlperf_pkg.infra.resources import require
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS

_WIDTHS = {
    "id": 34,
    "submitter": 24,
    "system": 36,
    "processor": 34,
    "accelerator": 34,
    "software": 30,
    "notes": 60,
    "remarks": 40,
}
_WIDTH = 14
_FORMATS = {Kind.TIME: "0.000", Kind.WEAK: "General", Kind.ENERGY: "0"}


def workbook(publication: Publication) -> bytes:
    """Return the tables as XLSX; the bytes are reproducible.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    with book(publication.usage, publication.round) as (contents, stream):
        styles: dict[str, Any] = {
            "head": contents.add_format({"bold": True, "border": 1, "text_wrap": True}),
            "section": contents.add_format({"bold": True, "bg_color": "#C0C0C0"}),
            **{kind: contents.add_format({"num_format": _FORMATS[kind]}) for kind in Kind},
        }
        for title, group in groupby(tables(publication), _sheet_name):
            _write(contents.add_worksheet(title), list(group), styles)
        _write_missing(contents.add_worksheet("without a score"), publication, styles)
    return stream.getvalue()


def _sheet_name(table: Table) -> str:
    kind = "" if table.kind is Kind.TIME else f" {table.kind.value}"
    return f"{table.division}{kind}"


def _write(sheet: Any, group: Sequence[Table], styles: dict[str, Any]) -> None:
    columns = group[0].columns
    sheet.freeze_panes(1, len(HEAD) - len(COUNTS) - 3)
    for index, column in enumerate(columns):
        sheet.set_column(index, index, _WIDTHS.get(column, _WIDTH))
    sheet.write_row(0, 0, columns, styles["head"])
    line = count(1)
    for table in group:
        heading = next(line)
        sheet.merge_range(heading, 0, heading, len(columns) - 1, "", styles["section"])
        sheet.write_string(heading, 0, table.category, styles["section"])
        for cells in table.cells():
            start, end = len(HEAD), len(columns) - len(TAIL)
            at = next(line)
            sheet.write_row(at, 0, map(fitting, cells[:start]))
            sheet.write_row(at, start, map(fitting, cells[start:end]), styles[table.kind])
            sheet.write_row(at, end, map(fitting, cells[end:]))


def _write_missing(sheet: Any, publication: Publication, styles: dict[str, Any]) -> None:
    sheet.set_column(0, 2, 40)
    sheet.write_row(0, 0, ("id", "result set", "reason"), styles["head"])
    for line, score in enumerate(publication.without_score, 1):
        sheet.write_row(line, 0, map(fitting, (score.id, score.path, score.reason)))


_SECTIONS = ("onprem", "cloud", "preview", "research")
_OTHER = "other"
_OFFICIAL_WIDTH = 18
_LONGEST = 32767  # characters of a cell
_OPTIONS = {
    "in_memory": True,
    "nan_inf_to_errors": True,
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
}


def official_workbook(summary: Summary) -> bytes:
    """Return the plain table and that of weak scaling as XLSX; the bytes are reproducible.

    Rows are numbered across all sheets, as ``2.0-0001``.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    with book(summary.usage, summary.round) as (contents, stream):
        writer = _Writer(contents, summary.round)
        for title, table in _sheets(summary):
            writer.sheet(title, table)
    return stream.getvalue()


@contextmanager
def book(usage: str, round_: str) -> Iterator[tuple[Any, io.BytesIO]]:
    """Provide a workbook of XlsxWriter and the stream that has its reproducible bytes at the end.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    xlsxwriter = require("xlsxwriter", "xlsx", "a workbook")
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, _OPTIONS) as contents:
        # A fixed creation time, so that the bytes are reproducible.
        day = load_round(usage, round_).submission_date
        contents.set_properties({"created": datetime.combine(day, time(), UTC)})
        yield contents, stream


def _sheets(summary: Summary) -> Iterator[tuple[str, Table]]:
    """Yield a sheet per division, even an empty one, and a sheet for unknown divisions."""
    for suffix, table in (("", summary.plain), (" weak scaling", summary.weak)):
        if table is None:
            continue
        for division in (*DIVISIONS, _OTHER):
            rows = [row for row in table.rows if _division(row[0]) == division]
            if rows or (division != _OTHER and not suffix):
                yield division + suffix, Table(table.columns, tuple(rows))


def _division(cell: Cell) -> str:
    return cell if isinstance(cell, str) and cell in DIVISIONS else _OTHER


def _sections(table: Table) -> Iterator[tuple[str, Sequence[tuple[Cell, ...]]]]:
    column = table.columns.index("availability")
    sections: dict[str, list[tuple[Cell, ...]]] = {CATEGORIES[name]: [] for name in _SECTIONS}
    for row in table.rows:
        availability = str(row[column] or "no availability")
        title = CATEGORIES.get(category(availability) or "", availability)
        sections.setdefault(title, []).append(row)
    return ((name, rows) for name, rows in sections.items() if rows)


class _Writer:
    """Writes sheets into a workbook of XlsxWriter."""

    def __init__(self, book: Any, round_: str) -> None:
        self._book = book
        self._round = round_
        self._number = count()
        self._heading = book.add_format({"bold": True, "border": 1, "text_wrap": True})
        self._section = book.add_format({"bold": True, "bg_color": "#C0C0C0"})

    def sheet(self, title: str, table: Table) -> None:
        sheet = self._book.add_worksheet(title)
        sheet.freeze_panes(1, 1)
        sheet.set_column(0, len(table.columns), _OFFICIAL_WIDTH)
        sheet.write_row(0, 0, ("ID", *table.columns), self._heading)
        line = count(1)
        for name, rows in _sections(table):
            index = next(line)
            sheet.merge_range(index, 0, index, len(table.columns), "", self._section)
            sheet.write_string(index, 0, visible(name)[:_LONGEST], self._section)
            for row in rows:
                sheet.write_row(next(line), 0, (self._id(), *map(fitting, row)))

    def _id(self) -> str:
        return f"{self._round}-{next(self._number):04}"


def fitting(cell: Cell) -> Cell:
    """Return a cell that the format can hold; its numbers are doubles."""
    if isinstance(cell, int) and to_finite(cell) is None:
        cell = str(cell)
    return visible(cell)[:_LONGEST] if isinstance(cell, str) else cell
