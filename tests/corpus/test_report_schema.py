"""Reports of published submissions obey the schema of the JSON report."""

from __future__ import annotations

import pytest

from tests.helpers.corpus import corpus_folder, needs_corpus
from tests.helpers.report_schema import complaints_on


@needs_corpus
@pytest.mark.parametrize("round_", ["v0.7", "v2.0", "v4.1", "hpc_v2.0"])
def test_published_submissions(round_: str) -> None:
    folder = corpus_folder()
    assert folder
    smallest = sorted(
        (path for path in (folder / round_).iterdir() if path.is_dir()),
        key=lambda path: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
    )
    for path in smallest[:3]:
        assert complaints_on(path) == []
