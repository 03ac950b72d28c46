"""``mlperf-pkg score``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlperf_pkg.commands.results.score import SCORE_FORMATS
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission


def test_a_score(tmp_path: Path) -> None:
    result = call("score", write_set(tmp_path, simulated()))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "resnet: bow-pod16 (closed)" in result.stdout
    assert ", fastest" in result.stdout


def test_no_score(tmp_path: Path) -> None:
    result = call("score", write_set(tmp_path, simulated(runs=2)))
    assert result.exit_code == 1
    assert "2 of 5 runs: none is left after dropping 1 + 1" in result.stdout


@pytest.mark.parametrize("format_", SCORE_FORMATS)
def test_formats(tmp_path: Path, format_: str) -> None:
    file = tmp_path / "scores"
    result = call(
        "score", write_set(tmp_path / "logs", simulated()), "--format", format_, "-o", file
    )
    assert (result.exit_code, result.output) == (0, "")
    written = file.read_text("utf-8")
    assert written.endswith("\n")
    if format_ == "json":
        assert len(json.loads(written)["result_sets"][0]["runs"]) == 5


TABLES = [
    "summary.csv",
    "summary.json",
    "summary.xlsx",
    "summary_detailed.csv",
    "summary_detailed.json",
]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_official_tables(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "Graphcore")
    tables = tmp_path / "tables"
    result = call("score", tree, "--tables", tables)
    assert (result.exit_code, result.stderr, names(tables)) == (0, "", TABLES)
    assert ",Graphcore," in (tables / "summary.csv").read_text("utf-8")


def test_official_tables_are_overwritten_only_by_force(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "Graphcore")
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "summary.csv").touch()
    result = call("score", tree, "--tables", tables)
    assert result.exit_code == 2
    assert "summary.csv: exists already; --force overwrites it" in result.stderr
    assert call("score", tree, "--tables", tables, "--force").exit_code == 0
    assert names(tables) == TABLES


def test_official_tables_are_not_written_into_the_tree(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "Graphcore")
    result = call("score", tree, "--tables", tree / "tables")
    assert result.exit_code == 2
    assert "refusing to write inside an input folder" in result.stderr
