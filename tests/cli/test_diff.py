"""``mlperf-pkg diff``."""

import json
import os
import shutil
from pathlib import Path

import pytest

from mlperf_pkg.commands.diff.formats import DIFF_FORMATS
from tests.helpers.logs import edited
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, write_submission, write_system

SET = f"results/{SYSTEM}/resnet"
LRATE = "lars_opt_base_learning_rate"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_submission(tmp_path / "old")


def altered(old: Path, new: Path) -> Path:
    """A copy with a hostile value in a log, another description, and what is never read."""
    shutil.copytree(old, new)
    write_submission(new, "bert")
    log = new / SET / "result_0.txt"
    log.write_bytes(edited(log.read_bytes(), LRATE, value="\x1b[31m\u202e"))
    write_system(new / "systems", cooling="\x1b[31m", more=[1])
    (new / "link").symlink_to("/dev/zero")
    os.mkfifo(new / "pipe")
    return new


def test_text(old: Path, tmp_path: Path) -> None:
    result = call("diff", "-v", old, altered(old, tmp_path / "new"))
    assert (result.exit_code, result.stderr) == (1, "")
    words = " ".join(result.stdout.split())
    assert [
        text
        for text in (
            "description changed - to be decided Rule: a description may be corrected until",
            '10.284 (5 runs) 10.284 (4 runs); "\\u001b[31m\\u202e" (1 run)',
            "4 runs unchanged 1 run changed: result_0.txt",
            f"system systems/{SYSTEM}.json",
            "cooling Air-cooled \\x1b[31m",
            "more - [1]",
            f": results/{SYSTEM}/bert (closed), round 2.0, ",
            "2 files added: link, pipe",
        )
        if text not in words
    ] == []
    assert "\x1b" not in result.stdout
    same = call("diff", old, shutil.copytree(old, tmp_path / "same"))
    assert (same.exit_code, "nothing changed: 1 result set" in same.stdout) == (0, True)


@pytest.mark.parametrize("format_", DIFF_FORMATS)
def test_formats(format_: str, old: Path, tmp_path: Path) -> None:
    new = altered(old, tmp_path / "new")
    file = tmp_path / format_
    result = call("diff", old, new, "--format", format_, "-o", file)
    assert (result.exit_code, result.output) == (1, "")
    written = file.read_text("utf-8")
    assert (LRATE in written, written.isascii()) == (True, True), format_
    assert call("diff", old, new, "--format", format_, "-o", file).exit_code == 2


# ---- two rounds -----------------------------------------------------------------------------


def test_resubmitted_logs(tmp_path: Path) -> None:
    folders = ("training_results_v2.0/ACME", "training_results_v2.1/ACME.2")
    old, new = (write_submission(tmp_path / folder) for folder in folders)
    shown = " ".join(call("diff", old, new).stdout.split())
    text = f"the system description is the same (round 2.0: 5 of 5 runs from {SET}): {SET}"
    assert (text in shown, "SET151" in shown) == (True, False)
    (finding,) = json.loads(call("diff", old, new, "--format", "json").stdout)["across_rounds"]
    assert (finding["code"], finding["runs"], finding["of_runs"]) == ("SET151", 5, 5)
    assert (finding["subject"], finding["path"]) == (f"{new}/{SET}", f"{new}/{SET}/result_0.txt")
