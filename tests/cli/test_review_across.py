"""``mlperf-pkg review compare``: rounds, formats, exit statuses."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.published import results
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

COMMANDS = ("previews", "resubmitted")


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Round 2.0 with a Preview, and round 2.1 with the same submission, now Available."""
    root = tmp_path_factory.mktemp("rounds")
    old = write_submission(root / "training_results_v2.0/Graphcore")
    write_system(old / "systems", division="closed", status="preview", number_of_nodes="4")
    new = shutil.copytree(old, root / "training_results_v2.1/Graphcore")
    write_system(new / "systems", division="closed", number_of_nodes="4")
    return root


def sides(rounds: Path) -> list[str]:
    return [str(rounds / f"training_results_v{name}") for name in ("2.0", "2.1")]


def listing(*arguments: str) -> Any:
    return json.loads(call("review", "compare", *arguments, "--format", "json").stdout)


def test_folders(rounds: Path) -> None:
    document = listing("previews", *sides(rounds))
    assert document["format"] == "mlperf-pkg/review-previews/1"
    assert document["counts"] == {"own logs only": 1}
    document = listing("resubmitted", *sides(rounds))
    assert document["counts"] == {"allowed": 0, "not allowed": 1}
    (row,) = document["resubmitted"]
    assert row["problems"] == "runs of a Preview, which prove nothing"
    assert (row["description"], row["different_fields"]) == ("different", "status")


def test_new_runs_prove_a_preview(rounds: Path, tmp_path: Path) -> None:
    new = shutil.copytree(rounds / "training_results_v2.1", tmp_path / "training_results_v2.1")
    write_set(new / f"Graphcore/results/{SYSTEM}/resnet", simulated(seed=8))
    old = str(rounds / "training_results_v2.0")
    assert listing("resubmitted", old, str(new))["resubmitted"] == []
    (row,) = listing("previews", old, str(new))["previews"]
    assert (row["outcome"], row["match"]) == ("met", "same")


@pytest.mark.parametrize("name", COMMANDS)
def test_formats(name: str, rounds: Path) -> None:
    text = call("review", "compare", name, *sides(rounds))
    assert text.exit_code == 1
    assert max(map(len, text.stdout.splitlines())) <= 80
    markdown = call("review", "compare", name, *sides(rounds), "--format", "markdown").stdout
    assert markdown.startswith("## ")
    rows = list(csv.DictReader(io.StringIO(call("review", "compare", name, *sides(rounds), "--format", "csv").stdout)))  # fmt: skip
    (row,) = listing(name, *sides(rounds))[name]
    assert [r["path"] for r in rows] == [row["path"]]
    assert rows[0].keys() == row.keys()


def test_all_published_rounds() -> None:
    counts = listing("previews")["counts"]
    assert counts == {
        "not met": 3,
        "other scale only": 3,
        "own logs only": 6,
        "no successor": 9,
        "late": 3,
        "not comparable": 9,
        "not required": 6,
        "met": 33,
    }
    assert sum(counts.values()) == 72
    for usage, pairs in (("training", 250), ("hpc", 16)):
        assert sum(listing("resubmitted", "--usage", usage)["counts"].values()) == pairs


ROUNDS = [("4.1", "5.0", 12), ("v3.0", "training_results_v3.1", 13), ("2.0", "2.1", 0)]


@pytest.mark.parametrize(("old", "new", "number"), ROUNDS)
def test_a_published_round(old: str, new: str, number: int) -> None:
    assert len(listing("previews", old, new)["previews"]) == number


def test_a_folder_named_like_a_round(
    rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, folder in (("2.0", "training_results_v2.0"), ("v2.1", "training_results_v2.1")):
        shutil.copytree(rounds / folder, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    document = listing("previews", "2.0", "v2.1")
    assert document["title"] == "Previews of 2.0, with successors in v2.1"


def test_nothing_to_settle() -> None:
    result = call("review", "compare", "previews", "2.0", "2.1")
    assert (result.exit_code, result.stdout.splitlines()[1]) == (0, "no Previews")


MISTAKES = [
    (("4.1",), "expected OLD and NEW, or neither for all published rounds"),
    (("5.0", "4.1"), "not later than 5.0 (published); expected OLD, then NEW"),
    (("5.1", "6.0"), "6.0: newer than the published results of this package"),
    (("1.5", "2.0"), "1.5: no such round was published"),
    (("4.1", "nothing"), "nothing: no such file or folder"),
    (("4.1", "./5.0"), "./5.0: no such file or folder"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
@pytest.mark.parametrize("name", COMMANDS)
def test_mistakes(name: str, arguments: tuple[str, ...], message: str) -> None:
    result = call("review", "compare", name, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_without_published_results(
    rounds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "PATH", tmp_path / "missing")
    for name in COMMANDS:
        result = call("review", "compare", name, "4.1", "5.0")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "the published results are missing: reinstall mlperf-pkg" in result.stderr
    assert listing("previews", *sides(rounds))["counts"] == {"own logs only": 1}
    result = call("review", sides(rounds)[0], "-o", tmp_path / "review")
    assert "1 Preview: 0 met" in result.stdout


def test_a_file_without_a_result_set(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    for name in COMMANDS:
        result = call("review", "compare", name, "4.1", tmp_path / "notes.md")
        assert result.exit_code == 2
        assert "no result set; expected a folder of submissions or a round" in result.stderr


def test_the_sections_of_a_review(rounds: Path, tmp_path: Path) -> None:
    result = call("review", sides(rounds)[0], "-o", tmp_path / "review")
    assert "1 Preview: 0 met by a successor, 1 need no successor yet" in result.stdout
    assert "not due yet" in (tmp_path / "review/previews.md").read_text("utf-8")
    assert "0 of 1 result set have logs" in result.stdout
