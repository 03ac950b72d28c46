"""``mlperf-pkg score``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlperf_pkg.render.score import SCORE_FORMATS
from tests.cli.program import call
from tests.trees import simulated, write_set


def test_a_score(tmp_path: Path) -> None:
    result = call("score", write_set(tmp_path, simulated()))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "resnet: bow-pod16 (closed)" in result.stdout
    assert ", fastest" in result.stdout


def test_no_score(tmp_path: Path) -> None:
    result = call("score", write_set(tmp_path, simulated(runs=2)))
    assert result.exit_code == 1
    assert "2 of 5 runs: none is left after dropping 1 + 1" in result.stdout


def test_no_log(tmp_path: Path) -> None:
    assert call("score", tmp_path).exit_code == 2


@pytest.mark.parametrize("format_", SCORE_FORMATS)
def test_formats(tmp_path: Path, format_: str) -> None:
    file = tmp_path / "scores"
    result = call(
        "score", write_set(tmp_path / "logs", simulated()), "--format", format_, "-o", file
    )
    assert (result.exit_code, result.output) == (0, "")
    written = file.read_text("utf-8")
    assert written.endswith("\n")
    if format_ == "json":
        assert len(json.loads(written)["result_sets"][0]["runs"]) == 5
