"""The formats of an export (Parquet, CSV and SQLite), and where it is written.

Each has a function that writes a new file and one that reads it. The latter raises one of
``NOT_AN_EXPORT`` for a file of other contents, whatever they are. A file is opened as it was
written: views, triggers and functions in a database are not run.
"""

import csv
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import chain, groupby
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from msgspec import Struct

from mlperf_pkg.commands.export.rows import Row, Rows, accepted, iso, round_of
from mlperf_pkg.commands.export.schema import LARGEST, MOST_ROWS, TABLES, VERSION, ExportTable
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import new_folder, private_folder, refuse_within
from mlperf_pkg.infra.paths import open_file, refuse_larger
from mlperf_pkg.infra.resources import require
from mlperf_pkg.infra.text import unescape_formula
from mlperf_pkg.render.table import csv_text

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

NOT_AN_EXPORT = (UserError, ValueError, TypeError, OSError, csv.Error, sqlite3.Error)
_BATCH = 1000  # rows
_MOST_MEMORY = 300 << 20  # bytes that a batch may take
_STATM = Path("/proc/self/statm")
_Part = TypeVar("_Part")


# ---- Parquet, with one row group for each round ---------------------------------------------


def _parquet() -> Any:
    return require("pyarrow.parquet", "data", "an export as Parquet")


def _arrow_schema(table: ExportTable) -> Any:
    """Return the schema of a table; units and meanings are metadata of its columns."""
    pa = require("pyarrow", "data", "an export as Parquet")
    types = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime: pa.timestamp("ms", "UTC"),
    }
    fields = []
    for column in table.columns:
        metadata = {"description": column.meaning, "unit": column.unit}
        fields.append(pa.field(column.name, types[column.type], column.nullable, metadata))
    return pa.schema(fields, metadata={"description": table.meaning})


def _arrow_table(schema: Any, rows: Sequence[Row]) -> Any:
    """Return rows, of which there are some, as a table of pyarrow."""
    pa = require("pyarrow", "data", "an export as Parquet")
    arrays = []
    for values, field in zip(zip(*rows, strict=True), schema, strict=True):
        arrays.append(pa.array(values, type=field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _write_parquet(path: Path, table: ExportTable, rows: Sequence[Row]) -> None:
    """Write rows in the order of their rounds."""
    schema = _arrow_schema(table)
    # A stream, as pyarrow refuses a path that is not UTF-8.
    with (
        path.open("wb") as stream,
        _parquet().ParquetWriter(stream, schema, compression="zstd") as writer,
    ):
        for _, rows_of_round in groupby(rows, round_of):
            row_group = _arrow_table(schema, list(rows_of_round))
            writer.write_table(row_group, row_group_size=row_group.num_rows)


def _read_parquet(path: Path, table: ExportTable) -> list[Row]:
    with open_file(path) as stream, _parquet().ParquetFile(stream) as file:
        is_ours = file.schema_arrow.equals(_arrow_schema(table))
        _refuse_others(table, file.schema_arrow.names, file.metadata.num_rows, is_ours=is_ours)
    # A string of a dictionary takes memory once, however many rows have it.
    texts = [column.name for column in table.columns if column.type is str]
    with open_file(path) as stream, _parquet().ParquetFile(stream, read_dictionary=texts) as file:
        batches = map(_rows_in, file.iter_batches(_BATCH, use_threads=False))
        return accepted(table, chain.from_iterable(_within_memory(batches)))


def _within_memory(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield parts, for each of which the process may take ``_MOST_MEMORY``, if Linux can limit it.

    A page of a file may be of any size, whatever the file says of it.

    Raises:
        ValueError: a part needs more.
    """
    while _STATM.exists():
        limits = resource.getrlimit(resource.RLIMIT_AS)
        soft, hard = limits
        used = int(_STATM.read_text().split()[0]) * resource.getpagesize()
        most = used + _MOST_MEMORY
        if soft >= 0:  # there is a limit already
            most = min(most, soft)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        try:
            part = next(parts, None)
        except MemoryError as error:
            raise ValueError(
                f"some rows need more than {_MOST_MEMORY:,} bytes of memory"
            ) from error
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        if part is None:
            return
        yield part
    yield from parts


def _rows_in(batch: Any) -> Iterator[Row]:
    return zip(*map(_values, batch.columns), strict=True)


def _values(column: Any) -> list[Any]:
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    indices = column.indices.to_pylist()
    used = [index for index in set(indices) if index is not None]
    if not used:
        return [None] * len(indices)
    texts = dict(zip(used, column.dictionary.take(used).to_pylist(), strict=True))
    return list(map(texts.get, indices))


# ---- CSV: a header, empty cells for null, ``true`` and ``false`` ------------------------------

_LONGEST_LINE = 1 << 22  # characters
_BOOLEANS = {"true": True, "false": False}
_FROM_CSV: Mapping[type, Callable[[str], Any]] = {
    str: unescape_formula,
    int: int,
    float: float,
    bool: lambda text: _BOOLEANS.get(text, text),
    datetime: datetime.fromisoformat,
}


def _write_csv(path: Path, table: ExportTable, rows: Sequence[Row]) -> None:
    """Write a table; strings that a spreadsheet would run as formulas are escaped."""
    names = [column.name for column in table.columns]
    path.write_text(csv_text(names, map(_csv_cells, rows)), "utf-8")


def _csv_cells(row: Row) -> list[Any]:
    cells = []
    for value in row:
        if isinstance(value, bool):
            cells.append("true" if value else "false")
        elif isinstance(value, datetime):
            cells.append(iso(value))
        else:
            cells.append(value)
    return cells


def _read_csv(path: Path, table: ExportTable) -> list[Row]:
    with open_file(path) as stream:
        refuse_larger(stream, LARGEST)
        reader = csv.reader(_lines(stream), strict=True)
        _refuse_others(table, next(reader, []))
        return accepted(table, (_row_of(cells, table, _FROM_CSV, "") for cells in reader))


def _row_of(
    stored: Sequence[Any],
    table: ExportTable,
    conversions: Mapping[type, Callable[[Any], Any]],
    null: str | None,
) -> Row:
    """Return the values that a format stored; ``null`` is how it stores that there is none."""
    values: list[Any] = []
    for value, column in zip(stored, table.columns, strict=True):
        is_null = value == null and column.nullable
        convert = conversions.get(column.type)
        if is_null:
            values.append(None)
        else:
            values.append(convert(value) if convert else value)
    return tuple(values)


def _lines(stream: BinaryIO) -> Iterator[str]:
    while line := stream.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise ValueError("a line is too long")
        yield line.decode("utf-8")


# ---- SQLite ---------------------------------------------------------------------------------

_SQLITE_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER", datetime: "TEXT"}
_FLAGS = {0: False, 1: True}
_FROM_SQLITE: Mapping[type, Callable[[Any], Any]] = {
    bool: lambda value: _FLAGS.get(value, value),
    datetime: datetime.fromisoformat,
}
_COMMENT = re.compile("--.*")
_RESERVED = ("set",)  # words of SQL that are names of columns


def _write_sqlite(path: Path, rows: Rows) -> None:
    """Write a database; the statements that create its tables contain units and meanings.

    Raises:
        OSError: it cannot be written, as a disk is full.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            _fill(database, rows)
    except sqlite3.OperationalError as error:
        raise OSError(str(error).partition("\n")[0]) from error


def _fill(database: sqlite3.Connection, rows: Rows) -> None:
    database.execute("PRAGMA journal_mode = OFF")
    database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("BEGIN")
    for name, table in TABLES.items():
        database.execute(_sqlite_table(table))
        marks = ", ".join(["?"] * len(table.columns))
        insert = f"INSERT INTO {name} VALUES ({marks})"  # noqa: S608 - our names
        database.executemany(insert, map(_sqlite_values, rows.get(name, ())))
        for statement in table.create_indexes:
            database.execute(statement)
    database.execute("ANALYZE")  # so that joins use the indexes
    database.execute("COMMIT")


def _sqlite_values(row: Row) -> list[Any]:
    return [iso(value) if isinstance(value, datetime) else value for value in row]


def _sqlite_table(table: ExportTable) -> str:
    """Return the statement that creates a table."""
    lines = []
    for column in table.columns:
        null = "" if column.nullable else " NOT NULL"
        name = f'"{column.name}"' if column.name in _RESERVED else column.name
        definition = f"{name} {_SQLITE_TYPES[column.type]}{null}"
        lines.append(f"  {definition}, -- {column.described}\n")
    keys = ",\n".join(f"  {key}" for key in table.keys)
    return f"CREATE TABLE {table.name} (\n{''.join(lines)}{keys}) STRICT"


def _read_sqlite(path: Path) -> Rows:
    with open_file(path) as stream:
        refuse_larger(stream, LARGEST)
        # Without the journals beside it, which may be planted.
        url = f"{path.absolute().as_uri()}?immutable=1"
        with closing(sqlite3.connect(url, uri=True)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_LINE)
            if database.execute("PRAGMA user_version").fetchone() != (VERSION,):
                raise ValueError("the file has another version of the format")
            return {name: _sqlite_rows(database, table) for name, table in TABLES.items()}


def _sqlite_rows(database: sqlite3.Connection, table: ExportTable) -> list[Row]:
    stored = "SELECT sql FROM sqlite_schema WHERE name = ? AND type IN ('table', 'view')"
    statements = database.execute(stored, [table.name]).fetchall()
    [(sql,)] = statements or [("",)]
    is_ours = _COMMENT.sub("", sql) == _COMMENT.sub("", _sqlite_table(table))
    columns = database.execute("SELECT name FROM pragma_table_info(?)", [table.name]).fetchall()
    _refuse_others(table, [name for (name,) in columns], is_ours=is_ours)
    selected = database.execute(f"SELECT * FROM {table.name} ORDER BY rowid")  # noqa: S608 - our names
    return accepted(table, (_row_of(values, table, _FROM_SQLITE, None) for values in selected))


# ---- all formats ----------------------------------------------------------------------------


def _refuse_others(
    table: ExportTable, names: Sequence[str], number: int = 0, *, is_ours: bool = True
) -> None:
    """Refuse a table of other columns, of too many rows, or that is not a table as we write it.

    Raises:
        ValueError: it is one; an older version may have written it.
    """
    expected = [column.name for column in table.columns]
    if list(names) != expected:
        missing = [name for name in expected if name not in names]
        lack = f"; missing: {', '.join(missing)}" if missing else ""
        raise ValueError(f"the columns of {table.name} are {', '.join(names)[:200]}{lack}")
    if not is_ours:
        raise ValueError(f"{table.name} has other types, keys or computed values")
    if number > MOST_ROWS:
        raise ValueError(f"{table.name} has {number:,} rows; expected at most {MOST_ROWS:,}")


class Format(Struct, frozen=True):
    """A format of a file with all tables (a ``database``) or with one table.

    ``library`` raises MissingPackageError if one is missing.
    """

    write: Callable[..., None]
    read: Callable[..., Any]
    library: Callable[[], object] = lambda: None
    database: bool = False


FORMATS = {
    ".parquet": Format(_write_parquet, _read_parquet, _parquet),
    ".csv": Format(_write_csv, _read_csv),
    ".sqlite": Format(_write_sqlite, _read_sqlite, database=True),
}
"""The formats by file ending."""


# ---- the destination of an export ---------------------------------------------------------


class Destination(Struct, frozen=True):
    """The destination of tables: a file, or a folder with a file for each table.

    ``table`` is the only table to write, None for all tables, as in a database.
    """

    path: Path
    table: str | None = None

    @property
    def holds_all(self) -> bool:
        """Whether this is a database, which holds all tables."""
        return self._format.database

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
            raise UserError(
                f"{self.path} exists already; --append adds to it, --force overwrites it"
            )
        if self.is_folder and not self._holds_only_tables(self.path):
            raise UserError(f"{self.path}: is not a folder that contains only tables")
        if not self.is_folder and not self.path.is_file():
            raise UserError(f"{self.path}: is not a regular file")

    def read(self) -> Rows:
        """Return the rows of an earlier export.

        Raises:
            UserError: the path cannot be read, is not an export, or a library is not installed.
        """
        self._format.library()
        try:
            if self.holds_all:
                rows: Rows = self._format.read(self.path)
                return rows
            files = self._files(self.path).items()
            return {name: self._format.read(file, TABLES[name]) for name, file in files}
        except NOT_AN_EXPORT as error:
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
            raise UserError(f"{self.path} exists already and is not overwritten") from error
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{self.path}: cannot be written: {reason}") from error

    @property
    def _format(self) -> Format:
        return FORMATS[self.path.suffix]

    def _files(self, path: Path) -> dict[str, Path]:
        """Return the files of the tables by their names."""
        if self.table:
            return {self.table: path}
        return {name: path / f"{name}{self.path.suffix}" for name in TABLES}

    def _write(self, path: Path, rows: Rows) -> None:
        if self.holds_all:
            self._format.write(path, rows)
            return
        for name, file in self._files(path).items():
            self._format.write(file, TABLES[name], rows.get(name, ()))

    def _holds_only_tables(self, folder: Path) -> bool:
        files = set(self._files(folder).values())
        return folder.is_dir() and all(path in files for path in folder.iterdir())
