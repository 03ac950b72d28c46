"""From a check to what its charts show."""

from __future__ import annotations

from pathlib import Path

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.charts import drawing
from tests.helpers.trees import write_submission


def test_a_set_has_its_runs_with_their_curves(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME", "bert", "resnet")
    sets = drawing.drawn_sets(check([str(tree)], Options(curves=True)))
    assert [(drawn.row.benchmark, len(drawn.runs), drawn.ruleset) for drawn in sets] == [
        ("bert", 10, "2.0.0"),
        ("resnet", 5, "2.0.0"),
    ]
    assert all(run.curve.evaluations and run.curve.spans for drawn in sets for run in drawn.runs)


def test_curves_are_read_only_if_asked_for(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "training_results_v2.0" / "ACME", "resnet")
    checked, with_curves = (check([str(tree)], Options(curves=curves)) for curves in (False, True))
    assert not any(run.curve for run in checked.runs)
    assert all(run.curve for run in with_curves.runs)
    assert with_curves.report == checked.report
