"""``mlperf-pkg report``."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec
from xml.etree import ElementTree

import pytest

from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.commands.page import html
from mlperf_pkg.infra import streams
from tests.helpers.charts import DEFECT, fail
from tests.helpers.logs import without
from tests.helpers.pages import unpacked
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission


@pytest.fixture(autouse=True)
def _small_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Replace the library: it takes seconds and is not tested here."""
    monkeypatch.setattr(drawing, "runtime", lambda: "window.vegaEmbed = null;")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("runs", [5, 2])
def test_the_verdicts_are_those_of_a_check(tmp_path: Path, runs: int) -> None:
    logs = write_set(tmp_path / "logs", simulated(runs=runs))
    result = call("report", logs, "-o", tmp_path / "page.html")
    check = call("check", logs, "--quiet")
    assert check.stdout.startswith("official: ")
    assert (result.exit_code, result.stderr) == (check.exit_code, check.stdout)


def test_a_page_is_the_same_where_nothing_is_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write_set(tmp_path / "logs", simulated(runs=5))
    call("report", logs, "-o", "memory.html")
    monkeypatch.setattr(streams, "MOST_IN_MEMORY", 0)
    append = create_autospec(streams.Spool.append, side_effect=streams.Spool.append)
    monkeypatch.setattr(streams.Spool, "append", append)
    call("report", logs, "-o", "files.html")
    assert Path("files.html").read_bytes() == Path("memory.html").read_bytes()
    assert append.call_count >= 5 + 3  # the curves; the page, the data of its charts, and its end


@pytest.mark.parametrize(
    ("module", "function", "names"),
    [
        (drawing, "curves", ["curves"]),
        (html, "packable", ["curves", "times", "rcp", "timeline", "convergence"]),
    ],
)
def test_a_page_without_one_chart_says_which_and_why(
    module: Any, function: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_submission(tmp_path / "v2.0" / "ACME")
    write_submission(tmp_path / "v2.0" / "Other", seed=8)
    monkeypatch.setattr(module, function, fail)
    assert call("report", tmp_path / "v2.0", "-o", "page.html", "--force").exit_code == 0
    text = unescape(Path("page.html").read_text("utf-8"))
    remarks = set(re.findall("<p>The chart (.*) is missing: (.*)</p>", text))
    assert remarks == {(name, DEFECT) for name in names}


@pytest.mark.parametrize("ending", ["sqlite", "csv"])
def test_the_history_of_an_export(ending: str, tmp_path: Path) -> None:
    """Of published results, whose page is then nearly the usual one, and of results of one's
    own.
    """
    tree = write_submission(tmp_path / "v2.0" / "ACME", "resnet")
    results = tmp_path / f"results.{ending}"
    assert call("export", tree.parent, "-o", results, "--evaluations").exit_code == 0
    page = tmp_path / "history.html"
    done = call("report", "--history", "--from", results, "-o", page)
    assert (done.exit_code, done.stderr) == (0, "")
    text = page.read_text("utf-8")
    assert f"1 result of Training 2.0, from results.{ending}." in text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_of_each_chart(tmp_path: Path) -> None:
    tree, out = write_submission(tmp_path / "training_results_v2.0" / "A&B"), tmp_path / "out"
    result = call("report", tree, "-o", out, "--draw", "all")
    assert (result.exit_code, result.stderr) == (0, "")
    of_set = [f"results-bow-pod16-resnet.{n}.svg" for n in ("curves", "rcp", "timeline", "times")]
    assert names(out) == ["resnet.scoreboard.svg", *of_set]
    assert sorted(result.stdout.splitlines()) == [str(out / name) for name in names(out)]
    assert [
        file for file in out.iterdir() if not ElementTree.parse(file).getroot().tag.endswith("svg")
    ] == []


def test_one_chart_as_pixels(tmp_path: Path) -> None:
    logs, out = write_set(tmp_path / "logs", simulated()), tmp_path / "out"
    assert call("report", logs, "-o", out, "--draw", "times", "--format", "png").exit_code == 0
    (file,) = out.iterdir()
    assert file.name == "Graphcore-bow-pod16-resnet-closed.times.png"
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("logs", "--draw", "all", "--history"), "--draw and --history cannot be used together"),
        (("logs", "--format", "png"), "--format needs --draw"),
        (("--from", "."), "--from needs --history"),
        (("logs", "--review"), "--review needs --site"),
        (("logs", "--draw", "time"), "did you mean times?"),
        (("logs", "--site", "x", "-o", "y"), "--site and --output cannot be used together"),
    ],
)
def test_mistyped(options: Any, message: str) -> None:
    result = call("report", *options)
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_a_chart_that_cannot_be_prepared_is_named_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is written without being drawn, which takes a second."""
    document = lambda chart: json.dumps(chart.document()).encode()  # noqa: E731
    monkeypatch.setitem(drawing.PICTURES, "svg", document)
    monkeypatch.setattr(drawing, "rcp", fail)
    logs, out = write_set(tmp_path / "logs", simulated()), tmp_path / "out"
    result = call("report", logs, "-o", out, "--draw", "all")
    name = "Graphcore-bow-pod16-resnet-closed"
    assert result.exit_code == 1
    assert result.stderr == f"mlperf-pkg: the chart {name}.rcp cannot be drawn: {DEFECT}\n"
    files = [f"{name}.{chart}.svg" for chart in ("curves", "timeline", "times")]
    assert names(out) == [*files, "resnet.scoreboard.svg"]


def test_nothing_to_draw(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", (without(simulated()[0], "run_start"),))
    result = call("report", logs, "-o", tmp_path / "out", "--draw", "times")
    assert (result.exit_code, result.stderr) == (1, "mlperf-pkg: there is nothing to draw\n")
    assert not (tmp_path / "out").exists()


def test_a_history_needs_no_path_but_adds_own_results(tmp_path: Path) -> None:
    result = call("report", "--history")
    assert (result.exit_code, result.output) == (0, "history.html\n")
    page = Path("history.html").read_text()
    assert "<title>MLPerf Training and HPC: all rounds</title>" in page
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME", "bert", "resnet")
    result = call("report", "--history", tree, "-o", "-")
    assert result.exit_code == 0
    assert unpacked(result.output, "data")["rows"]["own"][-2:] == ["yours", 2]
    (tmp_path / "empty").mkdir()
    assert call("report", "--history", "empty", "-o", "none.html").exit_code == 2
    assert not Path("none.html").exists()


def test_a_site_of_several_rounds(tmp_path: Path) -> None:
    for name in ("ACME", "Other"):
        write_submission(tmp_path / "training_results_v2.0" / name, seed=len(name))
    write_submission(tmp_path / "again" / "v2.0" / "ACME")
    out = tmp_path / "site"
    done = call("report", "--site", out, "training_results_v2.0", "again/v2.0", "--review")
    assert done.exit_code == 0
    pages = ["index", "history", "training-2.0", "training-2.0-2"]
    reviews = [f"{name}-review/review" for name in pages[2:]]
    assert done.stdout.split() == [f"{out}/{name}.html" for name in (*pages, *reviews)]
    index = (out / "index.html").read_text("utf-8")
    links = set(re.findall('href="([^"#d][^"#]*)', index))
    assert links == {f"{name}.html" for name in (*pages[1:], *reviews)}
    assert re.search(r"resnet [0-9.]+ \(unverified\) min, ", index)
    assert [
        name
        for name in pages[1:]
        if '<a href="index.html">All pages</a>' not in (out / f"{name}.html").read_text("utf-8")
    ] == []
    assert (out / "training-2.0-review" / "review.json").exists()
    assert "<b>Your results</b> (3, 3 not published)" in (out / "history.html").read_text("utf-8")
