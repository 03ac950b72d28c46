"""Reports on published rounds obey the schema, fit on a few screens, and drop no finding."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options, scores
from mlperf_pkg.commands.page.content import content
from mlperf_pkg.commands.results.score import SCORE_FORMATS
from mlperf_pkg.render import FORMATS, Show, View
from mlperf_pkg.render.text import by_code
from mlperf_pkg.results.report import Report
from tests.helpers.corpus import CORPUS, ROUNDS, needs_corpus
from tests.helpers.report_schema import complaints_on


@needs_corpus
@pytest.mark.parametrize("round_", ["v0.7", "v2.0", "v4.1", "hpc_v2.0"])
def test_published_submissions(round_: str) -> None:
    smallest = sorted(
        (path for path in (CORPUS / round_).iterdir() if path.is_dir()),
        key=lambda path: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
    )
    for path in smallest[:3]:
        assert complaints_on(path) == []


pytestmark = needs_corpus
MOST = {"v2.0": 200, "v5.1": 150}


@lru_cache
def checked(tree: str) -> Report:
    return check([f"{CORPUS}/{tree}"], Options()).report


@pytest.mark.parametrize("tree", [*ROUNDS, "v0.7/Google", "v2.0/NVIDIA"])
def test_lines(tree: str) -> None:
    shown = FORMATS["text"](checked(tree), View())
    assert shown.count("\n") <= MOST.get(tree, 120)


@pytest.mark.parametrize("tree", ROUNDS)
def test_one_finding_for_each_message_on_a_subject(tree: str) -> None:
    counts = Counter(
        (one.code, one.message, one.about, one.severity, one.basis, one.waiver)
        for one in checked(tree).findings
    )
    assert [key for key, number in counts.items() if number > 1] == []


@pytest.mark.parametrize("tree", ROUNDS)
def test_no_format_for_people_drops_a_finding(tree: str) -> None:
    report = checked(tree)
    groups = by_code(report.findings)
    assert sum(len(group.findings) for group in groups) == len(report.findings)
    assert len(content(report, (), {}).findings) == len(report.findings)
    lines = FORMATS["text"](report, View(show=Show.ALL)).splitlines()
    for group in groups:
        assert sum(f"  {group.first.code}" in line for line in lines) >= len(group.findings)


@pytest.mark.parametrize(
    ("tree", "most"), [("v2.0", 80), ("v5.1", 45), ("v0.7/Google", 60), ("hpc_v2.0", 12)]
)
def test_lines_of_scores(tree: str, most: int) -> None:
    shown = SCORE_FORMATS["text"](scores(check([f"{CORPUS}/{tree}"], Options())), View())
    lines = shown.splitlines()
    assert len(lines) <= most
    assert max(map(len, lines)) <= 80
