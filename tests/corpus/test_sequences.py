"""The sequence by which MLCommons scores a round, on published submissions: ours beside theirs.

The package checker writes ``scaling.json``, the summarizer reads it. The lighter submissions are
compared in every run, all of them with ``MLPERF_PKG_FULL=1``.
"""

import shutil
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checks.score import OTHER_SCORE
from mlperf_pkg.commands.results.official import summarize
from mlperf_pkg.findings import Verdict, Verdicts
from tests.compat.sequences import CHECK, STATES, SUMMARIZE, both
from tests.helpers.corpus import CORPUS, FULL, kind_of, light_submissions, needs_corpus

pytestmark = needs_corpus

CASES = [
    (name, state)
    for number, name in enumerate(light_submissions())
    for column, state in enumerate(STATES)
    if FULL or state == "deleted" or number % 12 == column
]


@pytest.mark.parametrize(("name", "state"), CASES)
def test_every_cell(name: str, state: str, tmp_path: Path) -> None:
    """Status, tables and factors; ``score --tables`` writes the tables without any file.

    Scores are the official ones, but for those with a note on another score.
    """
    tree = shutil.copytree(CORPUS / name, tmp_path / Path(name).name)
    STATES[state](tree)
    usage, round_ = kind_of(name)
    ours, theirs = both(tree, usage, f"{round_}.0", (CHECK, SUMMARIZE), tmp_path)
    assert ours == theirs
    checked = check([str(tree)], Options(usage, round_, jobs=1))
    statuses, tables, _ = theirs
    if state == "deleted" and statuses == [0, 0]:
        summary = summarize(checked)
        appended = summary.weak.csv() if summary.weak and summary.weak.rows else ""
        assert (summary.plain.csv() + appended).encode() == tables[1]["summary.csv"]
    passed = Verdicts(Verdict.PASS, Verdict.PASS)
    published = {f.set for f in checked.report.findings if f.code == OTHER_SCORE}
    compared = [
        row
        for row in checked.report.result_sets
        if row.verdict == passed and row.scaling != "weak" and row.id not in published
    ]
    assert [row.official_minutes for row in compared] == [
        pytest.approx(row.score_minutes) for row in compared
    ]
