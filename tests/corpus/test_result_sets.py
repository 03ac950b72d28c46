"""Every published result set, all rounds: RCP, seeds and official score against what is known."""

from __future__ import annotations

from typing import Any

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.corpus import ROUNDS, corpus_folder, expected, needs_corpus

pytestmark = needs_corpus

KEPT = Options(jobs=1, flags=frozenset({KEEP_SCALING}))  # as the summarizer reads the tree


@pytest.mark.parametrize("tree", ROUNDS)
def test_rcp_seeds_and_official_minutes(tree: str) -> None:
    facts = expected(tree)["result_sets"]
    folder = corpus_folder()
    assert folder is not None
    submissions = sorted({path.split("/")[0] for path in facts})
    rows: dict[str, ResultSetRow] = {}
    for name in submissions:
        report = check([str(folder / tree / name)], KEPT).report
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
