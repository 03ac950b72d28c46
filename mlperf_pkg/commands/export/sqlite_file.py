"""All tables as an SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from mlperf_pkg.commands.export.rows import Row, Rows, iso
from mlperf_pkg.commands.export.schema import TABLES, VERSION, Column, Table

_SQLITE_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER", datetime: "TEXT"}
_FROM_SQLITE: Mapping[type, Callable[[Any], Any]] = {bool: bool, datetime: datetime.fromisoformat}


def write_sqlite(path: Path, rows: Rows) -> None:
    """Write a new database; the statements that create its tables contain units and meanings."""
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


def read_sqlite(path: Path) -> Rows:
    """Return the rows of a database.

    Raises:
        ValueError: the file is not a database with these tables.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return {name: _sqlite_rows(database, table) for name, table in TABLES.items()}
    except sqlite3.Error as error:
        raise ValueError(str(error)) from error


def _sqlite_table(table: Table) -> str:
    columns = "".join(map(_definition, table.columns))
    keys = ",\n".join(f"  {key}" for key in table.keys)
    return f"CREATE TABLE {table.name} (\n{columns}{keys}) STRICT"


def _definition(column: Column) -> str:
    not_null = "" if column.nullable else " NOT NULL"
    unit = f" [{column.unit}]" if column.unit else ""
    return f"  {column.name} {_SQLITE_TYPES[column.type]}{not_null}, -- {column.meaning}{unit}\n"


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
