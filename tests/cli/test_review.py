"""``mlperf-pkg review``: the folder that it writes, and when it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.program import call
from tests.helpers.trees import write_submission


@pytest.fixture(scope="module")
def a_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("round") / "training_results_v2.0"
    for number, name in enumerate(("ACME", "Beta", "Gamma")):
        write_submission(root / name, seed=number)
    return root


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder(a_round: Path, tmp_path: Path) -> None:
    result = call("review", a_round, "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("MLPerf Training 2.0\n")
    assert "3 submitters, 3 systems, 3 result sets, 15 runs" in result.output
    assert result.output.endswith(f"written: {tmp_path}/review/review.html\n")
    files = contents(tmp_path / "review")
    assert {"README.md", "review.html", "review.json", "submitters.md"} <= files.keys()
    document = json.loads(files["review.json"])
    tables = [table for section in document["sections"] for table in section["tables"]]
    assert {f"{section['name']}.md" for section in document["sections"]} <= files.keys()
    assert {table["file"] for table in tables} <= files.keys()


def test_the_same_each_time(a_round: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        assert call("review", a_round, "-o", folder, "-j", "1").exit_code == 0
    assert contents(first) == contents(second)


def test_only_force_replaces_a_review(a_round: Path, tmp_path: Path) -> None:
    folder = tmp_path / "review"
    assert call("review", a_round, "-o", folder).exit_code == 0
    result = call("review", a_round, "-o", folder)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{folder}: exists already; --force replaces it" in result.stderr
    assert call("review", a_round, "-o", folder, "--force").exit_code == 0
    (folder / "objections.yaml").write_text("mine")
    result = call("review", a_round, "-o", folder, "--force")
    assert result.exit_code == 2
    assert "objections.yaml is not part of the review" in result.stderr
    assert (folder / "objections.yaml").read_text() == "mine"


def test_what_is_not_a_review_is_never_replaced(a_round: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    result = call("review", a_round, "-o", tmp_path / "notes", "--force")
    assert result.exit_code == 2
    assert "exists and is not a review" in result.stderr
    assert call("review", a_round, "-o", a_round / "review").exit_code == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [("nothing", "no such file or folder"), ("empty", "no MLPerf log here")],
)
def test_no_round(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = call("review", tmp_path / name, "-o", tmp_path / "review")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not (tmp_path / "review").exists()


def test_loose_logs_are_no_round(a_round: Path, tmp_path: Path) -> None:
    logs = next(a_round.glob("ACME/results/*/*"))
    result = call("review", logs, "-o", tmp_path / "review")
    assert result.exit_code == 2
    assert "no submission found; expected a folder of submissions" in result.stderr
