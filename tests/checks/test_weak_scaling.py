"""Weak scaling: many models at once, against the official summarizer."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.log.record import Record
from mlperf_pkg.results.scoring import Score, Span, weak_score
from mlperf_pkg.run.readers import InstanceScale
from mlperf_pkg.simulate import RunPlan, simulate_set
from tests.helpers.logs import edited
from tests.helpers.official import official_verdict
from tests.helpers.trees import SYSTEM, write_set, write_system

MINUTE = 60_000.0


@pytest.mark.parametrize(
    ("runs", "required", "score"),
    [
        ([Span("a", 0, MINUTE), Span("b", MINUTE, 3 * MINUTE)], 2, Score(3.0)),
        ([Span("a", 5, 5 + MINUTE)], 1, Score(1.0)),
        ([Span("a", 0, MINUTE)], 2, Score(None, (), "only 1 of 2 models were trained")),
        ([], 1, Score(None, (), "only 0 of 1 models were trained")),
    ],
)
def test_from_the_first_start_to_the_last_stop(
    runs: list[Span], required: int, score: Score
) -> None:
    assert weak_score(runs, [], required) == score


def test_models_that_are_not_trained_are_dropped() -> None:
    score = weak_score([Span("a", 0, MINUTE)], [("b", True), ("c", False)], 1)
    assert score == Score(1.0, (("b", "did not converge"), ("c", "has no time-to-train")))


@pytest.mark.parametrize(
    ("records", "scale"),
    [
        ([("number_of_nodes", 128), ("accelerators_per_node", 4)], 512),
        ([("accelerators_per_node", 0), ("number_of_nodes", 7)], 7),
        ([("number_of_nodes", "2"), ("accelerators_per_node", "8")], 16),
        ([("number_of_nodes", 1), ("number_of_nodes", 2), ("accelerators_per_node", 3)], 6),
        ([("number_of_nodes", 2), ("accelerators_per_node", 3), ("number_of_nodes", 9)], 6),
        ([("number_of_nodes", 2), ("number_of_nodes", None), ("accelerators_per_node", 3)], None),
        ([("number_of_nodes", 2)], None),
        ([("number_of_nodes", "x"), ("accelerators_per_node", 3)], None),
        ([], None),
    ],
)
def test_instance_scale(records: list[tuple[str, Any]], scale: int | None) -> None:
    reader = InstanceScale()
    for key, value in records:
        reader.take(Record(key, 0, value, {}), 0)
    assert reader.result() == scale
    assert official_scale(records) == scale


def official_scale(records: list[tuple[str, Any]]) -> int | None:
    class Line:
        def __init__(self, key: str, value: Any) -> None:
            self.key, self.value = key, {"value": value}

    try:
        scale: int = result_summarizer._query_instance_scale(
            [Line(key, value) for key, value in records]
        )
    except ValueError:
        return None
    return scale


# ---- in a submission ----------------------------------------------------------------------


@cache
def models(runs: int = 5) -> tuple[bytes, ...]:
    plan = RunPlan("2.0", "deepcam", "closed", SYSTEM, "Graphcore", accelerators=16, usage="hpc")
    return tuple(simulate_set(plan, seed=7, runs=runs))


def one_seed(log: bytes) -> bytes:
    return edited(log, "seed", value=5)


@pytest.mark.parametrize(
    ("scalings", "changed", "verdicts", "errors"),
    [
        (("strong", "weak"), 0, ("pass", "pass"), []),
        (("weak",), 0, ("pass", "fail"), ["SET131 rules"]),
        (("strong",), 0, ("pass", "pass"), []),
        (("strong", "weak"), 2, ("fail", "fail"), ["SEED102 both", "SEED102 both"]),
        (("strong",), 2, ("fail", "fail"), ["SEED102 both"]),
    ],
)
def test_throughput_needs_time_to_solution_and_its_models_other_seeds(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    scalings: tuple[str, ...],
    changed: int,
    verdicts: tuple[str, str],
    errors: list[str],
) -> None:
    root = tmp_path / "Graphcore"
    write_system(root / "systems", number_of_nodes="2", accelerators_per_node="8")
    logs = (*map(one_seed, models()[:changed]), *models()[changed:])
    for scaling in scalings:
        write_set(root / "results" / SYSTEM / scaling / "deepcam", logs)
    report = check([str(root)], Options("hpc", "2.0", jobs=1)).report
    codes = sorted(f"{f.code} {f.basis}" for f in report.findings if f.severity.value == "error")
    assert (report.verdict.official.value, report.verdict.rules.value) == verdicts
    assert codes == errors
    official, _ = official_verdict(root, tmp_path, caplog, usage="hpc", ruleset="2.0.0")
    assert official == verdicts[0]
