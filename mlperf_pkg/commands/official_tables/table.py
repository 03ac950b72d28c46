"""A table in the CSV and JSON formats of the official summarizer, which are those of pandas."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.text import escape_cell

Cell = str | int | float | None

_DECIMALS = 10  # that pandas keeps in JSON
_LARGEST, _SMALLEST = 1e16 - 1, 1e-15  # outside this range pandas writes 10 significant digits


class Table(Struct, frozen=True):
    """Rows of cells, one per column; None is an empty cell."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> Table:
        """Sort rows by all columns from the left, empty cells last; absent cells are empty."""
        cells = (tuple(map(row.get, columns)) for row in rows)
        return cls(tuple(columns), tuple(sorted(cells, key=_sort_key)))

    def csv(self) -> str:
        """Write as ``DataFrame.to_csv`` does, except that no text is a formula to a spreadsheet."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(map(_plain, row) for row in self.rows)
        return stream.getvalue()

    def json(self) -> str:
        """Write as ``DataFrame.to_json(orient="records")`` does: numbers have 10 decimals."""
        records = [dict(zip(self.columns, map(_rounded, row), strict=True)) for row in self.rows]
        return json.dumps(records, indent=2, allow_nan=False)


def _sort_key(row: Sequence[Cell]) -> list[tuple[bool, Any]]:
    return [(_is_absent(cell), 0 if _is_absent(cell) else cell) for cell in row]


def _is_absent(cell: Cell) -> bool:
    return cell is None or cell != cell  # noqa: PLR0124 - NaN


def _plain(cell: Cell) -> Cell:
    if _is_absent(cell):
        return None
    return escape_cell(cell) if isinstance(cell, str) else cell


def _rounded(cell: Cell) -> Cell:
    """Return a number as the JSON writer of pandas rounds it."""
    if not isinstance(cell, float):
        return cell
    if not math.isfinite(cell):
        return None
    size = abs(cell)
    if size > _LARGEST or 0 < size < _SMALLEST:
        return float(f"{cell:.{_DECIMALS}g}")
    return math.copysign(_to_decimals(size), cell)


def _to_decimals(size: float) -> float:
    whole = int(size)
    scaled = (size - whole) * 10.0**_DECIMALS
    fraction = int(scaled)
    over = scaled - fraction
    if over > 0.5 or (over == 0.5 and (fraction == 0 or fraction % 2)):  # noqa: PLR2004 - half
        fraction += 1
    carried, fraction = divmod(fraction, 10**_DECIMALS)
    return float(f"{whole + carried}.{fraction:0{_DECIMALS}}")
