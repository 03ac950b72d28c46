"""A table as CSV: a header, empty cells for null, ``true`` and ``false``."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mlperf_pkg.commands.export.rows import Row, iso
from mlperf_pkg.commands.export.schema import Column, Table
from mlperf_pkg.infra.text import unescape_formula
from mlperf_pkg.render.table import csv_text

_BOOLEANS = {True: "true", False: "false"}
_FROM_CSV: Mapping[type, Callable[[str], Any]] = {
    str: unescape_formula,
    int: int,
    float: float,
    bool: {text: value for value, text in _BOOLEANS.items()}.__getitem__,
    datetime: datetime.fromisoformat,
}
_TO_CSV: Mapping[type, Callable[[Any], Any]] = {bool: _BOOLEANS.__getitem__, datetime: iso}


def write_csv(path: Path, table: Table, rows: Sequence[Row]) -> None:
    """Write a table; strings that a spreadsheet would run as formulas are escaped."""
    names = [column.name for column in table.columns]
    cells = ([_TO_CSV[type(v)](v) if type(v) in _TO_CSV else v for v in row] for row in rows)
    path.write_text(csv_text(names, cells), "utf-8")


def read_csv(path: Path, table: Table) -> list[Row]:
    """Return the rows of a table.

    Raises:
        ValueError: the file does not have these columns, or a cell is not of its type.
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        table.refuse_others(next(reader, []))
        return [_csv_row(cells, table) for cells in reader]


def _csv_row(cells: Sequence[str], table: Table) -> Row:
    return tuple(_csv_value(cell, column) for cell, column in zip(cells, table.columns, strict=True))


def _csv_value(cell: str, column: Column) -> Any:
    return None if not cell and column.nullable else _FROM_CSV[column.type](cell)
