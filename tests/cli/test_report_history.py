"""``mlperf-pkg report --history``."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlperf_pkg.commands.charts import pictures as vega
from tests.commands.page.test_history_html import unpacked
from tests.helpers.program import call
from tests.helpers.trees import simulated, write_set, write_submission


@pytest.fixture(autouse=True)
def _small_runtime_of_history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vega, "runtime", lambda: "window.vegaEmbed = null;")
    monkeypatch.chdir(tmp_path)


def test_it_needs_no_path() -> None:
    result = call("report", "--history")
    assert (result.exit_code, result.output) == (0, "history.html\n")
    assert "<title>MLPerf Training and HPC: all rounds</title>" in Path("history.html").read_text()


def test_own_results_are_added(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME", "bert", "resnet")
    result = call("report", "--history", tree, "-o", "-")
    assert result.exit_code == 0
    data = unpacked(result.output, "data")
    assert data["rows"]["own"][-2:] == [True, 2]
    assert "your results" in str(unpacked(result.output, "charts"))


def test_logs_without_a_system_description_are_added(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    result = call("report", "--history", logs, "-o", "-")
    assert result.exit_code == 0
    assert unpacked(result.output, "data")["rows"]["own"][-2:] == [True, 1]


def test_a_path_without_results(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = call("report", "--history", "empty")
    assert result.exit_code == 2
    assert not Path("history.html").exists()


def test_the_same_record_is_the_same_page() -> None:
    call("report", "--history", "-o", "one.html")
    call("report", "--history", "-o", "two.html")
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()


def test_without_history_a_path_is_required() -> None:
    result = call("report")
    assert result.exit_code == 2
    assert "no PATH given" in result.stderr
