"""The scores of whole rounds fit on a few screens."""

from __future__ import annotations

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options, scores
from mlperf_pkg.commands.score.formats import SCORE_FORMATS
from mlperf_pkg.render import View
from tests.helpers.corpus import corpus_folder, needs_corpus

pytestmark = needs_corpus


@pytest.mark.parametrize(
    ("tree", "most"), [("v2.0", 80), ("v5.1", 45), ("v0.7/Google", 60), ("hpc_v2.0", 12)]
)
def test_lines(tree: str, most: int) -> None:
    shown = SCORE_FORMATS["text"](scores(check([f"{corpus_folder()}/{tree}"], Options())), View())
    lines = shown.splitlines()
    assert len(lines) <= most
    assert max(map(len, lines)) <= 80
