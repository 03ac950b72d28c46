"""``mlperf-pkg verify-round``, beside the official checkers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.broken_runs import SET, every_log, fast
from tests.helpers.package_checker import official_verdict
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, remove, write_submission

CASES: dict[str, Callable[[Path], object]] = {
    "valid": lambda root: None,
    "too fast": lambda root: every_log(fast, root),
    "too fast, bypassed": lambda root: (
        every_log(fast, root) / "package_checker_params"
    ).write_text("rcp-bypass"),
    "a missing log": lambda root: remove(root / SET / "result_0.txt"),
    "a name with a space": lambda root: (root / "a b").touch(),
    "a missing description": lambda root: remove(root / "systems" / f"{SYSTEM}.json"),
}


@pytest.mark.parametrize("name", CASES)
def test_as_the_official_checkers(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = write_submission(tmp_path / "ACME")
    CASES[name](root)
    result = call("verify-round", root, "--round", "2.0.0")
    verdict, _ = official_verdict(root, tmp_path, caplog)
    assert result.exit_code == int(verdict == "fail")
    assert (": REPO" in result.stdout) is (name == "a name with a space")


def test_a_round(tmp_path: Path) -> None:
    write_submission(tmp_path / "round" / "Good")
    CASES["too fast"](write_submission(tmp_path / "round" / "Bad", seed=8))
    result = call("verify-round", tmp_path / "round", "--round", "2.0")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["Bad", "FAIL", "pass", "1", "of", "1"],
        ["Good", "pass", "pass", "1", "of", "1"],
    ]
    assert lines[-1] == "1 of 2 submissions pass both official checkers"
    assert any(line.startswith("Bad/results/") and "RCP101" in line for line in lines)
    assert "CODE100" not in result.stdout  # by the written rules alone
    bypassed = call("verify-round", tmp_path / "round", "--round", "2.0", "--rcp-bypass")
    assert bypassed.exit_code == 0


def test_no_submission(tmp_path: Path) -> None:
    write_submission(tmp_path / "ACME")
    result = call("verify-round", tmp_path / "ACME" / SET)
    assert result.exit_code == 2
    assert "no submission" in result.stderr


def test_many_errors_are_cut(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "ACME")
    for number in range(30):
        (root / f"a b{number}").mkdir()
        (root / f"a b{number}" / "x").touch()
    result = call("verify-round", root, "--round", "2.0")
    assert len(result.stdout.splitlines()) < 30
