"""Files of reference points: what they hold, and every one that cannot be read is named."""

import json
from pathlib import Path

import pytest

from mlperf_pkg.commands.rcp.records import points_folder, read_points
from mlperf_pkg.errors import UserError
from mlperf_pkg.rulebook.load import load_round
from tests.helpers.upstream import RUNS, point

FILE = "rcps_gpt3.json"


def test_the_folder_of_a_round() -> None:
    folder = points_folder(Path("mlperf_logging"), load_round("hpc", "3.0"))
    assert folder == Path("mlperf_logging/rcp_checker/hpc_3.0.0")


@pytest.mark.parametrize("key", ["Epochs to converge", "samples to converge"])
def test_the_runs_of_a_point(key: str, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(json.dumps({"x": {"Benchmark": "gpt3", "BS": 64, key: RUNS}}), "utf-8")
    record = read_points(path)["x"]
    assert record.batch_size == 64
    assert record.to_converge == RUNS


# ---- files that cannot be read ------------------------------------------------------------

BROKEN = {
    "empty": ("", "Expecting value"),
    "a batch size of zero": (json.dumps({"a": point(RUNS, BS=0)}), "`float` > 0.0"),
    "no list of runs": (json.dumps({"a": {"Benchmark": "gpt3", "BS": 6}}), "a has no finite"),
    "not a number": (json.dumps({"a": point([float("nan")])}), "NaN is not a number of JSON"),
    "an infinite batch size": (json.dumps({"a": point(RUNS)}).replace("64", "1e999"), "finite"),
    "a huge number": (json.dumps({"a": point([10**400])}), "out of range"),
    "a number of many digits": (f'{{"a": 1{"0" * 5000}}}', "4300"),
    "a name twice": ('{"a": {}, "a": {}}', "'a' is given twice"),
    "nested deeply": ('{"a": ' * 100_000, "nested too deeply"),
    "a name that moves the cursor": ('{"\x1b[2J": 1}', "Invalid control character"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_file_is_named(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(text, "utf-8")
    with pytest.raises(UserError) as caught:
        read_points(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert reason in message
    assert message.isprintable()


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_something_other_than_a_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / FILE
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    with pytest.raises(UserError, match=r"rcps_gpt3.json: not a file"):
        read_points(path)
