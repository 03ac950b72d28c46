"""``mlperf-pkg compare``."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.commands.compare.formats import COMPARE_FORMATS
from tests.helpers.charts import DEFECT, fail
from tests.helpers.program import call
from tests.helpers.trees import write_submission

CSV = "system,benchmark,minutes,round,submitter,division,accelerators\n"

DGX = "dgx,resnet,40,2.0,Other,closed,8"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A submission to round 2.0, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_submission(tmp_path / "v2.0" / "ACME", "resnet")
    return Path("v2.0/ACME")


def published(*lines: str) -> Path:
    path = Path("scores.csv")
    path.write_text(CSV + "".join(f"{line}\n" for line in lines), "utf-8")
    return path


def compared(*arguments: str | Path) -> list[dict[str, Any]]:
    rows = json.loads(call("compare", *arguments, "--format", "json").stdout)["results"]
    return list(rows)


def test_a_submission_against_published_scores(tree: Path) -> None:
    scores = published(DGX, "dgx,bert,40,2.0,Other,closed,8")
    Path("own.yaml").write_text(
        "{dgx: {price_usd: 4, source: x}, bow-pod16: {price_usd: 1, source: x}}"
    )
    own, other = compared(tree, scores, "--benchmark", "resnet", "--prices", "own.yaml")
    assert (own["baseline"], own["speed"], own["nodes"], own["rules"]) == (True, 1.0, 1, "pass")
    assert other["speed"] == pytest.approx(own["minutes"] / 40)
    assert other["performance_per_dollar"] == pytest.approx(own["minutes"] / 40 / 4)
    assert (own["samples_per_second"] > 0, own["precision"], other["rules"]) == (True, None, None)


def test_a_submission_against_published_rounds(tree: Path) -> None:
    rows = compared(tree, "--published", "v2.0", "--system", "NVIDIA")
    names = ("published", "baseline", "submitter", "round", "benchmark")
    assert {tuple(row[name] for name in names) for row in rows} == {
        (False, True, "ACME", "2.0", "resnet"),
        (True, False, "NVIDIA", "2.0", "resnet"),
    }
    assert all(row["hyperparameters"]["global_batch_size"] for row in rows)


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("", 2, "nothing to compare: name a PATH, or a round with --published"),
        ("v2.0/ACME --baseline bow-pod", 2, "did you mean bow-pod16?"),
        (
            "v2.0/ACME --benchmark x",
            2,
            "no result matches --benchmark, --system, --division and --accel",
        ),
        ("v2.0/ACME", 1, "Time to train"),
        ("v2.0/ACME --chart speed.svg", 2, "no ratio to draw"),
        ("v2.0/ACME --published v", 2, "--published v: no such round"),
    ],
)
@pytest.mark.usefixtures("tree")
def test_exit_status(line: str, status: int, message: str) -> None:
    result = call("compare", *line.split())
    assert (result.exit_code, message in result.output) == (status, True), result.output


@pytest.mark.parametrize("format_", COMPARE_FORMATS)
def test_hostile_names_are_harmless(format_: str, tree: Path) -> None:
    scores = published("\x1b[31m\u202e|<b>,resnet,40,2.0,=1+1,closed,8")
    result = call("compare", tree, scores, "--format", format_)
    assert result.exit_code == 0
    assert not {"\x1b", "\u202e"} & {*result.stdout}, format_


# ---- the chart ----------------------------------------------------------------------------


def test_chart(tree: Path) -> None:
    scores = published(DGX)
    result = call("compare", tree, scores, "--chart", "speed.SVG")
    assert result.exit_code == 0
    assert Path("speed.SVG").read_text("utf-8").count(">Other: dgx") >= 1
    again = call("compare", tree, scores, "--chart", "speed.SVG")
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)


def test_each_benchmark_has_a_chart_of_its_own_with_its_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "--published 5.0 --baseline NVIDIA/* --accelerators 8 --chart speed.svg"
    call("compare", *line.split(), "--benchmark", "rgat", "--benchmark", "llama2_70b_lora")
    files = sorted(Path().glob("speed*"))
    names = ["speed-llama2_70b_lora-closed.svg", "speed-rgat-closed.svg"]
    assert [file.name for file in files] == names
    picture = files[0].read_text("utf-8")
    assert "relative to 5.0 NVIDIA/" in picture
    assert ">systems with 8 accelerators, like the baseline" in picture
    assert int(re.findall(r'height="(\d+)"', picture)[0]) < 1500


def test_a_comparison_without_its_chart_is_still_a_comparison(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = published(DGX)
    expected = call("compare", tree, scores).stdout
    monkeypatch.setattr(drawing, "comparisons", fail)
    result = call("compare", tree, scores, "--chart", "speed.svg")
    assert (result.exit_code, result.stdout) == (2, expected)
    assert result.stderr == f"mlperf-pkg: error: speed.svg: the chart cannot be drawn: {DEFECT}\n"
    assert not Path("speed.svg").exists()
