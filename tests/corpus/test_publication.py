"""The tables of published rounds have the published scores, and fit on a screen."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.results.publication import rounded
from mlperf_pkg.published.results import published_results
from tests.corpus.test_published import CONFIRMED, published
from tests.helpers.corpus import CORPUS, needs_corpus
from tests.helpers.program import call

pytestmark = needs_corpus

ROUNDS = sorted(path.name for path in CORPUS.glob("*v*.*"))
BY_RULES = {
    "v0.7": ["SIAT/results/modelarts_512_tensorflow_open/resnet"],
    "v1.0": ["Google/results/tpu-v4-4096-TF/ssd"],
    "v1.1": [
        "Graphcore/results/ipu-pod64-POPART-open/bert",
        "Intel-HabanaLabs/results/HLS-1H-N2/resnet",
    ],
    "v4.1": [
        "Google/results/cloud-tpu-v5p-128-maxdiffusion/stable_diffusion",
        "Google/results/cloud-tpu-v5p-2048-maxdiffusion/stable_diffusion",
        "tinycorp/results/tinybox_green/bert",
    ],
    "v5.0": ["tinycorp/results/tinybox_green/bert"],
}
"""Result sets that the written rules forbid: they have a score, and a remark."""
DROPPED = "tinycorp/results/tinybox_green/bert"
"""A set of which the rules drop a run that the official score includes."""


@cache
def by_path() -> dict[tuple[str, str, str], float | None]:
    return {(row.usage, row.round, row.path): row.score_minutes for row in published_results().sets}


def cells(document: dict[str, Any]) -> dict[tuple[str, str], float]:
    """The cells with scores of all tables of time, by row and benchmark."""
    return {
        (row["id"], benchmark): row[benchmark]
        for table in document["tables"]
        if table["kind"] == "time to train"
        for row in table["rows"]
        for benchmark in document["benchmarks"]
        if row[benchmark] is not None
    }


@pytest.mark.parametrize("name", ROUNDS)
def test_every_score(name: str, tmp_path: Path) -> None:
    result = call("results", CORPUS / name, "-o", tmp_path / "out", "--jobs", "1", "--keep-scaling")
    lines = result.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    document = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    assert result.exit_code == int(bool(document["missing"]))
    shown = cells(document)
    omitted = [score["path"] for score in document["scores"] if score["reason"]]
    assert omitted == []
    remarked = [s["path"] for s in document["scores"] if "rules:" in s["remarks"]]
    assert remarked == BY_RULES.get(name, [])
    for score in document["scores"]:
        if not score["reason"]:
            minutes = by_path()[document["usage"], document["round"], score["path"]]
            if score["path"] == DROPPED:
                minutes = score["minutes"]
            assert score["published_minutes"] == rounded(minutes)
            if score["scaling"] != "weak":
                assert shown[score["id"], score["benchmark"]] == rounded(minutes)
    valid = [s for s in document["scores"] if not s["reason"] and s["scaling"] != "weak"]
    assert len(shown) == len(valid)
    with (tmp_path / "out" / "scores.csv").open(encoding="utf-8") as stream:
        scores = {row["path"].replace("/results/", "/"): row for row in csv.DictReader(stream)}
    for row in published():  # by others
        score = scores.get(row["result_set"]) if f"v{row['round']}" == name else None
        if score is None or score["reason"] or row["match"] == "unscaled":
            continue
        assert row["match"] in CONFIRMED
        digits = min(len(row["minutes"].partition(".")[2]), 3)
        tolerance = 1e-9 if row["match"] == "exact" else 0.5 * 10**-digits + 0.0005
        assert float(score["minutes"]) == pytest.approx(
            float(row["minutes"]), abs=0.0005 + tolerance
        )
