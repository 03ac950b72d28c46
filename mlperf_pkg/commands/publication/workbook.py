"""A publication as a workbook: a sheet for each division, with a section for each category."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, groupby
from typing import Any

from mlperf_pkg.commands.official_tables.workbook import book, fitting
from mlperf_pkg.commands.publication.model import Publication
from mlperf_pkg.commands.publication.tables import COUNTS, HEAD, TAIL, Kind, Table, tables

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
