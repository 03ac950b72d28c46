"""``mlperf-pkg diff``."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.diff.formats import DIFF_FORMATS
from tests.helpers.logs import edited
from tests.helpers.program import call
from tests.helpers.trees import (
    SYSTEM,
    write_submission,
    write_system,
    write_two_sets,
)

SET = f"results/{SYSTEM}/resnet"
LRATE = "lars_opt_base_learning_rate"
EVIL = "\x1b[31m\u202e"

Edit = Callable[[Path], object]


def in_runs(key: str, *numbers: int, **changes: Any) -> Edit:
    """Other fields in the records of a key of some runs."""

    def edit(tree: Path) -> None:
        for number in numbers:
            log = tree / SET / f"result_{number}.txt"
            log.write_bytes(edited(log.read_bytes(), key, **changes))

    return edit


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_submission(tmp_path / "old")


CHANGES: dict[str, tuple[Edit, list[str]]] = {
    "nothing": (lambda _: None, ["nothing changed: 1 result set, 5 runs with identical bytes"]),
    "some runs": (
        in_runs(LRATE, 0, 1, value=1.5),
        [
            f"{LRATE} 10.284 (5 runs) 10.284 (3 runs); 1.5 (2 runs)",
            "3 runs unchanged 2 runs changed: result_0.txt",
        ],
    ),
    "findings": (
        in_runs("lars_epsilon", *range(5), value=1),
        [
            "lars_epsilon 0 (5 runs) 1 (5 runs)",
            "appeared: error RN115: lars_epsilon is 1",
            "RN115 none 5 findings",
            "rules verdict pass FAIL",
        ],
    ),
    "a hostile value": (in_runs(LRATE, 0, value=EVIL), ['"\\u001b[31m\\u202e" (1 run)']),
    "a description": (
        lambda t: write_system(t / "systems", cooling=EVIL, more=[1]),
        [
            f"system systems/{SYSTEM}.json",
            "cooling Air-cooled \\x1b[31m\\u202e",
            "more - [1]",
        ],
    ),
    "more": (
        lambda t: (
            write_system(t / "systems", "other"),
            (t / "README.md").write_text("new"),
            write_submission(t, "bert"),
        ),
        [
            "added: system systems/other.json",
            f"added: result set results/{SYSTEM}/bert (closed)",
            "1 file added: README.md",
        ],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_text(old: Path, tmp_path: Path, name: str) -> None:
    edit, texts = CHANGES[name]
    new = tmp_path / "new"
    shutil.copytree(old, new)
    edit(new)
    result = call("diff", old, new)
    assert result.stderr == ""
    words = " ".join(result.stdout.split())
    assert [text for text in texts if text not in words] == []
    assert "\x1b" not in result.stdout
    assert result.exit_code == int("nothing changed" not in words)
    assert call("diff", new, old).exit_code == result.exit_code


@pytest.mark.parametrize("folder", ["logs", "other"])
@pytest.mark.parametrize("described", [True, False])
def test_raw_logs_of_two_sets_in_one_folder(
    tmp_path: Path, folder: str, *, described: bool
) -> None:
    """The sets are paired by what they are, whatever folder they are in."""
    old = write_two_sets(tmp_path / "old" / "logs", described=described)
    new = write_two_sets(tmp_path / "new" / folder, described=described)
    (new / "b_4.log").unlink()
    result = call("diff", old, new)
    assert result.exit_code == 1
    assert "resnet: b (closed)\n  runs              5       4\n" in result.stdout
    assert "result sets: 1 changed, 1 unchanged, 0 removed, 0 added" in result.stdout
    whole = json.loads(call("diff", old.parent, new, "--format", "json").stdout)
    assert whole["result_sets"]["unchanged"] == [f"Graphcore/{SYSTEM}/resnet/closed"]
    (changed,) = whole["result_sets"]["changed"]
    assert changed["new"]["id"] == "Graphcore/b/resnet/closed"


def test_folders_of_submissions(tmp_path: Path) -> None:
    for side, submitters in (("old", "AB"), ("new", "BC")):
        for submitter in submitters:
            write_submission(tmp_path / side / submitter)
    result = call("diff", tmp_path / "old", tmp_path / "new")
    assert result.exit_code == 1
    assert [
        line for line in result.stdout.splitlines() if line.startswith(("removed", "added"))
    ] == [
        f"removed: system A/systems/{SYSTEM}.json",
        f"removed: result set A/{SET} (closed), 5 runs, 19.565 minutes",
        f"added: system C/systems/{SYSTEM}.json",
        f"added: result set C/{SET} (closed), 5 runs, 19.565 minutes",
    ]


def test_links_and_pipes_are_not_read(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    shutil.copytree(old, new)
    (new / "link").symlink_to("/dev/zero")
    os.mkfifo(new / "pipe")
    result = call("diff", old, new)
    assert result.exit_code == 1
    assert "2 files added: link, pipe" in result.stdout


@pytest.mark.parametrize("format_", DIFF_FORMATS)
def test_formats(old: Path, tmp_path: Path, format_: str) -> None:
    new = tmp_path / "new"
    shutil.copytree(old, new)
    in_runs(LRATE, 0, value=EVIL)(new)
    file = tmp_path / "out"
    result = call("diff", old, new, "--format", format_, "-o", file)
    assert (result.exit_code, result.output) == (1, "")
    written = file.read_text("utf-8")
    assert LRATE in written
    assert written.isascii()
    assert call("diff", old, new, "--format", format_, "-o", file).exit_code == 2


@pytest.mark.parametrize("arguments", [(), ("only",), ("none", "none")])
def test_without_a_comparison(arguments: tuple[str, ...]) -> None:
    assert call("diff", *arguments).exit_code == 2


# ---- two rounds -----------------------------------------------------------------------------


def resubmitted(root: Path, names: tuple[str, str] = ("ACME", "ACME")) -> list[Path]:
    """The same submission in two rounds."""
    folders = (root / "training_results_v2.0", root / "training_results_v2.1")
    return [write_submission(folder / name) for folder, name in zip(folders, names, strict=True)]


@pytest.mark.parametrize("names", [("ACME", "ACME"), ("ACME", "ACME.2")])
def test_resubmitted_logs(tmp_path: Path, names: tuple[str, str]) -> None:
    old, new = resubmitted(tmp_path, names)
    shown = " ".join(call("diff", old, new).stdout.split()).replace(" ", "")
    text = f"note SET151: {new}/{SET}: resubmitted from {old}/{SET} (round 2.0, identical files)"
    assert text.replace(" ", "") in shown
    (finding,) = json.loads(call("diff", old, new, "--format", "json").stdout)["across_rounds"]
    assert (finding["code"], finding["runs"], finding["of_runs"]) == ("SET151", 5, 5)
    assert (finding["subject"], finding["path"]) == (f"{new}/{SET}", f"{new}/{SET}/result_0.txt")
    back = json.loads(call("diff", new, old, "--format", "json").stdout)["across_rounds"]
    assert back == [finding]
