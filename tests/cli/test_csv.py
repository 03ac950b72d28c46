"""Every CSV of a command is one table with one header, whose numbers are numbers."""

from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.tables import loaded
from tests.helpers.trees import write_submission

COMMANDS = [
    ("check ACME", ["score_minutes", "runs_found", "rcp_margin_percent"]),
    ("score ACME", ["minutes"]),
    ("select ACME/results/bow-pod16/bert", []),
    ("compare ACME --published 2.0", ["minutes", "accelerators", "speed"]),
    ("rcp show bert --round 2.0", ["batch_size", "mean", "minimum"]),
    ("rcp show --round 2.0", ["batch_size", "mean", "minimum"]),
    ("rcp check ACME", ["batch_size", "mean"]),
    ("rcp diff 1.1 2.0", ["batch_size"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission of two benchmarks, with what ``results`` and ``export`` make of it."""
    root = tmp_path_factory.mktemp("csv") / "training_results_v2.0"
    write_submission(root / "ACME", "bert", "resnet")
    call("results", root / "ACME", "-o", root / "summary")
    call("export", root / "ACME", "-o", root / "tables.csv")
    call("review", root, "--round", "2.0", "-o", root / "review")
    return root


@pytest.mark.parametrize(("line", "numbers"), COMMANDS)
def test_a_command_writes_one_table(
    line: str, numbers: list[str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    file = tmp_path / "table.csv"
    result = call(*line.split(), "--format", "csv", "-o", file)
    assert result.exit_code < 2, result.output
    loaded(file, *numbers)


FILES = [
    ("summary/results.csv", ["accelerators", "bert", "resnet"]),
    ("summary/scores.csv", ["minutes", "exact_minutes"]),
]


@pytest.mark.parametrize(("name", "numbers"), FILES)
def test_a_file_of_results_is_one_table(name: str, numbers: list[str], folder: Path) -> None:
    loaded(folder / name, *numbers)


def test_every_file_that_is_written_is_one_table(folder: Path) -> None:
    """But for those of the official summarizer, which are its own."""
    files = [file for file in folder.rglob("*.csv") if file.is_file()]
    files = [file for file in files if file.parent.name != "official"]
    assert len(files) > 5
    assert [file for file in files if loaded(file).columns.empty] == []
