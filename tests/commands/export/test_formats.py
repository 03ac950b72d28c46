"""Tables written and read back, in all formats."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.commands.export.formats import FORMATS, Destination
from mlperf_pkg.commands.export.rows import Rows, in_order, merged
from mlperf_pkg.commands.export.schema import TABLES, ExportColumn
from mlperf_pkg.errors import UserError
from tests.helpers.examples import examples
from tests.helpers.exports import TIME, row

VALUES: Mapping[type, st.SearchStrategy[Any]] = {
    str: st.text(max_size=8)
    | st.sampled_from(["=1+1", "a; =1", "'=1", "\ud800", "\x00", 'a,b\n"c']),
    int: st.integers(0, 2**62),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    datetime: st.datetimes(timezones=st.just(UTC)).map(
        lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
    ),
}
# No format holds these: they become null.
IN_NULLABLE: Mapping[type, st.SearchStrategy[Any]] = {
    int: st.none() | st.sampled_from([2**63, -(2**70)]),
    float: st.none() | st.sampled_from([float("nan"), float("inf"), 10**400]),
}
ROUNDS = st.tuples(st.sampled_from(["training", "hpc"]), st.sampled_from(["0.7", "5.1", "10.0"]))
KEYS = ("path", "id", "set", "run_path", "system_path")
each_ending = pytest.mark.parametrize("ending", FORMATS)


def values(column: ExportColumn) -> st.SearchStrategy[Any]:
    strategy = VALUES[column.type]
    return strategy | IN_NULLABLE.get(column.type, st.none()) if column.nullable else strategy


def tables_of(rounds: Sequence[tuple[str, str]]) -> st.SearchStrategy[Rows]:
    """Tables of a row for each of these rounds, in which all keys exist."""

    def row_of(name: str, number: int) -> st.SearchStrategy[tuple[Any, ...]]:
        others = TABLES[name].columns[2:]
        keys = [st.just(f"{number}") if c.name in KEYS else values(c) for c in others]
        return st.tuples(*map(st.just, rounds[number]), *keys)

    numbers = range(len(rounds))
    rows = {name: st.tuples(*(row_of(name, number) for number in numbers)) for name in TABLES}
    return st.fixed_dictionaries(rows).map(in_order)


def rows(*rounds: str) -> Rows:
    return {name: [row(name, round=round_) for round_ in rounds] for name in TABLES}


def seen(tables: Rows, ending: str) -> Rows:
    """Rows as read from CSV: an empty cell is null, and some characters are escaped."""
    if ending != ".csv":
        return tables
    with TemporaryDirectory() as folder:
        destination = Destination(Path(folder) / f"once{ending}")
        destination.write(tables, replace=False)
        return destination.read()


@each_ending
@examples(8)
@given(tables=st.lists(ROUNDS, max_size=3).flatmap(tables_of))
def test_rows_are_read_as_they_were_written(ending: str, tables: Rows) -> None:
    expected = seen(tables, ending)
    with TemporaryDirectory() as folder:
        destination = Destination(Path(folder) / f"results{ending}")
        destination.write(expected, replace=False)
        assert destination.read() == expected


@each_ending
def test_names_of_files_need_not_be_text(ending: str, tmp_path: Path) -> None:
    destination = Destination(tmp_path / f"\udcff{ending}", "runs" if ending != ".sqlite" else None)
    destination.write(merged({}, {"runs": [row("runs")]}), replace=False)
    assert destination.read()["runs"] == [row("runs")]


@each_ending
def test_appended_rounds_give_the_same_bytes(ending: str, tmp_path: Path) -> None:
    together, apart = Destination(tmp_path / f"one{ending}"), Destination(tmp_path / f"two{ending}")
    together.write(merged({}, rows("1.0", "5.1")), replace=False)
    apart.write(merged({}, {"findings": [row("findings", message="older")]}), replace=False)
    for more in (rows("1.0"), rows("5.1")):
        apart.write(merged(apart.read(), more), replace=True)
    assert contents(together.path) == contents(apart.path)


def contents(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


def test_each_round_is_a_row_group(tmp_path: Path) -> None:
    destination = Destination(tmp_path / "runs.parquet", "runs")
    tables = merged({}, {"runs": [row("runs")] * 3 + [row("runs", round="2.0")]})
    destination.write(tables, replace=False)
    file = pq.ParquetFile(destination.path)
    numbers = range(file.num_row_groups)
    groups = [file.read_row_group(number).column("round").to_pylist() for number in numbers]
    assert groups == [["2.0"], ["5.1"] * 3]
    assert file.schema_arrow.field("minutes").metadata[b"unit"] == b"minutes"


BREAKING = [
    *(f"INSERT INTO {name} SELECT * FROM {name}" for name in TABLES if name != "findings"),
    "DELETE FROM systems",  # each of these rows is referred to
    "DELETE FROM runs",
    "UPDATE result_sets SET system_path = 'other'",
    "UPDATE evaluations SET run_path = 'other'",
    *(f"""UPDATE {name} SET "set" = 'other'""" for name in ("runs", "settings", "findings")),
]


@pytest.fixture(scope="module")
def database_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("database") / "results.sqlite"
    Destination(path).write(rows("1.0"), replace=False)
    return path


@pytest.mark.parametrize("statement", BREAKING)
def test_a_database_enforces_keys(statement: str, database_path: Path) -> None:
    with closing(sqlite3.connect(database_path)) as database:
        database.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError):
            database.execute(statement)


def test_a_database_has_the_indexes(database_path: Path) -> None:
    with closing(sqlite3.connect(database_path)) as database:
        indexes = database.execute("SELECT sql FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'")
        statements = {re.sub(r'[ ";]', "", sql) for (sql,) in indexes.fetchall()}
    assert statements == {
        re.sub(r'[ "]', "", sql) for table in TABLES.values() for sql in table.create_indexes
    }


def test_times_are_times(tmp_path: Path) -> None:
    for ending in FORMATS:
        Destination(tmp_path / f"r{ending}").write(rows("1.0"), replace=False)
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as database:
        select = "SELECT start, strftime('%Y-%m-%d %H:%M:%f', start) FROM runs"
        as_text = ("2022-04-20T20:31:30.146Z", "2022-04-20 20:31:30.146")
        assert database.execute(select).fetchall() == [as_text]
    column = pq.read_table(tmp_path / "r.parquet" / "runs.parquet").column("start")
    assert (str(column.type), column.to_pylist()) == ("timestamp[ms, tz=UTC]", [TIME])
    assert ",2022-04-20T20:31:30.146Z," in (tmp_path / "r.csv" / "runs.csv").read_text("utf-8")


read_by_duckdb = pytest.mark.parametrize("ending", [".parquet", ".csv"])


@read_by_duckdb
def test_duckdb_reads_the_types(ending: str, tmp_path: Path) -> None:
    Destination(tmp_path / f"r{ending}").write(rows("1.0"), replace=False)
    file = tmp_path / f"r{ending}" / f"runs{ending}"
    select = f"SELECT typeof(start), epoch_ms(start), minutes, records FROM '{file}'"
    time = int(TIME.timestamp() * 1000)
    with closing(duckdb.connect()) as database:
        values = database.execute(select).fetchall()
    assert values == [("TIMESTAMP WITH TIME ZONE", time, 1.5, 1)]


@read_by_duckdb
def test_duckdb_reads_the_columns(ending: str, tmp_path: Path) -> None:
    Destination(tmp_path / f"r{ending}").write(rows("1.0"), replace=False)
    columns = {}
    with closing(duckdb.connect()) as database:
        for name in TABLES:
            file = tmp_path / f"r{ending}" / f"{name}{ending}"
            described = database.execute(f"DESCRIBE FROM '{file}'").fetchall()
            columns[name] = [column[0] for column in described]
    assert columns == {name: [c.name for c in table.columns] for name, table in TABLES.items()}


@each_ending
def test_an_error_leaves_nothing(ending: str, tmp_path: Path) -> None:
    destination = Destination(tmp_path / f"results{ending}")
    destination.write(rows("1.0"), replace=False)
    before = contents(destination.path)
    with pytest.raises(UserError, match="exists already and is not overwritten"):
        destination.write(rows("2.0"), replace=False)
    broken: Any = {**rows("2.0"), "findings": [None]}
    with pytest.raises((TypeError, sqlite3.Error)):
        destination.write(broken, replace=True)
    assert contents(destination.path) == before
    assert [path.name for path in tmp_path.iterdir()] == [destination.path.name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/r.csv", "the folder .* does not exist"),
        ("r.sqlite", "is not a regular file"),
        ("r.csv", "is not a folder that contains only tables"),
        ("notes.csv", "is not a folder that contains only tables"),
    ],
)
def test_early_refusals(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "r.sqlite").mkdir()
    (tmp_path / "r.csv").touch()
    (tmp_path / "notes.csv").mkdir()
    (tmp_path / "notes.csv" / "notes.txt").touch()
    with pytest.raises(UserError, match=message):
        Destination(tmp_path / name).refuse_early((), replace=True)
