"""What an export is read from may be any file: it is an export, or the message says that it is
not.
"""

import os
import resource
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mlperf_pkg.commands.export import formats
from mlperf_pkg.commands.export.formats import FORMATS, Destination
from mlperf_pkg.commands.export.rows import exported_sets, in_order
from mlperf_pkg.commands.export.schema import LONGEST, TABLES
from mlperf_pkg.commands.page.history import history, history_html
from mlperf_pkg.errors import UserError
from tests.helpers.exports import row, written

MANY = 3_000_000_000


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export of each format."""
    folder = tmp_path_factory.mktemp("valid")
    for ending in FORMATS:
        written(folder, ending)
    return folder


# ---- what is written is read ----------------------------------------------------------------

LONG = "x" * 200_000


@pytest.mark.parametrize("ending", FORMATS)
def test_long_fields(ending: str, tmp_path: Path) -> None:
    """They are cut, and stay different, as they are keys of the tables."""
    destination = Destination(tmp_path / f"results{ending}")
    texts = (f"{LONG}a", f"{LONG}b", "=;" * 100_000, "\x1b" * 100_000, "\U0001f600" * 99_999)
    findings = [row("findings", message=text) for text in texts]
    tables = in_order({**{name: [row(name)] for name in TABLES}, "findings": findings})
    destination.write(tables, replace=False)
    assert destination.read() == tables
    values = [value for stored in tables["findings"] for value in stored]
    assert all(len(value) <= LONGEST for value in values if isinstance(value, str))
    assert len({*tables["findings"]}) == len(texts)


@pytest.mark.parametrize("names", [("training", "97.3"), ("inference", "5.1"), ("../*", "0.0")])
def test_unknown_rounds_are_shown_as_they_are(names: tuple[str, str], tmp_path: Path) -> None:
    destination = Destination(tmp_path / "results.sqlite")
    a_set = row("result_sets", division="closed", usage=names[0], round=names[1])
    destination.write({"result_sets": [a_set]}, replace=False)
    page = history(exported_sets(destination.read()), "here")
    assert [(e.row.usage, e.row.round, e.is_ranked) for e in page.entries] == [(*names, False)]
    assert names[1] in history_html(page, "")


# ---- what is not an export ------------------------------------------------------------------


def text(edit: Callable[[str], str], name: str = "findings") -> Callable[[Path], object]:
    """Edit a table of a CSV."""

    def case(path: Path) -> None:
        file = path / f"{name}.csv"
        file.write_text(edit(file.read_text("utf-8")), "utf-8")

    return case


def cell(old: str, new: str, name: str = "findings") -> Callable[[Path], object]:
    return text(lambda table: table.replace(old, new, 1), name)


def sparse(size: int) -> Callable[[Path], object]:
    return lambda path: os.truncate(path / "runs.csv" if path.is_dir() else path, size)


def instead(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Replace a file of a folder, or the database."""

    def case(path: Path) -> None:
        file = path / name if path.is_dir() else path
        file.unlink()
        make(file)

    return case


def sqlite(*statements: str) -> Callable[[Path], object]:
    def case(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    return case


def view(select: str) -> list[str]:
    """Have a view instead of the findings; @ stands for their columns."""
    values = ", ".join(f'NULL AS "{column.name}"' for column in TABLES["findings"].columns)
    return ["DROP TABLE findings", f"CREATE VIEW findings AS {select.replace('@', values)}"]


COUNTING = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})"


def parquet(
    name: str, column: str, values: list[Any], kind: Any = None
) -> Callable[[Path], object]:
    """Another type, or values, of a column."""

    def case(path: Path) -> None:
        file = path / f"{name}.parquet"
        table = pq.read_table(file, partitioning=None)
        place = table.schema.get_field_index(column)
        field = table.schema.field(place)
        field = field if kind is None else pa.field(column, kind)
        pq.write_table(table.set_column(place, field, pa.array(values, field.type)), file)

    return case


def many_rows(path: Path) -> None:
    file = path / "findings.parquet"
    pq.write_table(pq.read_table(file, partitioning=None).take([0] * 2000), file)


def special(name: str) -> dict[str, Callable[[Path], object]]:
    """What is not a regular file in place of the file ``name`` of a folder, or of the database."""
    return {
        "a pipe": instead(name, os.mkfifo),
        "a device": instead(name, lambda path: path.symlink_to("/dev/zero")),
        "a folder": instead(name, Path.mkdir),
    }


CASES: dict[str, dict[str, Callable[[Path], object]]] = {
    ".csv": {
        "a quote in a cell": cell("text", '"te"xt"'),
        "an unclosed quote, and much more": text(lambda t: t + '"' + "x\n" * 3_000_000),
        "another boolean": cell("true", "True", "result_sets"),
        "an endless integer": cell(",1,", f",{'9' * 5000},"),
        "a large integer": cell(",1,", f",{2**63},"),
        "too few cells": text(lambda t: t + "training\n"),
        "a long cell": cell("text", "x" * 200_000),
        "a long line": text(lambda t: t + "x" * 20_000_000),
        "an escape": cell("text", "\x1b[31m"),
        "NUL": cell("text", "\0"),
        "a missing value": cell(",1,", ",,", "result_sets"),
        "a large file": sparse(100 << 30),
        "a missing file": lambda path: (path / "runs.csv").unlink(),
        "Latin-1": lambda path: (path / "runs.csv").write_bytes(b"\xe4" * 99),
        **special("runs.csv"),
    },
    ".sqlite": {
        "infinity": sqlite("UPDATE evaluations SET value = 9e999"),
        "a time without a zone": sqlite("UPDATE runs SET start = '2022-04-20'"),
        "no time": sqlite("UPDATE runs SET start = 'today'"),
        "two as boolean": sqlite("UPDATE result_sets SET rcp_official_pass = 2"),
        "escapes": sqlite("UPDATE findings SET message = char(27) || '[31m'"),
        "a long text": sqlite("UPDATE findings SET message = printf('%.*c', 9999999, 'x')"),
        "no table": sqlite("DROP TABLE findings"),
        "a view of itself": sqlite(*view("SELECT * FROM findings")),
        "a view of endless rows": sqlite(*view(f"{COUNTING} SELECT @ FROM n")),
        "a virtual table": sqlite(
            "DROP TABLE findings", "CREATE VIRTUAL TABLE findings USING fts5(usage)"
        ),
        "a computed column": sqlite(
            "DROP TABLE findings",
            "CREATE TABLE findings (usage TEXT, round TEXT AS (printf('%.*c', 9999, 'x')))",
            "INSERT INTO findings VALUES ('training')",
        ),
        "another version": sqlite("PRAGMA user_version = 1"),
        "a large file": sparse(100 << 30),
        **special(""),
    },
    ".parquet": {
        "a struct": parquet("runs", "status", [{"a": 1}], pa.struct([("a", pa.int64())])),
        "NaN": parquet("evaluations", "value", [float("nan")]),
        "an escape": parquet("runs", "status", ["\x1b[31m"]),
        "a long text": parquet("runs", "status", ["x" * 9_999_999]),
        "many rows": many_rows,
        "a missing file": lambda path: (path / "runs.parquet").unlink(),
        "cut off": lambda path: os.truncate(path / "runs.parquet", 500),
        **special("runs.parquet"),
    },
}


@pytest.mark.parametrize(("ending", "name"), [(of, name) for of in CASES for name in CASES[of]])
def test_what_is_not_an_export(
    ending: str, name: str, valid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"results{ending}"
    stored = valid / path.name
    shutil.copytree(stored, path) if stored.is_dir() else shutil.copy(stored, path)
    CASES[ending][name](path)
    monkeypatch.setattr(formats, "MOST_ROWS", 1000)
    with pytest.raises(UserError, match="is not an export of this version") as caught:
        Destination(path).read()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


@pytest.mark.skipif(not formats._STATM.exists(), reason="only Linux limits memory")
def test_a_page_cannot_take_all_memory(
    valid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copytree(valid / "results.parquet", tmp_path / "results.parquet"))
    parquet("runs", "status", ["x" * (64 << 20)])(path)
    monkeypatch.setattr(formats, "_MOST_MEMORY", 32 << 20)
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(UserError, match="some rows need more than 33,554,432 bytes of memory"):
        Destination(path).read()
    assert resource.getrlimit(resource.RLIMIT_AS) == before
