"""Write tables into a file or a folder, whole or not at all, and read them back."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.export.arrow import (
    duckdb_library,
    parquet_library,
    read_duckdb,
    read_parquet,
    write_duckdb,
    write_parquet,
)
from mlperf_pkg.commands.export.rows import Row, Rows, iso
from mlperf_pkg.commands.export.schema import TABLES, VERSION, Column, Table
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import private_folder, refuse_within
from mlperf_pkg.infra.folders import new_folder
from mlperf_pkg.infra.text import unescape_formula
from mlperf_pkg.render.table import csv_text


class TableFormat(Struct, frozen=True):
    """A format of one table in a file; ``library`` raises MissingPackageError if one is missing.

    ``read`` raises ValueError or OSError for a file that is not such a table.
    """

    write: Callable[[Path, Table, Sequence[Row]], None]
    read: Callable[[Path, Table], list[Row]]
    library: Callable[[], object] = lambda: None


class DatabaseFormat(Struct, frozen=True):
    """A format of all tables in one file; see ``TableFormat``."""

    write: Callable[[Path, Rows], None]
    read: Callable[[Path], Rows]
    library: Callable[[], object] = lambda: None


FORMATS: Mapping[str, TableFormat | DatabaseFormat] = {
    ".parquet": TableFormat(write_parquet, read_parquet, parquet_library),
    ".csv": TableFormat(write_csv, read_csv),
    ".sqlite": DatabaseFormat(write_sqlite, read_sqlite),
    ".duckdb": DatabaseFormat(write_duckdb, read_duckdb, duckdb_library),
}
"""The formats by file ending."""


class Destination(Struct, frozen=True):
    """The destination of tables: a file, or a folder with a file for each table.

    ``table`` is the only table to write, None for all tables, as in a database.
    """

    path: Path
    table: str | None = None

    @property
    def holds_all(self) -> bool:
        """Whether this is a database, which holds all tables."""
        return isinstance(self._format, DatabaseFormat)

    @property
    def is_folder(self) -> bool:
        """Whether the tables are files of a folder."""
        return self.table is None and not self.holds_all

    def refuse_early(self, inputs: Sequence[str], *, replace: bool) -> None:
        """Check before the work starts that the tables can be written.

        Raises:
            UserError: the path exists and is not an export or ``replace`` is not set, or a library
                is not installed (``MissingPackageError``).
        """
        refuse_within(self.path, inputs)
        self._format.library()
        if not self.path.parent.is_dir():
            raise UserError(f"{self.path}: the folder {self.path.parent} does not exist")
        if not self.path.exists():
            return
        if not replace:
            raise UserError(f"{self.path}: exists already; --append adds to it, --force overwrites")
        if self.is_folder and not self._holds_only_tables(self.path):
            raise UserError(f"{self.path}: is not a folder that contains only tables")
        if not self.is_folder and not self.path.is_file():
            raise UserError(f"{self.path}: is not a regular file")

    def read(self) -> Rows:
        """Return the rows of an earlier export.

        Raises:
            UserError: the path cannot be read, or is not an export.
        """
        try:
            if isinstance(self._format, DatabaseFormat):
                return self._format.read(self.path)
            files = self._files(self.path)
            return {name: self._format.read(file, TABLES[name]) for name, file in files.items()}
        except (ValueError, OSError) as error:
            reason = f"is not an export of this version (format {VERSION}): {reason_of(error)}"
            raise UserError(f"{self.path}: {reason}; --force overwrites it") from error

    def write(self, rows: Rows, *, replace: bool) -> None:
        """Write the rows.

        Raises:
            UserError: the path exists and ``replace`` is not set, or it cannot be written.
        """
        if not self.is_folder:
            with private_folder(self.path.parent, [self.path.name], replace=replace) as private:
                self._write(private / self.path.name, rows)
            return
        try:
            with new_folder(self.path, lambda old: replace and self._holds_only_tables(old)) as new:
                self._write(new, rows)
        except FileExistsError as error:
            raise UserError(f"{self.path}: exists already and is not overwritten") from error
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from error

    @property
    def _format(self) -> TableFormat | DatabaseFormat:
        return FORMATS[self.path.suffix]

    def _files(self, path: Path) -> dict[str, Path]:
        """Return the files of the tables by their names."""
        if self.table:
            return {self.table: path}
        return {name: path / f"{name}{self.path.suffix}" for name in TABLES}

    def _write(self, path: Path, rows: Rows) -> None:
        if isinstance(self._format, DatabaseFormat):
            self._format.write(path, rows)
            return
        for name, file in self._files(path).items():
            self._format.write(file, TABLES[name], rows.get(name, ()))

    def _holds_only_tables(self, folder: Path) -> bool:
        files = set(self._files(folder).values())
        return folder.is_dir() and all(path in files for path in folder.iterdir())


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
    return tuple(
        _csv_value(cell, column) for cell, column in zip(cells, table.columns, strict=True)
    )


def _csv_value(cell: str, column: Column) -> Any:
    return None if not cell and column.nullable else _FROM_CSV[column.type](cell)


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
