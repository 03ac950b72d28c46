"""Every published result set, all rounds: RCP, seeds and official score against what is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.corpus import CORPUS, ROUNDS, expected, needs_corpus

pytestmark = needs_corpus

KEPT = Options(jobs=1, flags=frozenset({KEEP_SCALING}))  # as the summarizer reads the tree


@pytest.mark.parametrize("tree", ROUNDS)
def test_rcp_seeds_and_official_minutes(tree: str) -> None:
    facts = expected(tree)["result_sets"]
    submissions = sorted({path.split("/")[0] for path in facts})
    rows: dict[str, ResultSetRow] = {}
    for name in submissions:
        report = check([str(CORPUS / tree / name)], KEPT).report
        rows |= {f"{name}/{row.path}": row for row in report.result_sets}
    different = {
        path: (rows.get(path), facts[path]) for path in facts if not _agree(path, rows, facts)
    }
    assert not different


def _agree(path: str, rows: dict[str, ResultSetRow], all_facts: dict[str, Any]) -> bool:
    row, facts = rows[path], all_facts[path]
    return (
        row.official_minutes == pytest.approx(facts["official_minutes"])
        and row.seeds.official_pass == facts["seeds_official_pass"]
        and _rcp(row) == pytest.approx(_known_rcp(facts))
    )


def _rcp(row: ResultSetRow) -> dict[str, Any]:
    return (
        {"pass": row.rcp.official_pass, "normalization": row.rcp.normalization} if row.rcp else {}
    )


def _known_rcp(facts: dict[str, Any]) -> dict[str, Any]:
    rcp = facts["rcp"]
    return {"pass": rcp["official_pass"], "normalization": rcp["normalization"]} if rcp else {}


@needs_corpus
@pytest.mark.parametrize(("tree", "name", "sets"), [("v4.1", "Dell", 1), ("v5.0", "Lenovo", 4)])
def test_published_energy(tree: str, name: str, sets: int) -> None:
    report = check([str(CORPUS / tree / name)], Options()).report
    published = {
        path.removeprefix(f"{name}/"): facts["energy_joules"]
        for path, facts in expected(tree)["result_sets"].items()
        if path.startswith(f"{name}/")
    }
    energies = {row.path: row.energy_joules for row in report.result_sets}
    assert sum(energy is not None for energy in published.values()) == sets
    assert energies == pytest.approx(published)
    errors = {f.code for f in report.findings if f.severity.value == "error"}
    assert not any(code.startswith("POW") for code in errors)


WEAK = [
    ("hpc_v1.0", "LBNL", "perlmutter_10x128x4_ngc21.09_mxnet", "cosmoflow"),
    ("hpc_v1.0", "LBNL", "perlmutter_10x128x4_ngc21.09_pytorch", "deepcam"),
    ("hpc_v3.0", "HPE+LBNL", "perlmutter_10x128x4_ngc21.09_mxnet", "cosmoflow"),
    ("hpc_v3.0", "HPE+LBNL", "perlmutter_10x128x4_ngc21.09_pytorch", "deepcam"),
]


def published(tree: str, name: str, path: str) -> tuple[Path, ResultSetRow, set[str]]:
    report = check([str(CORPUS / tree / name)], Options(jobs=1)).report
    (row,) = (row for row in report.result_sets if row.path == path)
    return CORPUS / tree / name / path, row, {f.code for f in report.findings if f.path == path}


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
    published_sets = expected(tree)["result_sets"]
    seen = {}
    for name in sorted({path.split("/")[0] for path in published_sets}):
        for row in check([str(CORPUS / tree / name)], Options(jobs=1)).report.result_sets:
            facts = published_sets[f"{name}/{row.path}"]
            assert row.scaling == row.path.split("/")[-2]
            assert row.official_minutes == pytest.approx(facts["official_minutes"])
            assert row.seeds.official_pass == facts["seeds_official_pass"]
            assert row.rcp is not None
            assert row.rcp.official_pass == facts["rcp"]["official_pass"]
            assert facts["score_died"] is None
            seen[f"{name}/{row.path}"] = json.dumps(facts)
    assert set(seen) == set(published_sets)
