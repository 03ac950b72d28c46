"""The published results of this package equal those of the corpus."""

import csv
from collections import Counter
from collections.abc import Iterable
from datetime import date
from functools import cache

import pytest

from mlperf_pkg.published.model import PublishedSet, Setting
from mlperf_pkg.published.results import published_results
from mlperf_pkg.results.report import ResultSetRow
from tests.helpers.corpus import CORPUS, ROUNDS, checked, kind_of, needs_corpus
from tests.tools.export import of_rounds

pytestmark = needs_corpus

OTHER_LOGS = {"Habana/results/SYS-420GH-TNGR/resnet"}
"""A set with a folder that is not in the corpus: the logs of another benchmark."""


def key(row: PublishedSet) -> tuple[str, str, str]:
    return (row.usage, row.round, row.path)


def values(settings: Iterable[Setting], index: int) -> set[tuple[str, str, int]]:
    return {(s.key, s.value, s.runs) for s in settings if s.set == index}


@pytest.mark.parametrize("round_name", ROUNDS)
def test_results_equal_those_of_the_corpus(round_name: str) -> None:
    facts = of_rounds([str(CORPUS / round_name)], made=date(2026, 11, 22))
    results = published_results()
    indexes = {key(row): index for index, row in enumerate(results.sets)}
    assert facts.sets
    assert list(facts.sets) == [results.sets[indexes[key(row)]] for row in facts.sets]
    # The collection lacks lists and some other values.
    lacking = {
        row.path: values(results.settings(row.benchmark), indexes[key(row)])
        - values(facts.settings, number)
        for number, row in enumerate(facts.sets)
        if row.path not in OTHER_LOGS
    }
    assert {path: settings for path, settings in lacking.items() if settings} == {}
    assert [
        (log_hash, number)
        for log_hash, number in facts.logs
        if indexes[key(facts.sets[number])]
        not in {name.index for name in results.names_with(log_hash)}
    ] == []


SAME = (
    "the rules allow this under certain conditions; not all could be checked, as some values of the"
    " published system description are unknown"
)
REWRITTEN = (
    "; 10 of the logs have been changed since then (the rules forbid such changes only from round"
    " 5.1 on)"
)
AGAIN = "runs of this set were already published in round"
PERLMUTTER = f"{AGAIN} HPC 1.0 as LBNL/perlmutter_10x128x4_ngc21.09_"
DEEPCAM = "32xXE8545x4A100-SXM4-40GB/strong/deepcam"
RESUBMITTED = {
    "hpc_v2.0": [
        ("SET160", f"{AGAIN} HPC 1.0 as TACC/longhorn-tf/strong/cosmoflow", SAME),
    ],
    "hpc_v3.0": [
        ("SET160", f"{AGAIN} HPC 2.0 as Dell/{DEEPCAM}", SAME),
        ("SET161", f"{PERLMUTTER}mxnet/weak/cosmoflow{REWRITTEN}", None),
        ("SET161", f"{PERLMUTTER}pytorch/weak/deepcam{REWRITTEN}", None),
    ],
}


@pytest.mark.parametrize("round_name", ROUNDS)
def test_published_rounds(round_name: str) -> None:
    """Scores are as published; the only findings are on sets that were published before."""
    record = {key(row): row.score_minutes for row in published_results().sets}
    usage, round_ = kind_of(round_name)
    rows = checked(round_name).report.result_sets
    assert {row.path: row.score_minutes for row in rows} == {
        row.path: record[usage, round_, row.path] for row in rows
    }
    codes = ("SET160", "SET161", "SET162", "SET163", "CHECK103")
    findings = checked(round_name).report.findings
    texts = [(f.code, f.text, f.hint) for f in findings if f.code in codes]
    assert texts == RESUBMITTED.get(round_name, [])


TOLERANCE = 1e-9
CONFIRMED = ("exact", "rounded", "unscaled")
"""How a row of ``published.csv`` matches the published logs, where it does."""


@cache
def published() -> list[dict[str, str]]:
    with (CORPUS.parent / "expected" / "published.csv").open(encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row["match"] in CONFIRMED]


def test_every_published_score() -> None:
    compared = Counter[str]()
    different: list[dict[str, str]] = []
    for round_ in sorted({row["round"] for row in published()}):
        rows = checked(f"v{round_}").report.result_sets
        sets = {row.path.replace("/results/", "/"): row for row in rows}
        of_round = [r for r in published() if r["round"] == round_ and r["result_set"] in sets]
        compared.update(r["match"] for r in of_round)
        different += [r for r in of_round if not agrees(r, sets[r["result_set"]])]
    assert different == []
    assert compared["exact"] == 95


def agrees(source: dict[str, str], row: ResultSetRow) -> bool:
    """To the precision of the source; some sources leave ``scaling.json`` out."""
    ours = row.unscaled_minutes if source["match"] == "unscaled" else row.score_minutes
    digits = len(source["minutes"].partition(".")[2])
    rounding = 0.5 * 10.0**-digits if source["match"] == "rounded" else 0.0
    return ours is not None and abs(ours - float(source["minutes"])) <= rounding + TOLERANCE
