"""From a check to what its charts show."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.charts import drawing
from tests.helpers.trees import simulated, write_set, write_submission


def test_a_set_has_its_runs_with_their_curves(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME", "bert", "resnet")
    sets = drawing.drawn_sets(check([str(tree)], Options()))
    assert [(drawn.row.benchmark, len(drawn.runs), drawn.ruleset) for drawn in sets] == [
        ("bert", 10, "2.0.0"),
        ("resnet", 5, "2.0.0"),
    ]
    assert all(run.curve.evaluations and run.curve.spans for drawn in sets for run in drawn.runs)


def test_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = check([str(write_set(tmp_path, simulated()))], Options(round="2.0"))
    alone = drawing.drawn_sets(checked)
    monkeypatch.setattr(drawing, "PARALLEL_FROM_RECORDS", 0)
    assert drawing.drawn_sets(checked, jobs=2) == alone


def test_a_log_that_is_gone_has_no_curve(tmp_path: Path) -> None:
    checked = check([str(write_set(tmp_path, simulated()))], Options(round="2.0"))
    (tmp_path / "result_0.txt").unlink()
    (one,) = drawing.drawn_sets(checked)
    assert [bool(run.curve.evaluations) for run in one.runs] == [False, *[True] * 4]
