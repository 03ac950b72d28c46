"""``mlperf-pkg export``."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import make_archive
from typing import Any

import pytest

from tests.helpers.logs import edited
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_submission, write_system


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A submission to round 2.0, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_submission(tmp_path / "v2.0" / "ACME", "resnet", "bert")
    return Path("v2.0")


def exported(*arguments: str | Path) -> str:
    result = call("export", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(statement).fetchall()


def test_all_tables_of_a_round(tree: Path) -> None:
    line = exported(tree, "-o", "results.sqlite", "--evaluations")
    assert line.startswith("results.sqlite: systems 1, result_sets 2, runs 15, evaluations ")
    path = Path("results.sqlite")
    joined = """
        SELECT s.submitter, s.accelerators, r.benchmark, count(*),
               avg(runs.minutes) BETWEEN 19 AND 21
        FROM result_sets r JOIN systems s ON r.system_path = s.path AND r.round = s.round
             JOIN runs ON runs."set" = r.id AND runs.round = r.round
        GROUP BY r.benchmark ORDER BY r.benchmark"""
    assert rows(path, joined) == [("ACME", 16, "bert", 10, 1), ("ACME", 16, "resnet", 5, 1)]
    last = """
        SELECT max(e.value) >= 0.759, max(e.unit), max(e.minutes) <= runs.minutes
        FROM evaluations e JOIN runs ON runs.path = e.run_path
        WHERE benchmark = 'resnet' GROUP BY runs.path"""
    assert rows(path, last) == [(1, "epochs", 1)] * 5
    settings = "SELECT value, number, runs FROM settings WHERE key = 'opt_name'"
    assert ('"lars"', None, 5) in rows(path, settings)
    assert ("CODE100", "2.0") in rows(path, "SELECT code, round FROM findings")


def test_names_of_the_same_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths stay different; hyperparameters and metrics are then the same."""
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    for log, text in zip(simulated(), ("a\n", r"a\n"), strict=False):
        renamed = log.replace(b'"lars_opt_momentum"', json.dumps(f"opt_{text}").encode())
        metrics = edited(renamed, "eval_accuracy", value={"a\n": 0.1, r"a\n": 0.2})
        Path(f"logs/{text}.log").write_bytes(metrics)
    exported("logs", "-o", "r.sqlite", "--evaluations")
    statements = {
        "SELECT path FROM runs ORDER BY path": [(r"a\n.log",), (r"a\n.log@2",)],
        "SELECT runs FROM settings WHERE key LIKE 'opt_a%'": [(2,)],
        "SELECT DISTINCT run_path, metric, value FROM evaluations ORDER BY run_path": [
            (r"a\n.log", r"a\n", 0.2),
            (r"a\n.log@2", r"a\n", 0.2),
        ],
    }
    assert {text: rows(Path("r.sqlite"), text) for text in statements} == statements


@pytest.mark.parametrize(
    ("options", "note"),
    [
        pytest.param(
            [], "note: r.csv: this is a folder with a file for each table;", id="all tables"
        ),
        pytest.param(["--table", "runs"], "", id="one table"),
    ],
)
def test_a_name_that_becomes_a_folder(tree: Path, options: list[str], note: str) -> None:
    result = call("export", tree, "-o", "r.csv", *options)
    assert (result.exit_code, Path("r.csv").is_dir()) == (0, bool(note))
    assert note in result.stderr


@pytest.mark.parametrize("name", ["r.sqlite", "r.csv"])
def test_rounds_are_added_and_replaced(name: str, tree: Path) -> None:
    assert "result_sets 184," in exported("--published", "v5.1", "-o", name)
    write_submission(Path("v6.0") / "ACME", "resnet")
    refused = call("export", tree, "-o", name).stderr
    assert "exists already; --append adds to it, --force overwrites" in refused
    assert "result_sets 185," in exported("v6.0", "-o", name, "--append")
    refused = call("export", "v6.0", "-o", name, "--append").stderr
    assert "contains training 6.0 already" in refused
    assert "result_sets 185," in exported("v6.0", "-o", name, "--replace")
    assert "result_sets 2," in exported(tree, "-o", name, "--force")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "r.xlsx"], "unknown ending; expected one of .parquet, .csv, .sqlite"),
        (["-o", "r.duckdb"], "unknown ending; expected one of .parquet, .csv, .sqlite\n"),
        (["-o", "r.sqlite", "--table", "runs"], "as r.sqlite always has all tables"),
        (["-o", "r.csv", "--published"], "training 2.0 is in the published results and in PATH"),
        (["-o", "r.csv", "--published", "5.2"], "--published 5.2: no such round; did you mean 5."),
    ],
)
def test_refusals(arguments: list[str], message: str, tree: Path) -> None:
    result = call("export", tree, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["v2.0"]


def test_the_submitter_of_a_system_without_results(tree: Path) -> None:
    """A submission that is an archive, without a folder at its top, is named after it."""
    write_system(tree / "ACME/systems", "idle", submitter="Acme Inc.")
    archive = make_archive("Acme", "tar", tree / "ACME")
    exported(archive, "-o", "r.sqlite", "--round", "2.0")
    assert rows(Path("r.sqlite"), "SELECT id, submitter FROM systems ORDER BY id") == [
        (SYSTEM, "Acme"),
        ("idle", "Acme"),
    ]
