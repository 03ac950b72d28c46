"""``mlperf-pkg review``: the folder that it writes, and its refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from jsonschema import Draft202012Validator

from mlperf_pkg.cli.main import cli
from mlperf_pkg.cli.review import command
from mlperf_pkg.infra.resources import data_folder
from tests.helpers.program import call
from tests.helpers.report_schema import closed
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system


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


def test_the_schema_describes_all(a_round: Path, tmp_path: Path) -> None:
    assert call("review", a_round, "-o", tmp_path / "review", "-j", "1").exit_code == 0
    schema = json.loads((data_folder("rules") / "review.schema.json").read_text("utf-8"))
    document = json.loads((tmp_path / "review/review.json").read_bytes())
    errors = Draft202012Validator(closed(schema)).iter_errors(document)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []
    tables = [table for section in document["sections"] for table in section["tables"]]
    assert all(len(row) == len(table["columns"]) for table in tables for row in table["rows"])


@pytest.fixture
def poor(a_round: Path, tmp_path: Path) -> Path:
    """A round with many problems."""
    root = tmp_path / "training_results_v2.0"
    for name in ("ACME", "Beta", "Gamma"):
        shutil.copytree(a_round / name, root / name)
    shutil.copytree(a_round / "Beta", root / "be_ta")
    shutil.copytree(a_round / "Beta", root / "Delta+Epsilon")
    shutil.rmtree(root / "Gamma/systems")
    next(root.glob("ACME/results/*/*/result_0.txt")).write_bytes(b"\x00\xff")
    return root


def test_problems_are_listed_and_the_rest_is_complete(poor: Path, tmp_path: Path) -> None:
    folder = tmp_path / "review"
    result = call("review", poor, "-o", folder, "-j", "1")
    assert result.exit_code == 1, result.output
    assert json.loads((folder / "review.json").read_bytes())["problems"] == [
        "Beta and be_ta may be one submitter; --one-spelling counts them as one",
        "Gamma: 1 result set without a system description (bow-pod16): division and accelerators"
        " are unknown",
        "1 file not read or checked (LOG110, a file without records):"
        " ACME/results/bow-pod16/resnet/result_0.txt",
    ]
    assert "4 submitters, 5 systems, 5 result sets, 25 runs" in result.output
    options = ("--one-spelling", "--exclude", "ACME", "--force")
    result = call("review", poor, "-o", folder, "-j", "1", *options)
    assignments = (folder / "assignments.md").read_text()
    assert "Counted as one: Beta and be_ta." in assignments
    assert "Delta and Epsilon submit together in Delta+Epsilon." in assignments
    assert "| ACME |" not in assignments.partition("## Ranks")[0]


def test_a_round_of_one(a_round: Path, tmp_path: Path) -> None:
    result = call("review", a_round / "ACME", "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code == 1
    assert "only one submission: ACME; nobody can review it" in result.output
    assert "ACME by volunteers or the chairs" in result.output


def test_several_rounds(a_round: Path, tmp_path: Path) -> None:
    root = tmp_path / "submissions"
    shutil.copytree(a_round, root)
    write_system(root / "Newer/systems")
    write_set(root / f"Newer/results/{SYSTEM}/resnet", simulated(round_="2.1"))
    result = call("review", root, "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code == 1, result.output
    assert "several rounds: 2.0, 2.1; review each round by itself" in result.output


def test_a_round_without_any_description(a_round: Path, tmp_path: Path) -> None:
    root = tmp_path / "training_results_v2.0"
    for name in ("ACME", "Beta"):
        shutil.copytree(a_round / name / "results", root / name / "results")
    result = call("review", root, "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code == 1
    assert "2 submitters, 2 systems, 2 result sets, 10 runs" in result.output
    assert result.output.count("without a system") == 2


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--joint", "ACME"), "fewer than two companies; expected A+B"),
        (("--joint", "ACME+Btea"), "did you mean Beta?"),
        (("--exclude", "ACNE"), "did you mean ACME?"),
    ],
)
def test_mistyped_names(
    option: tuple[str, str], message: str, a_round: Path, tmp_path: Path
) -> None:
    result = call("review", a_round, "-o", tmp_path / "review", "-j", "1", *option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert not (tmp_path / "review").exists()


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
    (folder / "notes.md").write_text("mine")
    result = call("review", a_round, "-o", folder, "--force")
    assert result.exit_code == 2
    assert "notes.md is not part of the review" in result.stderr
    assert (folder / "notes.md").read_text() == "mine"


def test_other_folders_are_never_replaced(a_round: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    result = call("review", a_round, "-o", tmp_path / "notes", "--force")
    assert result.exit_code == 2
    assert "exists, but is not a review" in result.stderr
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


def test_loose_logs_are_not_a_round(a_round: Path, tmp_path: Path) -> None:
    logs = next(a_round.glob("ACME/results/*/*"))
    result = call("review", logs, "-o", tmp_path / "review")
    assert result.exit_code == 2
    assert "no submission; expected the folder of one round" in result.stderr


def test_the_help_lists_the_other_commands() -> None:
    text = call("review", "--help").output
    assert text.startswith("Usage: mlperf-pkg review [OPTIONS] ROUND_FOLDER\n")
    assert all(f"\n  {name} " in text for name in command.commands)


def test_a_folder_named_like_a_command(
    a_round: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(a_round, tmp_path / "compare")
    monkeypatch.chdir(tmp_path)
    assert call("review", "./compare", "-j", "1").exit_code == 0
    assert (tmp_path / "review/review.html").is_file()


@pytest.mark.parametrize(("words", "expected"), [("comp", {"compare"}), ("./", {"./"})])
def test_completion(words: str, expected: set[str]) -> None:
    complete = ShellComplete(cli, {}, "mlperf-pkg", "_X")
    assert {item.value for item in complete.get_completions(["review"], words)} == expected
