"""The review of published rounds: short, and of all result sets."""

import json
from pathlib import Path

import pytest
from msgspec.structs import asdict

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review.round import read_side, record_side
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.corpus import CORPUS, SOME_ROUNDS, kind_of, needs_corpus
from tests.helpers.program import call

pytestmark = needs_corpus

UNKNOWN = "global_batch_size"  # of a folder, where nothing compares it


@pytest.mark.parametrize("round_", SOME_ROUNDS)
def test_a_round(round_: str, tmp_path: Path) -> None:
    result = call("review", CORPUS / round_, "-o", tmp_path / "review", "-j", "1")
    assert result.exit_code in (0, 1)
    assert len(result.stdout.splitlines()) <= 60
    assert "internal error" not in result.stdout
    document = json.loads((tmp_path / "review/review.json").read_bytes())
    folders = {path.name for path in (CORPUS / round_).iterdir() if path.is_dir()}
    assert {folder for item in document["submitters"] for folder in item["folders"]} == folders
    assert all(len(item["name"]) > 2 and "+" not in item["name"] for item in document["submitters"])


@pytest.mark.parametrize("name", SOME_ROUNDS)
def test_as_published(name: str) -> None:
    side = read_side(f"{CORPUS}/{name}", Options(jobs=1, flags=frozenset({KEEP_SCALING})))
    entries = record_side(kind_of(name)[0]).entries
    record = {(entry.row.round, entry.row.path): entry for entry in entries}
    assert side.entries
    for entry in side.entries:
        published = record[entry.row.round, entry.row.path]
        assert asdict(entry.row) | {UNKNOWN: None} == asdict(published.row) | {UNKNOWN: None}
        assert {*entry.logs} <= {*published.logs}
