"""What a run is to reach."""

from __future__ import annotations

from mlperf_pkg.commands.watch.forecast import goal_of
from mlperf_pkg.rulebook.load import load_benchmark
from tests.helpers.logs import good_log, run_of


def test_the_goal_is_met_when_each_bound_is() -> None:
    rules = load_benchmark("training", "2.0", "maskrcnn")
    assert rules is not None
    goal = goal_of(run_of(good_log("maskrcnn")), rules, 256)
    assert set(goal.bounds) == {"BBOX", "SEGM"}
    assert not goal.met({"BBOX": 0.5})
    assert not goal.met({"BBOX": 0.5, "SEGM": 0.1})
    assert goal.met({"BBOX": 0.5, "SEGM": 0.5})
    assert goal.limit("SEGM", 0.1) == 0.339
    assert goal.limit("SEGM", 0.5) is None
