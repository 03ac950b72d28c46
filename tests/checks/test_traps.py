"""What the official checkers pass though it is wrong, and the errors that they invent.

Each row breaks a good submission in one way. Both official checkers judge a copy of it, live: their
verdict is our official one, and our findings are all that the row names.
"""

from pathlib import Path

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.results.report import Report
from tests.checks.traps import ALL, PASSED, foreign
from tests.helpers.broken_runs import SET
from tests.helpers.logs import line_of
from tests.helpers.official import official_verdict
from tests.helpers.places import unfolded
from tests.helpers.stored import compared
from tests.helpers.traps import Trap, submission
from tests.helpers.trees import SYSTEM
from tests.parity.incumbent import quickened


def written(root: Path, report: Report) -> list[str]:
    """Its findings as the table has them."""
    return sorted(
        f"{f.code} {f.severity} {f.basis} {f.path}{_at(f.line)}" for f in unfolded(report.findings)
    )


def _at(line: int | None) -> str:
    return "" if line is None else f":{line}"


def numbered(root: Path, finding: str) -> str:
    """With the line of the record that a finding of the table names."""
    head, at, key = finding.partition("@")
    path = root / head.rpartition(" ")[2]
    return f"{head}:{line_of(path.read_bytes(), key, -1)}" if at else finding


@pytest.mark.parametrize(
    "trap", ALL, ids=lambda trap: f"{trap.name} {trap.benchmark} {trap.division} {trap.round}"
)
def test_traps(trap: Trap, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = submission(tmp_path / trap.submitter, trap)
    trap.change(root)
    report = compared(check([str(root)], Options(round=trap.round, jobs=1))).report
    assert not (tmp_path / "executed").exists()
    official, text = official_verdict(root, tmp_path, caplog, ruleset=f"{trap.round}.0")
    assert trap.log in text
    assert (tmp_path / "executed").exists() is (trap.change is foreign)
    assert official == trap.official
    assert report.verdict.official.value == ("not_checked" if trap.skipped else official)
    assert report.verdict.rules.value == trap.rules
    assert written(root, report) == sorted(numbered(root, finding) for finding in trap.findings)


@pytest.mark.parametrize(
    "name", ["a second run_start", "run_stop before run_start", "an aborted run"]
)
def test_official_scores_are_too_good(name: str, tmp_path: Path) -> None:
    """The summarizer counts these runs like any other."""
    (trap,) = (row for row in PASSED if row.name == name)
    root = submission(tmp_path / "Graphcore", trap)
    trap.change(root)
    (row,) = compared(check([str(root)], Options(round="2.0", jobs=1))).report.result_sets
    with quickened():
        scored, *_ = result_summarizer._compute_strong_score_standalone(
            "resnet", SYSTEM, False, str(root / SET), "training", "2.0.0"
        )
    assert row.official_minutes == pytest.approx(scored)
    assert row.score_minutes is not None
    assert scored < row.score_minutes
