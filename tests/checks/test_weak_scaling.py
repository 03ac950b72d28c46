"""Weak scaling: many models at once, against the official summarizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.log.record import Record
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.results.scoring import Score, Span, weak_score
from mlperf_pkg.run.scale import InstanceScale
from tests.helpers.corpus import corpus_folder, expected, needs_corpus

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
    assert score == Score(1.0, (("b", "did not converge"), ("c", "has no time")))


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


# ---- the published record -----------------------------------------------------------------

WEAK = [
    ("hpc_v1.0", "LBNL", "perlmutter_10x128x4_ngc21.09_mxnet", "cosmoflow"),
    ("hpc_v1.0", "LBNL", "perlmutter_10x128x4_ngc21.09_pytorch", "deepcam"),
    ("hpc_v3.0", "HPE+LBNL", "perlmutter_10x128x4_ngc21.09_mxnet", "cosmoflow"),
    ("hpc_v3.0", "HPE+LBNL", "perlmutter_10x128x4_ngc21.09_pytorch", "deepcam"),
]


def published(tree: str, name: str, path: str) -> tuple[Path, ResultSetRow, set[str]]:
    folder = corpus_folder()
    assert folder is not None
    report = check([str(folder / tree / name)], Options(jobs=1)).report
    (row,) = (row for row in report.result_sets if row.path == path)
    return folder / tree / name / path, row, {f.code for f in report.findings if f.path == path}


@needs_corpus
@pytest.mark.parametrize(("tree", "name", "system", "benchmark"), WEAK)
def test_published_weak_sets(tree: str, name: str, system: str, benchmark: str) -> None:
    folder, row, codes = published(tree, name, f"results/{system}/weak/{benchmark}")
    ruleset = f"{tree.rpartition('v')[2]}.0"
    scores, power = result_summarizer._compute_weak_score_standalone(
        benchmark, system, False, str(folder), "hpc", ruleset
    )
    assert power == {}
    assert row.score_minutes == pytest.approx(scores[f"{benchmark}:time_to_train_all"])
    assert row.number_of_models == scores[f"{benchmark}:number_of_models"] == 10
    assert row.instance_scale == scores[f"{benchmark}:instance_scale"] == 512
    assert (row.scaling, row.scaling_factor) == ("weak", 1.0)
    assert "SET101" not in codes  # ten models where five are required


@needs_corpus
@pytest.mark.parametrize("tree", ["hpc_v1.0", "hpc_v2.0", "hpc_v3.0"])
def test_every_hpc_set(tree: str) -> None:
    folder = corpus_folder()
    assert folder is not None
    published_sets = expected(tree)["result_sets"]
    seen = {}
    for name in sorted({path.split("/")[0] for path in published_sets}):
        for row in check([str(folder / tree / name)], Options(jobs=1)).report.result_sets:
            facts = published_sets[f"{name}/{row.path}"]
            assert row.scaling == row.path.split("/")[-2]
            assert row.official_minutes == pytest.approx(facts["official_minutes"])
            assert row.seeds.official_pass == facts["seeds_official_pass"]
            assert row.rcp is not None
            assert row.rcp.official_pass == facts["rcp"]["official_pass"]
            assert facts["score_died"] is None
            seen[f"{name}/{row.path}"] = json.dumps(facts)
    assert set(seen) == set(published_sets)
