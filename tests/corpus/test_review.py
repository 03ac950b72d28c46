"""The review of published rounds: short, and of all result sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.corpus import ROUNDS, corpus_folder, needs_corpus
from tests.helpers.program import call

SECTIONS = ["submitters", "assignments", "hyperparameters", "convergence"]


@needs_corpus
@pytest.mark.parametrize("round_", ROUNDS)
def test_a_round(round_: str, tmp_path: Path) -> None:
    corpus = corpus_folder()
    assert corpus
    result = call("review", corpus / round_, "-o", tmp_path / "review", "-j", "1")
    lines = result.stdout.splitlines()
    assert result.exit_code in (0, 1)
    assert len(lines) <= 60
    assert max(map(len, lines[:-1])) <= 80
    assert "internal error" not in result.stdout
    document = json.loads((tmp_path / "review/review.json").read_bytes())
    names = [section["name"] for section in document["sections"]]
    assert [name for name in names if name in SECTIONS] == SECTIONS
    submitters = document["sections"][0]["tables"][0]["rows"]
    folders = {path.name for path in (corpus / round_).iterdir() if path.is_dir()}
    assert {row[0] for row in submitters} == folders
