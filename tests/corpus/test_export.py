"""Keys of the exports of published submissions hold, and rounds add up to all."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from mlperf_pkg.commands.export.formats import Destination
from mlperf_pkg.commands.export.schema import TABLES
from tests.helpers.corpus import CORPUS, SOME_ROUNDS, needs_corpus
from tests.helpers.program import call

BY_KEYS = """
    SELECT count(DISTINCT r.id), count(runs.path), count(s.path), count(r.system_path), count(start)
    FROM result_sets r
         LEFT JOIN runs ON (runs.usage, runs.round, runs.set_id) = (r.usage, r.round, r.id)
         LEFT JOIN systems s ON (s.usage, s.round, s.path) = (r.usage, r.round, r.system_path)"""

pytestmark = needs_corpus


@pytest.mark.parametrize("tree", SOME_ROUNDS)
def test_keys_hold(tree: str, tmp_path: Path) -> None:
    """DuckDB enforces them; SQLite is asked."""
    path = tmp_path / "r.sqlite"
    assert call("export", CORPUS / tree, "-o", path, "--evaluations").exit_code == 0
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        joined = database.execute(BY_KEYS).fetchone()
        counts = [database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES]
    sets, runs = counts[1:3]
    assert joined == (sets, runs, joined[3], joined[3], runs)
    Destination(tmp_path / "r.duckdb").write(Destination(path).read(), replace=False)
    with closing(duckdb.connect(tmp_path / "r.duckdb")) as database:
        assert database.execute(BY_KEYS).fetchone() == joined
