"""The tables of published rounds have the published scores, and fit on a screen."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.cli import results
from mlperf_pkg.commands.results.publication import rounded
from mlperf_pkg.findings import Verdict
from mlperf_pkg.published.results import published_results
from tests.helpers.corpus import CORPUS, ROUNDS, checked, needs_corpus
from tests.helpers.program import call

pytestmark = needs_corpus


@cache
def by_path() -> dict[tuple[str, str, str], float | None]:
    return {(row.usage, row.round, row.path): row.score_minutes for row in published_results().sets}


def cells(document: dict[str, Any]) -> dict[tuple[str, str], float]:
    """The cells with scores of all tables of time, by row and benchmark."""
    timed = (table for table in document["tables"] if table["kind"] == "time to train")
    cells = ((row, b) for table in timed for row in table["rows"] for b in document["benchmarks"])
    return {(row["id"], b): row[b] for row, b in cells if row[b] is not None}


@pytest.mark.parametrize("name", ROUNDS)
def test_every_score(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "check", lambda *_: checked(name))  # once for all tests
    result = call("results", CORPUS / name, "-o", tmp_path / "out", "--jobs", "1")
    lines = result.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    document = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    assert result.exit_code == int(bool(document["missing"]))
    shown = cells(document)
    assert [score["path"] for score in document["scores"] if score["reason"]] == []
    remarked = {s["path"] for s in document["scores"] if "rules:" in s["remarks"]}
    sets = checked(name).report.result_sets
    forbidden = {row.path for row in sets if row.verdict.rules is Verdict.FAIL}
    assert remarked == forbidden & {score["path"] for score in document["scores"]}
    published = [
        (score["path"], rounded(published_minutes(document, score))) for score in document["scores"]
    ]
    assert [(s["path"], s["published_minutes"]) for s in document["scores"]] == published
    strong = [score for score in document["scores"] if score["scaling"] != "weak"]
    assert sorted(shown.items()) == sorted(
        ((s["id"], s["benchmark"]), s["published_minutes"]) for s in strong
    )


def published_minutes(document: dict[str, Any], score: dict[str, Any]) -> float | None:
    """The minutes of a score in the record."""
    return by_path()[document["usage"], document["round"], score["path"]]
