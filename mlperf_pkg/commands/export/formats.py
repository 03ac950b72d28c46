"""The formats of an export: Parquet, CSV, SQLite and DuckDB.

Each has a function that writes a new file and one that reads it. The latter raises ``ValueError``
for a file without these tables and ``OSError`` for one that cannot be read.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.export.rows import Row, Rows, iso, round_of
from mlperf_pkg.commands.export.schema import TABLES, VERSION, Table
from mlperf_pkg.infra.resources import require
from mlperf_pkg.infra.text import unescape_formula
from mlperf_pkg.render.table import csv_text

# ---- Parquet, with one row group for each round ---------------------------------------------


def _arrow() -> Any:
    return require("pyarrow", "data", "an export as Parquet or DuckDB")


def _parquet() -> Any:
    return require("pyarrow.parquet", "data", "an export as Parquet")


def _arrow_schema(table: Table, zone: str | None = "UTC") -> Any:
    """Return the schema of a table; units and meanings are metadata of its columns.

    ``zone`` is the time zone of timestamps; they are in UTC even if it is None.
    """
    pa = _arrow()
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


def _arrow_table(table: Table, rows: Sequence[Row], zone: str | None = "UTC") -> Any:
    """Return rows as a table of pyarrow."""
    pa, schema = _arrow(), _arrow_schema(table, zone)
    columns = zip(*rows, strict=True) if rows else ((),) * len(table.columns)
    arrays = [pa.array(values, type=f.type) for values, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _write_parquet(path: Path, table: Table, rows: Sequence[Row]) -> None:
    """Write rows in the order of their rounds."""
    with _parquet().ParquetWriter(path, _arrow_schema(table), compression="zstd") as writer:
        for _, of_round in groupby(rows, round_of):
            part = _arrow_table(table, list(of_round))
            writer.write_table(part, row_group_size=part.num_rows)


def _read_parquet(path: Path, table: Table) -> list[Row]:
    data = _parquet().read_table(path, partitioning=None)
    table.refuse_others(data.schema.names)
    if not data.schema.equals(_arrow_schema(table)):
        raise ValueError("the columns have other types")
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))


# ---- CSV: a header, empty cells for null, ``true`` and ``false`` ------------------------------

_BOOLEANS = {True: "true", False: "false"}
_TO_CSV: Mapping[type, Callable[[Any], Any]] = {bool: _BOOLEANS.__getitem__, datetime: iso}
_FROM_CSV: Mapping[type, Callable[[str], Any]] = {
    str: unescape_formula,
    int: int,
    float: float,
    bool: {text: value for value, text in _BOOLEANS.items()}.__getitem__,
    datetime: datetime.fromisoformat,
}


def _write_csv(path: Path, table: Table, rows: Sequence[Row]) -> None:
    """Write a table; strings that a spreadsheet would run as formulas are escaped."""
    names = [column.name for column in table.columns]
    cells = ([_TO_CSV[type(v)](v) if type(v) in _TO_CSV else v for v in row] for row in rows)
    path.write_text(csv_text(names, cells), "utf-8")


def _read_csv(path: Path, table: Table) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        table.refuse_others(next(reader, []))
        return [
            tuple(
                None if not cell and column.nullable else _FROM_CSV[column.type](cell)
                for cell, column in zip(cells, table.columns, strict=True)
            )
            for cells in reader
        ]


# ---- SQLite ---------------------------------------------------------------------------------

_SQLITE_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER", datetime: "TEXT"}
_FROM_SQLITE: Mapping[type, Callable[[Any], Any]] = {bool: bool, datetime: datetime.fromisoformat}


def _write_sqlite(path: Path, rows: Rows) -> None:
    """Write a database; the statements that create its tables contain units and meanings."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("BEGIN")
        for name, table in TABLES.items():
            database.execute(_sqlite_table(table))
            marks = ", ".join("?" * len(table.columns))
            texts = (
                [iso(v) if isinstance(v, datetime) else v for v in row]
                for row in rows.get(name, ())
            )
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", texts)  # noqa: S608 - our names
            for statement in table.create_indexes:
                database.execute(statement)
        database.execute("ANALYZE")  # so that joins use the indexes
        database.execute("COMMIT")


def _sqlite_table(table: Table) -> str:
    lines = []
    for column in table.columns:
        not_null = "" if column.nullable else " NOT NULL"
        definition = f"{column.name} {_SQLITE_TYPES[column.type]}{not_null}"
        lines.append(f"  {definition}, -- {column.described}\n")
    keys = ",\n".join(f"  {key}" for key in table.keys)
    return f"CREATE TABLE {table.name} (\n{''.join(lines)}{keys}) STRICT"


def _read_sqlite(path: Path) -> Rows:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return {name: _sqlite_rows(database, table) for name, table in TABLES.items()}
    except sqlite3.Error as error:
        raise ValueError(str(error)) from error


def _sqlite_rows(database: sqlite3.Connection, table: Table) -> list[Row]:
    types = [column.type for column in table.columns]
    selected = database.execute(f"SELECT * FROM {table.name} ORDER BY rowid")  # noqa: S608 - our names
    table.refuse_others([name for name, *_ in selected.description])
    if _FROM_SQLITE.keys().isdisjoint(types):
        return selected.fetchall()
    return [
        tuple(
            _FROM_SQLITE[type_](value) if type_ in _FROM_SQLITE and value is not None else value
            for value, type_ in zip(row, types, strict=True)
        )
        for row in selected
    ]


# ---- DuckDB ---------------------------------------------------------------------------------

_DUCKDB_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
_DUCKDB_TYPES[datetime] = "TIMESTAMP_MS"  # Python needs another package to read times with a zone


def _duckdb() -> Any:
    """Return DuckDB, after a check for pyarrow, which transfers the rows to it."""
    _arrow()
    return require("duckdb", "data", "an export as DuckDB")


def _write_duckdb(path: Path, rows: Rows) -> None:
    """Write a database, with units and meanings as comments on its columns."""
    with closing(_duckdb().connect(str(path))) as database:
        for name, table in TABLES.items():
            _create_duckdb_table(database, table)
            database.register("rows", _arrow_table(table, rows.get(name, ()), None))
            database.execute(f"INSERT INTO {name} SELECT * FROM rows")  # noqa: S608 - our names
            database.unregister("rows")
            for statement in table.create_indexes:
                database.execute(statement)


def _create_duckdb_table(database: Any, table: Table) -> None:
    columns = (
        f"{column.name} {_DUCKDB_TYPES[column.type]}{'' if column.nullable else ' NOT NULL'}"
        for column in table.columns
    )
    database.execute(f"CREATE TABLE {table.name} ({', '.join([*columns, *table.keys])})")
    comments = {f"TABLE {table.name}": table.meaning}
    comments |= {f"COLUMN {table.name}.{c.name}": c.described for c in table.columns}
    for subject, text in comments.items():
        quoted = text.replace("'", "''")
        database.execute(f"COMMENT ON {subject} IS '{quoted}'")


def _read_duckdb(path: Path) -> Rows:
    duckdb = _duckdb()
    options = {"enable_external_access": "false"}
    try:
        with closing(duckdb.connect(str(path), read_only=True, config=options)) as database:
            return {name: _duckdb_rows(database, table) for name, table in TABLES.items()}
    except duckdb.Error as error:
        raise ValueError(str(error).partition("\n")[0]) from error


def _duckdb_rows(database: Any, table: Table) -> list[Row]:
    selected = database.execute(f"SELECT * FROM {table.name} ORDER BY rowid")  # noqa: S608 - our names
    table.refuse_others([name for name, *_ in selected.description])
    return [
        tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in row)
        for row in selected.fetchall()
    ]


# ---- all formats ----------------------------------------------------------------------------


class TableFormat(Struct, frozen=True):
    """A format of one table in a file; ``library`` raises MissingPackageError if one is missing."""

    write: Callable[[Path, Table, Sequence[Row]], None]
    read: Callable[[Path, Table], list[Row]]
    library: Callable[[], object] = lambda: None


class DatabaseFormat(Struct, frozen=True):
    """A format of all tables in one file; see ``TableFormat``."""

    write: Callable[[Path, Rows], None]
    read: Callable[[Path], Rows]
    library: Callable[[], object] = lambda: None


FORMATS: Mapping[str, TableFormat | DatabaseFormat] = {
    ".parquet": TableFormat(_write_parquet, _read_parquet, _parquet),
    ".csv": TableFormat(_write_csv, _read_csv),
    ".sqlite": DatabaseFormat(_write_sqlite, _read_sqlite),
    ".duckdb": DatabaseFormat(_write_duckdb, _read_duckdb, _duckdb),
}
"""The formats by file ending."""
