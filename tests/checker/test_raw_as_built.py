"""Raw logs and the tree that is built from them have the same errors."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from tests.checks.traps import ALL
from tests.helpers.program import call
from tests.helpers.traps import Trap, submission

NAMES = {
    "a copy at another time",
    "runs of another benchmark",
    "a field missing in round 0.7",
    "numbers in round 0.7",
    "405b one evaluation early",
    "another platform",
    "a run without power",
    "power of two nodes without a switch",
}


def errors(path: Path, round_name: str) -> Counter[tuple[str, str]]:
    report = check([str(path)], Options(round=round_name, jobs=1)).report
    return Counter((f.code, f.basis.value) for f in report.findings if f.is_error)


@pytest.mark.parametrize(
    "trap", [trap for trap in ALL if trap.name in NAMES], ids=lambda trap: f"{trap.name}"
)
def test_errors_of_raw_logs_are_those_of_the_tree(trap: Trap, tmp_path: Path) -> None:
    root = submission(tmp_path / trap.submitter, trap)
    trap.change(root)
    workspace = tmp_path / "workspace"
    shutil.copytree(root / "systems", workspace / "systems")
    shutil.copytree(root / "results", workspace / "logs")
    result = call("build", workspace, "--round", trap.round, "--invalid", "keep")
    assert result.exit_code == 0
    [tree] = (workspace / "submissions").iterdir()
    assert errors(workspace / "logs", trap.round) == errors(tree, trap.round)
