"""Reports on published rounds obey the schema, fit on a few screens, and drop no finding."""

from collections import Counter

import pytest

from mlperf_pkg.commands.page.content import content
from mlperf_pkg.render import FORMATS, Show, View
from mlperf_pkg.render.text import by_code
from tests.helpers.corpus import ROUNDS, checked, needs_corpus
from tests.helpers.report_schema import errors_of

pytestmark = needs_corpus
MOST = {"v2.0": 200, "v5.1": 150}


@pytest.mark.parametrize("tree", ROUNDS)
def test_all_findings_are_shown_once(tree: str) -> None:
    """Each message on a subject, in every format for people."""
    report = checked(tree).report
    assert errors_of(report) == []
    assert FORMATS["text"](report, View()).count("\n") <= MOST.get(tree, 120)
    counts = Counter((f.code, f.message, f.about, f.severity, f.basis) for f in report.findings)
    assert [key for key, number in counts.items() if number > 1] == []
    groups = by_code(report.findings)
    assert sum(len(group.findings) for group in groups) == len(report.findings)
    assert len(content(report, (), {}).findings) == len(report.findings)
    lines = FORMATS["text"](report, View(show=Show.ALL)).splitlines()
    for group in groups:
        assert sum(f"  {group.first.code}" in line for line in lines) >= len(group.findings)
