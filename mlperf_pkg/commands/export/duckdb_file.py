"""All tables as a DuckDB database."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlperf_pkg.commands.export.arrow import arrow_table
from mlperf_pkg.commands.export.arrow import arrow_library
from mlperf_pkg.commands.export.rows import Row, Rows
from mlperf_pkg.commands.export.schema import TABLES, Table
from mlperf_pkg.infra.resources import require

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
