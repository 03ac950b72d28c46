"""Both verdicts' numbers against what is known of the published submissions, rounds 1.0 to 2.0."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.corpus import corpus_folder, expected, needs_corpus

ROUNDS = ("v1.0", "v1.1", "v2.0")
BENCHMARKS = ("resnet", "bert", "rnnt")
LOGS = {"v1.0": 185, "v1.1": 180, "v2.0": 235}
TOLERANCE = 1e-9

pytestmark = needs_corpus


@lru_cache
def report(round_: str) -> Report:
    folder = corpus_folder()
    assert folder
    return check([str(folder / round_)], Options(flags=frozenset({KEEP_SCALING}))).report


def result_sets(round_: str) -> list[tuple[ResultSetRow, dict[str, Any]]]:
    facts = expected(round_)["result_sets"]
    return [(r, facts[r.path]) for r in report(round_).result_sets if r.benchmark in BENCHMARKS]


def close(value: float | None, expectation: float | None) -> bool:
    return value == expectation or abs((value or 0.0) - (expectation or 0.0)) <= TOLERANCE


@pytest.mark.parametrize("round_", ROUNDS)
def test_every_log(round_: str) -> None:
    """Official verdict, records and minutes of each log: 100 %."""
    facts = expected(round_)["logs"]
    runs = {run.path: run for run in report(round_).runs}
    paths = [path for path in facts if path.split("/")[3] in BENCHMARKS]
    wrong = [
        path
        for path in paths
        if (runs[path].verdict.official.value, runs[path].records)
        != (facts[path]["official"], facts[path]["records"])
        or not close(runs[path].official_minutes, facts[path]["minutes"])
    ]
    assert wrong == []
    assert len(paths) == LOGS[round_]


@pytest.mark.parametrize("round_", ROUNDS)
def test_every_result_set(round_: str) -> None:
    """RCP verdict, message and normalisation, seeds and official score of each set: 100 %."""
    for row, facts in result_sets(round_):
        assert row.rcp, row.path
        verdict = (row.rcp.official_pass, row.rcp.message)
        assert verdict == (facts["rcp"]["official_pass"], facts["rcp"]["message"]), row.path
        assert row.rcp.normalization == pytest.approx(facts["rcp"]["normalization"], rel=TOLERANCE)
        assert row.seeds.official_pass is facts["seeds_official_pass"], row.path
        assert close(row.official_minutes, facts["official_minutes"]), row.path


@pytest.mark.parametrize("round_", ROUNDS)
def test_every_system(round_: str) -> None:
    facts = expected(round_)["systems"]
    assert {row.path: row.verdict.official.value for row in report(round_).systems} == facts


@pytest.mark.parametrize(
    ("round_", "path", "minutes"),
    [
        ("v1.0", "ipu-pod64-POPART-open/bert", 9.392),
        ("v1.0", "ipu-pod64-TF1/resnet", 14.485),
        ("v1.0", "ipu-pod16-POPART-closed/bert", 34.489),
        ("v1.0", "ipu-pod16-TF1/resnet", 37.115),
        ("v2.0", "ipu-pod16-TF1-closed/resnet", 19.635),
        ("v2.0", "ipu-pod64-TF1-closed/resnet", 6.302),
        ("v2.0", "ipu-pod128-TF1-closed/resnet", 4.185),
        ("v2.0", "ipu-pod256-TF1-closed/resnet", 2.672),
        ("v2.0", "ipu-pod16-POPART-closed/bert", 20.654),
        ("v2.0", "ipu-pod64-POPART-closed/bert", 6.703),
        ("v2.0", "ipu-pod128-POPART-closed/bert", 4.415),
        ("v2.0", "ipu-pod256-POPART-closed/bert", 3.185),
        ("v2.0", "ipu-pod64-POPART-open/rnnt", 109.357),
    ],
)
def test_scores_by_name(round_: str, path: str, minutes: float) -> None:
    rows = {row.path: row for row in report(round_).result_sets}
    score = rows[f"Graphcore/results/{path}"].score_minutes
    assert score is not None
    assert round(score, 3) == minutes


@pytest.mark.parametrize("round_", ROUNDS)
def test_reviewed_runs_do_not_break_the_rules(round_: str) -> None:
    """Competitors reviewed these runs: the rules find a spelling, and two learning rates in a set."""
    errors = {
        (finding.code, finding.path.split("/")[0])
        for finding in report(round_).findings
        if finding.severity == "error" and finding.basis in ("rules", "both")
    }
    exceptions = {"v1.0": {("SYS201", "PCL")}, "v1.1": {("SET122", "Intel-HabanaLabs")}}
    assert errors == exceptions.get(round_, set())
