"""All tables as an SQLite database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from mlperf_pkg.commands.export.rows import Row, Rows
from mlperf_pkg.commands.export.schema import TABLES, VERSION, Column, Table

_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER"}


def write(path: Path, rows: Rows) -> None:
    """Write a new database; the statements that create its tables contain units and meanings."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("BEGIN")
        for name, table in TABLES.items():
            database.execute(_create(table))
            marks = ", ".join("?" * len(table.columns))
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows.get(name, ()))  # noqa: S608 - our names
        database.execute("COMMIT")


def read(path: Path) -> Rows:
    """Return the rows of a database.

    Raises:
        ValueError: the file is not a database with these tables.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return {name: _rows(database, table) for name, table in TABLES.items()}
    except sqlite3.Error as error:
        raise ValueError(str(error)) from error


def _create(table: Table) -> str:
    last = table.columns[-1]
    lines = [
        _definition(column, "" if column is last and not table.keys else ",")
        for column in table.columns
    ]
    keys = ",\n".join(f"  {key}" for key in table.keys)
    return f"CREATE TABLE {table.name} (\n{''.join(lines)}{keys}) STRICT"


def _definition(column: Column, comma: str) -> str:
    not_null = "" if column.nullable else " NOT NULL"
    unit = f" [{column.unit}]" if column.unit else ""
    return f"  {column.name} {_TYPES[column.type]}{not_null}{comma} -- {column.meaning}{unit}\n"


def _rows(database: sqlite3.Connection, table: Table) -> list[Row]:
    types = [column.type for column in table.columns]
    selected = database.execute(f"SELECT * FROM {table.name} ORDER BY rowid")  # noqa: S608 - our names
    table.refuse_others([name for name, *_ in selected.description])
    if bool not in types:
        return selected.fetchall()
    return [
        tuple(
            bool(value) if type_ is bool and value is not None else value
            for value, type_ in zip(row, types, strict=True)
        )
        for row in selected
    ]
