"""``mlperf-pkg review``: the folder that it writes, and its refusals."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mlperf_pkg.commands.review.previews import PreviewOutcome
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.published import results
from tests.helpers.archives import in_archive
from tests.helpers.program import call
from tests.helpers.report_schema import closed
from tests.helpers.reviews import write_round
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system
from tests.helpers.workspaces import bytes_below


@pytest.fixture(scope="module")
def a_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("round") / "training_results_v2.0"
    return write_round(root, "ACME", "Beta", "Gamma")


def test_the_folder(a_round: Path, tmp_path: Path) -> None:
    result = call("review", a_round, "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("MLPerf Training 2.0\n")
    assert "3 submitters, 3 systems, 3 result sets, 15 runs" in result.output
    assert result.output.endswith(f"written: {tmp_path}/review/review.html\n")
    files = bytes_below(tmp_path / "review")
    document = json.loads(files["review.json"])
    schema = json.loads((data_folder("rules") / "review.schema.json").read_text("utf-8"))
    errors = Draft202012Validator(closed(schema)).iter_errors(document)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []
    tables = [table for section in document["sections"] for table in section["tables"]]
    names = {"README.md", "review.html", "review.json", *(table["file"] for table in tables)}
    assert files.keys() == names
    assert {*map(str, Path(tmp_path / "review").iterdir())} == {
        f"{tmp_path}/review/{name}"
        for name in ("README.md", "review.html", "review.json", "tables")
    }
    assert all(len(row) == len(table["columns"]) for table in tables for row in table["rows"])


@pytest.fixture(scope="module")
def poor(a_round: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round with many problems."""
    root = shutil.copytree(a_round, tmp_path_factory.mktemp("poor") / a_round.name)
    shutil.copytree(a_round / "Beta", root / "be_ta")
    shutil.copytree(a_round / "Beta", root / "Delta+Epsilon")
    write_system(root / "Delta+Epsilon/systems", submitter="Delta+Epsilon")
    shutil.rmtree(root / "Gamma/systems")
    next(root.glob("ACME/results/*/*/result_0.txt")).write_bytes(b"\x00\xff")
    return root


def test_problems_are_listed_and_the_rest_is_complete(poor: Path, tmp_path: Path) -> None:
    folder = tmp_path / "review"
    result = call("review", poor, "-o", folder, "-j", "1")
    assert result.exit_code == 1, result.output
    assert json.loads((folder / "review.json").read_bytes())["problems"] == [
        "Beta and be_ta are counted as one submitter: Beta",
        "Gamma: 1 result set without a system description (bow-pod16), so division and"
        " accelerators are unknown",
        "1 file not read or checked (LOG110, a file without records):"
        " ACME/results/bow-pod16/resnet/result_0.txt",
    ]
    assert "5 submitters, 5 systems, 5 result sets, 25 runs" in result.output
    call("review", poor, "-o", folder, "-j", "1", "--exclude", "ACME", "--force")
    readme = (folder / "README.md").read_text()
    assignments = readme.partition("\n## Assignments")[2]
    assert "Delta and Epsilon submit together." in assignments
    assert "| ACME |" not in assignments.partition("### Ranks")[0]


def test_an_archive_has_the_tables_of_its_round(a_round: Path, tmp_path: Path) -> None:
    root = shutil.copytree(a_round, tmp_path / a_round.name)
    next(root.glob("ACME/results/*/*/result_0.txt")).write_bytes(b"\x00\xff")
    write_system(root / "Beta/systems", status="soon")
    folders = []
    for tree in (root, in_archive(root, tmp_path)):
        folders.append(tmp_path / f"review of {tree.name}")
        call("review", tree, "-o", folders[-1], "-j", "1")
    of_round, of_archive = (bytes_below(folder / "tables") for folder in folders)
    assert of_archive == of_round


def test_several_rounds(a_round: Path, tmp_path: Path) -> None:
    root = shutil.copytree(a_round, tmp_path / "submissions")
    for name, logs in (("Newer", simulated(round_="2.1")), ("Empty", ())):
        write_system(root / name / "systems", submitter=name)
        write_set(root / name / f"results/{SYSTEM}/resnet", logs)
    result = call("review", root, "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code == 1, result.output
    assert "several rounds: 2.0, 2.1; review each round by itself" in result.output
    assert "Empty: no result set" in result.output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{round} --joint ACME+Btea", "'Btea' is not a submitter of the round; did you mean"),
        ("{round} --exclude ACNE", "--exclude: 'ACNE' is not a submitter of the round; did"),
        ("logs", "no submission; expected the folder of one round"),
        ("compare previews 4.1", "give OLD and NEW, or neither of them to compare all"),
        ("compare previews 5.0 4.1", "not later than 5.0 (published); expected OLD"),
        ("compare previews 1.5 2.0", "1.5: not a folder, and no such round was published"),
        (
            "compare previews 5.1 6.0",
            "6.0: not a folder, and the round is newer than the published",
        ),
        ("compare previews 4.1 ./5.0", "./5.0: no such file or folder"),
    ],
)
def test_refusals(
    line: str, message: str, a_round: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_set(Path("logs"), simulated())
    result = call("review", *line.format(round=a_round).split())
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True)
    assert not Path("review").exists()


@pytest.fixture(scope="module")
def reviewed(a_round: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a review of the round."""
    folder = tmp_path_factory.mktemp("reviewed")
    assert call("review", a_round, "-o", folder / "review", "-j", "1").exit_code == 0
    return folder


def test_force_replaces_a_review(a_round: Path, reviewed: Path) -> None:
    first = bytes_below(reviewed)
    folder = reviewed / "review"
    assert call("review", a_round, "-o", folder, "-j", "2", "--force").exit_code == 0
    assert bytes_below(reviewed) == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-o {out}/review", "{out}/review exists already; --force replaces it"),
        ("-o {out}/review --force", "as notes.md is not part of it"),
        ("-o {out}/notes --force", "exists, but is not a review"),
        ("-o {round}/review --force", "refusing to write inside an input folder"),
    ],
)
def test_nothing_else_is_replaced(
    options: str, message: str, a_round: Path, reviewed: Path, tmp_path: Path
) -> None:
    shutil.copytree(reviewed / "review", tmp_path / "review")
    (tmp_path / "review/notes.md").write_text("mine")
    (tmp_path / "notes").mkdir()
    before = bytes_below(tmp_path)
    places = {"round": a_round, "out": tmp_path}
    result = call("review", a_round, *options.format(**places).split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert message.format(**places) in result.stderr
    assert bytes_below(tmp_path) == before


def rows_of(document: Any, name: str) -> list[Any]:
    """The rows of the first table of a section."""
    tables = next(s["tables"] for s in document["sections"] if s["name"] == name)
    return list(tables[0]["rows"])


@pytest.fixture(scope="module")
def with_packages(poor: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the review of a round, and its packages."""
    folder = tmp_path_factory.mktemp("packages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        call("review", poor, "-j", "1")
        result = call("review", "packages", "review")
    assert result.stdout == "written: packages/, a folder for each of 5 submitters\n"
    return folder


@pytest.mark.parametrize("name", ["ACME", "Beta", "Gamma", "Delta", "Epsilon"])
def test_packages(name: str, with_packages: Path) -> None:
    """Each submitter, also of a joint submission, has what concerns it, and nothing else."""
    files = bytes_below(with_packages / "packages" / name)
    texts = {path: content.decode("utf-8") for path, content in files.items()}
    document = json.loads(texts["review.json"])
    assert document["submitters"][0]["name"] == name
    pairs = rows_of(document, "assignments")
    assert pairs
    assert all(name in (*row[:2], *row[2].split("+")) for row in pairs)
    partners = {cell for row in pairs for cell in row[:2]}
    strangers = {"ACME", "Beta", "Gamma"} - partners - {name}
    lines = "\n".join(texts.values()).split("\n")
    foreign = [line for line in lines if strangers & {*re.findall(r"(?:ACME|Beta|Gamma)\b", line)}]
    assert [line for line in foreign if "copies of the runs of" not in line] == []


def test_the_package_of_a_partner_has_its_entry_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_round(tmp_path / "training_results_v2.0", "ACME", "Beta")
    write_system(root / "ACME/systems", "pod", submitter="ACME + Gamma", system_name="pod")
    write_set(root / "ACME/results/pod/resnet", simulated(seed=11))
    monkeypatch.chdir(tmp_path)
    result = call("review", root, "-j", "1", "-o", "review")
    assert "3 submitters, 3 systems, 3 result sets" in result.output
    document = json.loads(Path("review/review.json").read_bytes())
    assert document["submitters"] == [
        {"name": "ACME", "folders": ["ACME"], "parts": {}},
        {"name": "Beta", "folders": ["Beta"], "parts": {}},
        {"name": "Gamma", "folders": ["ACME"], "parts": {"ACME": ["pod"]}},
    ]
    call("review", "packages", "review")
    own = Path("packages/Gamma/README.md").read_text("utf-8")
    assert "| ACME | pod |" in own
    assert f"| ACME | {SYSTEM} |" not in own
    of_owner = Path("packages/ACME/README.md").read_text("utf-8")
    assert f"| ACME | {SYSTEM} |" in of_owner


def test_packages_are_never_replaced(with_packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(with_packages)
    assert "exists" in call("review", "packages", "review").stderr


def test_packages_need_a_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("review", "packages", "review").exit_code == 2


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Round 2.0 with a Preview, and round 2.1 with the same submission, now Available."""
    root = tmp_path_factory.mktemp("rounds")
    old = write_submission(root / "training_results_v2.0/Graphcore")
    write_system(old / "systems", division="closed", status="preview", number_of_nodes="4")
    new = shutil.copytree(old, root / "training_results_v2.1/Graphcore")
    write_system(new / "systems", division="closed", number_of_nodes="4")
    return [str(old.parent), str(new.parent)]


def listing(*arguments: str) -> Any:
    return json.loads(call("review", "compare", *arguments, "--format", "json").stdout)


@pytest.mark.parametrize(
    ("name", "counts", "fields"),
    [
        ("previews", [1], {"outcome": "own logs only"}),
        ("resubmitted", [0, 0, 1, 0], {"description": "different", "different_fields": "status"}),
    ],
)
def test_folders_in_all_formats(
    name: str, counts: list[int], fields: dict[str, str], sides: list[str]
) -> None:
    document = listing(name, *sides)
    assert document["format"] == f"mlperf-pkg/review-{name}/1"
    assert list(document["counts"].values()) == counts
    (row,) = document[name]
    assert row == row | fields
    arguments = ("review", "compare", name, *sides)
    text = call(*arguments)
    assert text.exit_code == 1
    assert max(map(len, text.stdout.splitlines())) <= 80
    assert call(*arguments, "--format", "markdown").stdout.startswith("## ")
    (csv_row,) = csv.DictReader(call(*arguments, "--format", "csv").stdout.splitlines())
    assert (csv_row.keys(), csv_row["path"]) == (row.keys(), row["path"])


def test_all_published_rounds() -> None:
    counts = listing("previews")["counts"]
    assert list(counts) == [
        outcome.value
        for outcome in PreviewOutcome
        if outcome not in (PreviewOutcome.NOT_DUE, PreviewOutcome.RETIRED)
    ]
    assert list(counts.values()) == [3, 3, 6, 9, 3, 9, 6, 33]
    assert [
        (usage, sets)
        for usage, sets in (("training", 208), ("hpc", 12))
        if sum(listing("resubmitted", "--usage", usage)["counts"].values()) != sets
    ] == []


def test_without_published_results(
    sides: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "PATH", tmp_path / "missing")
    result = call("review", "compare", "previews", "4.1", "5.0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the published results are missing; reinstall mlperf-pkg" in result.stderr
    assert listing("previews", *sides)["counts"] == {"own logs only": 1}
    result = call("review", sides[0], "-o", tmp_path / "review")
    assert "1 Preview: 0 with their Available result, 1 where it is" in result.stdout


def test_a_previous_round(sides: list[str], tmp_path: Path) -> None:
    """It takes the place of the published ones: a resubmission of 4.0 is one of the same folder."""
    old, new = sides
    folder = tmp_path / "review"
    result = call("review", new, "--previous", old, "-o", folder, "-j", "1")
    (row,) = rows_of(json.loads((folder / "review.json").read_text("utf-8")), "resubmitted")
    assert (row[0], row[4]) == (
        "not allowed since round 5.1",
        "a former Preview needs new runs",
    )
    summary = "1 Preview: 0 with their Available result, 1 where it is missing or uncertain"
    assert summary in " ".join(result.stdout.split())
    result = call("review", old, "--previous", new, "-o", tmp_path / "other", "-j", "1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "expected OLD, then NEW" in result.stderr
