"""Result sets of folders as if they were published: those of the corpus are in the record."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review.sides import read_side, record_side
from mlperf_pkg.submission.model import KEEP_SCALING
from tests.helpers.corpus import ROUNDS, corpus_folder, needs_corpus

pytestmark = needs_corpus

UNKNOWN = "global_batch_size"  # of a folder, where nothing compares it


@pytest.mark.parametrize("name", ROUNDS)
def test_as_published(name: str) -> None:
    side = read_side(f"{corpus_folder()}/{name}", Options(jobs=1, flags=frozenset({KEEP_SCALING})))
    usage = "hpc" if name.startswith("hpc") else "training"
    record = {(entry.row.round, entry.row.path): entry for entry in record_side(usage).entries}
    assert side.entries
    for entry in side.entries:
        published = record[entry.row.round, entry.row.path]
        assert asdict(entry.row) | {UNKNOWN: None} == asdict(published.row) | {UNKNOWN: None}
        assert {*entry.logs} <= {*published.logs}
