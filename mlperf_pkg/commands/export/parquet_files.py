"""A table as Parquet, with one row group for each round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mlperf_pkg.commands.export.arrow import arrow_schema, arrow_table
from mlperf_pkg.commands.export.rows import Row, round_of
from mlperf_pkg.commands.export.schema import Table
from mlperf_pkg.infra.resources import require


def parquet_library() -> Any:
    """Return the part of pyarrow that reads and writes Parquet.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    return require("pyarrow.parquet", "data", "an export as Parquet")


def write_parquet(path: Path, table: Table, rows: Sequence[Row]) -> None:
    """Write a table, whose rows are in the order of their rounds."""
    with parquet_library().ParquetWriter(path, arrow_schema(table), compression="zstd") as writer:
        for _, of_round in groupby(rows, round_of):
            part = arrow_table(table, list(of_round))
            writer.write_table(part, row_group_size=part.num_rows)


def read_parquet(path: Path, table: Table) -> list[Row]:
    """Return the rows of a table.

    Raises:
        ValueError: the file is not Parquet, or does not have these columns.
        OSError: the file cannot be read.
    """
    data = parquet_library().read_table(path, partitioning=None)
    table.refuse_others(data.schema.names)
    if not data.schema.equals(arrow_schema(table)):
        raise ValueError("the columns have other types")
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))
