"""The tables as a workbook: a sheet for each division, in it a section for each availability.

This is not compared with the official summarizer's own export: its configuration is not part of
the installed package, and it calls functions that pandas no longer has.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, time
from itertools import count
from typing import Any

from mlperf_pkg.checks.described import CATEGORIES, category
from mlperf_pkg.commands.official_tables.rows import Summary
from mlperf_pkg.commands.official_tables.table import Cell, Table
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.resources import require
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS

_SECTIONS = ("onprem", "cloud", "preview", "research")
_OTHER = "other"
_WIDTH = 18
_LONGEST = 32767  # characters of a cell
_OPTIONS = {
    "in_memory": True,
    "nan_inf_to_errors": True,
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
}


def workbook(summary: Summary) -> bytes:
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
        sheet.set_column(0, len(table.columns), _WIDTH)
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
