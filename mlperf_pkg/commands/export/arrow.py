"""Tables of pyarrow, from which Parquet and DuckDB are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mlperf_pkg.commands.export.rows import Row
from mlperf_pkg.commands.export.schema import Table
from mlperf_pkg.infra.resources import require


def arrow_library() -> Any:
    """Return pyarrow.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    return require("pyarrow", "data", "an export as Parquet or DuckDB")


def arrow_schema(table: Table, zone: str | None = "UTC") -> Any:
    """Return the schema of a table; units and meanings are metadata of its columns.

    ``zone`` is the time zone of timestamps; they are in UTC even if it is None.
    """
    pa = arrow_library()
    types = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("ms", zone),
    }
    fields = [
        pa.field(
            column.name,
            types[column.type],
            nullable=column.nullable,
            metadata={"description": column.meaning, "unit": column.unit},
        )
        for column in table.columns
    ]
    return pa.schema(fields, metadata={"description": table.meaning})


def arrow_table(table: Table, rows: Sequence[Row], zone: str | None = "UTC") -> Any:
    """Return rows as a table of pyarrow."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(table.columns)
    schema = arrow_schema(table, zone)
    return arrow_library().Table.from_arrays(
        [
            arrow_library().array(values, type=field.type)
            for values, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )
