"""``mlperf-pkg report``."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.charts import drawing
from mlperf_pkg.commands.page import html
from tests.helpers.charts import DEFECT, fail
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_two_sets


@pytest.fixture(autouse=True)
def _small_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the library: it takes seconds and is not tested here."""
    monkeypatch.setattr(drawing, "runtime", lambda: "window.vegaEmbed = null;")


def test_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", write_set(tmp_path / "logs", simulated()), "-o", page)
    assert (result.exit_code, result.stdout) == (0, f"{page}\n")
    assert "<title>MLPerf Training 2.0: pass / pass</title>" in page.read_text("utf-8")


def test_raw_logs_of_two_sets_in_one_folder(tmp_path: Path) -> None:
    logs = write_two_sets(tmp_path / "logs")
    (logs / "b_4.log").unlink()
    assert call("report", logs, "-o", tmp_path / "r.html").exit_code == 1
    page = (tmp_path / "r.html").read_text("utf-8")
    shown = [text.partition("<h2")[0] for text in re.split(r'class="set">', page)[1:]]
    (first, second) = sorted(shown, key=lambda text: f"Graphcore/{SYSTEM}/" not in text)
    assert "Graphcore/b/resnet/closed" in second
    assert ["b_0.log" in text for text in (first, second)] == [False, True]
    assert ["SET101" in text for text in (first, second)] == [False, True]


@pytest.mark.parametrize("runs", [5, 2])
def test_the_verdicts_are_those_of_a_check(tmp_path: Path, runs: int) -> None:
    logs = write_set(tmp_path / "logs", simulated(runs=runs))
    result = call("report", logs, "-o", tmp_path / "page.html")
    check = call("check", logs, "--quiet")
    assert check.stdout.startswith("official: ")
    assert (result.exit_code, result.stderr) == (check.exit_code, check.stdout)


BROKEN = [
    (drawing, "curves", ["curves"]),
    (drawing, "times", ["times"]),
    (drawing, "rcp", ["rcp"]),
    (drawing, "timeline", ["timeline"]),
    (html, "packable", ["curves", "times", "rcp", "timeline"]),
]


@pytest.mark.parametrize(("module", "function", "names"), BROKEN)
def test_a_page_without_one_chart_says_which_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, function: str, names: list[str]
) -> None:
    monkeypatch.setattr(module, function, fail)
    page = tmp_path / "page.html"
    result = call("report", write_set(tmp_path / "logs", simulated()), "-o", page)
    assert (result.exit_code, result.stdout) == (0, f"{page}\n")
    text = unescape(page.read_text("utf-8"))
    remarks = re.findall("<p>The chart (.*) is missing: (.*)</p>", text)
    assert remarks == [(name, DEFECT) for name in names]


OF_A_ROUND = [
    (html, "trend", ["trend"]),
    (html, "scaling", ["scaling"]),
    (html, "convergence", ["convergence"]),
]


@pytest.mark.parametrize(("module", "function", "names"), OF_A_ROUND)
def test_the_page_of_a_round_without_one_chart_says_which_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, function: str, names: list[str]
) -> None:
    monkeypatch.setattr(module, function, fail)
    write_submission(tmp_path / "v2.0" / "ACME")
    write_submission(tmp_path / "v2.0" / "Other", seed=8)
    page = tmp_path / "page.html"
    assert call("report", tmp_path / "v2.0", "-o", page).exit_code == 0
    text = unescape(page.read_text("utf-8"))
    remarks = re.findall("<p>The chart (.*) is missing: (.*)</p>", text)
    assert remarks == [(name, DEFECT) for name in names]


def test_findings_are_exit_status_1(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME")
    (tree / "results/bow-pod16/resnet/result_4.txt").unlink()
    page = tmp_path / "page.html"
    assert call("report", tree, "-o", page).exit_code == 1
    assert ">SET101</b>" in page.read_text("utf-8")
    page.unlink()
    assert call("report", tree, "-o", page, "--ignore", "SET").exit_code == 0
    assert "hidden by --select or --ignore" in page.read_text("utf-8")


def test_the_same_input_is_the_same_page(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for page in pages:
        call("report", logs, "-o", page)
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_a_page_is_overwritten_only_by_force(tmp_path: Path) -> None:
    logs, page = write_set(tmp_path / "logs", simulated()), tmp_path / "page.html"
    page.write_text("mine")
    result = call("report", logs, "-o", page)
    assert (result.exit_code, page.read_text()) == (2, "mine")
    assert call("report", logs, "-o", page, "--force").exit_code == 0
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_nothing_is_written_into_the_input(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    result = call("report", logs, "-o", logs / "page.html")
    assert (result.exit_code, (logs / "page.html").exists()) == (2, False)


@pytest.mark.parametrize("missing", ["jinja2", "vl_convert"])
def test_without_the_extra_it_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    logs = write_set(tmp_path / "logs", simulated())
    result = call("report", logs, "-o", tmp_path / "page.html")
    assert result.exit_code == 2
    assert f" needs the package {missing}: pip install 'mlperf-pkg[report]'" in result.stderr


def test_a_waived_finding_names_who_waived_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME")
    (tree / "results/bow-pod16/resnet/result_4.txt").unlink()
    waivers = [
        f"  - {{code: {code}, path: resnet, reason: agreed, approved_by: Jane Doe, until: 2999-12-31}}"
        for code in ("SET101",)
    ]
    Path("mlperf-pkg.yaml").write_text("\n".join(["waivers:", *waivers]), "utf-8")
    result = call("report", tree, "-o", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert result.exit_code == 1  # the official checker ignores the waiver
    assert '<span class="severity">waived error</span> <b>SET101</b>' in page
    assert "waived by Jane Doe until 2999-12-31: agreed" in page


@pytest.mark.parametrize("ending", ["sqlite", "csv", "parquet", "duckdb"])
def test_the_history_of_an_export(ending: str, tmp_path: Path) -> None:
    """Of published results, whose page is then nearly the usual one, and of results of one's own."""
    tree = write_submission(tmp_path / "v2.0" / "ACME", "resnet")
    results = tmp_path / f"results.{ending}"
    assert call("export", tree.parent, "-o", results, "--evaluations").exit_code == 0
    page = tmp_path / "history.html"
    done = call("report", "--history", "--from", results, "-o", page)
    assert (done.exit_code, done.stderr) == (0, "")
    text = page.read_text("utf-8")
    assert f"1 result of Training 2.0, from results.{ending}." in text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("results.txt", "", "unknown ending; expected one of .parquet, .csv, .sqlite, .duckdb"),
        ("results.sqlite", "no database", "is not an export of this version"),
    ],
)
def test_what_is_no_export(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    done = call("report", "--history", "--from", tmp_path / name, "-o", tmp_path / "x.html")
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "x.html").exists()


def test_an_export_needs_the_history(tmp_path: Path) -> None:
    done = call("report", "--from", tmp_path)
    assert (done.exit_code, done.stderr.count("--from needs --history")) == (2, 1)
