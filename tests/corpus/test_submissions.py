"""Whole published submissions: package and repository checker, live on copies, against our verdict."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from tests.helpers.corpus import corpus_folder, needs_corpus
from tests.helpers.official import official_verdict

pytestmark = needs_corpus

CORPUS = corpus_folder() or Path("no corpus")
SMALL_BYTES = 700_000
"""What is larger is judged with ``MLPERF_PKG_FULL=1`` only."""


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def submissions() -> list[str]:
    folders = sorted(path.parent for path in CORPUS.glob("*v*/*/results"))
    full = os.environ.get("MLPERF_PKG_FULL")
    return [str(p.relative_to(CORPUS)) for p in folders if full or size(p) < SMALL_BYTES]


@pytest.mark.filterwarnings("ignore:Result file .* logs more than one seeds")
@pytest.mark.parametrize("name", submissions())
def test_verdict_of_the_upload(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = check([str(CORPUS / name)], Options(jobs=1)).report
    usage = "hpc" if name.startswith("hpc") else "training"
    official, message = official_verdict(
        CORPUS / name, tmp_path, caplog, usage, f"{report.round}.0"
    )
    shutil.rmtree(tmp_path / "copy")
    assert report.verdict.official.value == official, message
