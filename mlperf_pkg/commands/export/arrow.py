"""Tables of pyarrow, from which Parquet and DuckDB are written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from mlperf_pkg.commands.export.rows import Row, Rows, round_of
from mlperf_pkg.commands.export.schema import TABLES, Table
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


_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
_TYPES[datetime] = "TIMESTAMP_MS"  # Python needs another package to read times with a zone


def duckdb_library() -> Any:
    """Return DuckDB, after a check for pyarrow, which transfers the rows to it.

    Raises:
        MissingPackageError: DuckDB or pyarrow is not installed.
    """
    arrow_library()
    return require("duckdb", "data", "an export as DuckDB")


def write_duckdb(path: Path, rows: Rows) -> None:
    """Write a new database, with units and meanings as comments on its columns."""
    with closing(duckdb_library().connect(str(path))) as database:
        for name, table in TABLES.items():
            _create(database, table)
            database.register("rows", arrow_table(table, rows.get(name, ()), None))
            database.execute(f"INSERT INTO {name} SELECT * FROM rows")  # noqa: S608 - our names
            database.unregister("rows")
            for statement in table.create_indexes:
                database.execute(statement)


def read_duckdb(path: Path) -> Rows:
    """Return the rows of a database.

    Raises:
        ValueError: the file is not a database with these tables.
    """
    duckdb = duckdb_library()
    options = {"enable_external_access": "false"}
    try:
        with closing(duckdb.connect(str(path), read_only=True, config=options)) as database:
            return {name: _rows(database, table) for name, table in TABLES.items()}
    except duckdb.Error as error:
        raise ValueError(str(error).partition("\n")[0]) from error


def _create(database: Any, table: Table) -> None:
    columns = (
        f"{column.name} {_TYPES[column.type]}{'' if column.nullable else ' NOT NULL'}"
        for column in table.columns
    )
    database.execute(f"CREATE TABLE {table.name} ({', '.join([*columns, *table.keys])})")
    database.execute(f"COMMENT ON TABLE {table.name} IS {_quoted(table.meaning)}")
    for column in table.columns:
        meaning = f"{column.meaning} [{column.unit}]" if column.unit else column.meaning
        database.execute(f"COMMENT ON COLUMN {table.name}.{column.name} IS {_quoted(meaning)}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _rows(database: Any, table: Table) -> list[Row]:
    selected = database.execute(f"SELECT * FROM {table.name} ORDER BY rowid")  # noqa: S608 - our names
    table.refuse_others([name for name, *_ in selected.description])
    return [
        tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in row)
        for row in selected.fetchall()
    ]
