"""``mlperf-pkg results``."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.helpers.archives import ARCHIVES
from tests.helpers.program import call
from tests.helpers.tables import TABLES, names
from tests.helpers.trees import SYSTEM, remove, write_submission, write_system

FILES = [
    *("official", "privateid.json", "results.csv", "results.html", "results.json", "results.xlsx"),
    "scores.csv",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A round of two submitters."""
    root = tmp_path / "training_results_v2.0"
    for seed, name in enumerate(("ACME", "Other")):
        write_submission(root / name, seed=7 + seed)
        write_system(root / name / "systems", submitter=name)
    return root


@pytest.mark.parametrize("options", [[], ["--verdict", "rules"]])
def test_a_round(options: list[str], root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = call("results", root, "-o", out, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert names(out) == FILES
    assert names(out / "official") == TABLES
    words = " ".join(result.stdout.split())
    counts = "2 submitters, 2 systems, 2 results, 2 with a score"
    assert words.startswith(f"MLPerf Training 2.0 results: {counts}")
    assert ("Missing" in words, "(2 new)" in words) == (False, True)


INSIDE = "refusing to write inside an input folder"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "training_results_v2.0/out"], INSIDE),
        (["--private-ids", "training_results_v2.0/ids"], INSIDE),
        (["-o", "a", "--private-ids", "a/results.json"], "a/results.json: a file of the summary"),
        (["--private-ids", "bad.json"], "bad.json:1: expected private ids by row"),
    ],
)
def test_refusals(
    options: list[str], message: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent)
    Path("bad.json").write_text("[]", "utf-8")
    result = call("results", root.name, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert names(root.parent) == ["bad.json", root.name]


def test_private_ids_are_added_through_a_link(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    Path("shared").mkdir()
    Path("ids.json").symlink_to("shared/ids.json")
    assert call("results", root.name, "-o", "week1", "--private-ids", "ids.json").exit_code == 0
    assert Path("ids.json").is_symlink()
    assert names(Path("shared")) == ["ids.json"]


def words_in(path: Path, words: list[str]) -> list[str]:
    """Those of some words that are in a file of text or in a spreadsheet."""
    data = path.read_bytes()
    if path.suffix == ".xlsx":
        with ZipFile(path) as book:
            data = b"".join(map(book.read, book.namelist()))
    text = re.sub(r"http://(schemas|purl|www\.w3)", "", data.decode("utf-8"))
    return [word for word in words if word in text]


def test_an_anonymous_summary(root: Path, tmp_path: Path) -> None:
    """No file has a name, a path, a link, hardware or software: ids and scores are left."""
    remove(root / "Other/results" / SYSTEM / "resnet/result_1.txt")
    out, file = tmp_path / "out", tmp_path / "ids.json"
    result = call("results", root, "-o", out, "--private-ids", file, "--anonymous")
    assert result.exit_code == 1
    assert names(out) == [name for name in FILES if name not in ("official", "privateid.json")]
    document = json.loads((out / "results.json").read_text("utf-8"))
    entries = json.loads(file.read_text("utf-8"))
    private = {key: entry["private_id"] for key, entry in entries.items()}
    assert [row["id"] for row in document["rows"]] == sorted(private.values())
    sizes = {(row["processors"], row["accelerators"]) for row in document["rows"]}
    assert sizes == {(None, None)}
    missing = f"{private[f'Other/{SYSTEM}']}, resnet: not valid: SET"
    assert document["missing"][0].startswith(missing)
    assert [score["published_minutes"] is None for score in document["scores"]].count(True) == 1
    description = json.loads((root / f"ACME/systems/{SYSTEM}.json").read_text("utf-8"))
    named = ["ACME", "Other", SYSTEM, root.name, "result_", "://", "github.com/mlcommons/"]
    named += [description[f"{key}_model_name"] for key in ("accelerator", "host_processor")]
    named += [description["framework"], description["system_name"]]
    assert {path.name: words_in(path, named) for path in out.iterdir()} == {
        name: [] for name in names(out)
    }
    assert "ACME" not in result.stdout
    assert "The scores of a row could still identify the submitter" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "out"], "out/privateid.json: names systems; choose a file outside"),
        (["-o", "out", "--private-ids", "out/ids.json"], "out/ids.json: names systems"),
        (
            ["-o", "named", "--private-ids", "ids.json", "--force"],
            "named/official: names systems; choose",
        ),
    ],
)
def test_an_anonymous_summary_has_no_file_with_names(
    options: list[str], message: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call("results", root, "-o", "named")
    result = call("results", root, "--anonymous", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("form", ARCHIVES)
def test_rows_of_archives_have_the_ids_of_the_round(form: str, root: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids.json"
    call("results", root, "-o", tmp_path / "out", "--private-ids", ids)
    written = ids.read_text()
    tree = ARCHIVES[form](root, tmp_path / "archives")
    result = call("results", tree, "-o", tmp_path / "again", "--private-ids", ids)
    assert (result.exit_code, ids.read_text()) == (0, written), result.stderr
