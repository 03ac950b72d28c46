"""Every published result set, all rounds: RCP, seeds, scores and energy against what is known."""

from typing import Any

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.submission.model import AS_FILED
from tests.helpers.corpus import CORPUS, ROUNDS, checked, expected, kind_of, needs_corpus
from tests.parity.incumbent import quickened

pytestmark = needs_corpus


@pytest.mark.parametrize("tree", ROUNDS)
def test_rcp_seeds_and_official_minutes(tree: str) -> None:
    """With the factors of the tree, as the summarizer reads it."""
    all_facts = expected(tree)["result_sets"]
    rows = {row.path: row for row in checked(tree, AS_FILED).report.result_sets}

    assert [(rows[path], f) for path, f in all_facts.items() if not _agree(rows[path], f)] == []
    if kind_of(tree)[0] == "hpc":
        assert [row.scaling for row in rows.values()] == [path.split("/")[-2] for path in rows]
        assert rows.keys() == all_facts.keys()


def _agree(row: ResultSetRow, facts: dict[str, Any]) -> bool:
    ours = row.rcp and {
        "official_pass": row.rcp.official_pass,
        "message": row.rcp.message,
        "normalization": pytest.approx(row.rcp.normalization, rel=1e-12),
    }
    return (
        row.official_minutes == pytest.approx(facts["official_minutes"])
        and row.seeds.official_pass == facts["seeds_official_pass"]
        and facts["rcp"] == ours
        and row.energy_joules == pytest.approx(facts["energy_joules"])
    )


@pytest.mark.parametrize("submission", ["hpc_v1.0/LBNL", "hpc_v3.0/HPE+LBNL"])
@pytest.mark.parametrize("path", ["mxnet/weak/cosmoflow", "pytorch/weak/deepcam"])
def test_published_weak_sets(submission: str, path: str) -> None:
    path = f"results/perlmutter_10x128x4_ngc21.09_{path}"
    _, system, _, benchmark = path.split("/")
    report = checked(submission).report
    (row,) = (row for row in report.result_sets if row.path == path)
    arguments = ("hpc", f"{kind_of(submission)[1]}.0")
    with quickened():
        scores, power = result_summarizer._compute_weak_score_standalone(
            benchmark, system, False, str(CORPUS / submission / path), *arguments
        )
    assert power == {}
    assert row.score_minutes == pytest.approx(scores[f"{benchmark}:time_to_train_all"])
    assert row.number_of_models == scores[f"{benchmark}:number_of_models"] == 10
    assert row.instance_scale == scores[f"{benchmark}:instance_scale"] == 512
    assert (row.scaling, row.scaling_factor) == ("weak", 1.0)
    # Ten models are more than the five that are required.
    assert "SET101" not in {f.code for f in report.findings if f.path == path}
