"""Every score that others published, of all rounds, from the logs of the published submissions."""

from __future__ import annotations

import csv
from functools import cache

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.corpus import corpus_folder, needs_corpus

TOLERANCE = 1e-9
CONFIRMED = ("exact", "rounded", "unscaled")
"""How a row of ``published.csv`` matches the published logs, where it does."""

pytestmark = needs_corpus


@cache
def published() -> list[dict[str, str]]:
    folder = corpus_folder()
    assert folder
    with (folder.parent / "expected" / "published.csv").open(encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row["match"] in CONFIRMED]


@cache
def scored(round_: str) -> dict[str, ResultSetRow]:
    """The result sets of a round in the corpus, by submitter, system and benchmark.

    They are scaled as they were published: before 3.1, few were.
    """
    folder = corpus_folder()
    assert folder
    options = Options(jobs=1, flags=frozenset({KEEP_SCALING}))
    rows = check([str(folder / f"v{round_}")], options).report.result_sets
    return {row.path.replace("/results/", "/"): row for row in rows}


ROUNDS = ["1.0", "1.1", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0", "5.1"]


@pytest.mark.parametrize("round_", ROUNDS)
def test_every_published_score(round_: str) -> None:
    sets = scored(round_)
    rows = [r for r in published() if r["round"] == round_ and r["result_set"] in sets]
    different = {
        r["result_set"]: r["minutes"] for r in rows if not agrees(r, sets[r["result_set"]])
    }
    assert different == {}


def test_there_is_something_to_compare_with() -> None:
    rows = [row for row in published() if row["match"] == "exact"]
    exact = [row for row in rows if row["result_set"] in scored(row["round"])]
    assert len(exact) == 95
    assert {r["round"] for r in exact} == {"1.0", "1.1", "2.0", "2.1", "3.0", "5.0"}


def agrees(source: dict[str, str], row: ResultSetRow) -> bool:
    """To the precision of the source; some sources leave ``scaling.json`` out."""
    ours = row.unscaled_minutes if source["match"] == "unscaled" else row.score_minutes
    digits = len(source["minutes"].partition(".")[2])
    rounding = 0.5 * 10.0**-digits if source["match"] == "rounded" else 0.0
    return ours is not None and abs(ours - float(source["minutes"])) <= rounding + TOLERANCE
