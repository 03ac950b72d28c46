"""``mlperf-pkg check --fail-on official``, beside the official checkers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.broken_runs import SET, every_log, fast
from tests.helpers.official import official_verdict
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, remove, write_submission

OPTIONS = ("--round", "2.0.0", "--fail-on", "official")


def break_a_log(root: Path) -> None:
    """Break a log, which the official checker accepts of one."""
    log = root / SET / "result_0.txt"
    log.write_bytes(log.read_bytes().replace(b'"opt_name"', b'"x"'))


CASES: dict[str, Callable[[Path], object]] = {
    "valid": lambda root: None,
    "too fast": lambda root: every_log(fast, root),
    "too fast, bypassed": lambda root: (
        every_log(fast, root) / "package_checker_params"
    ).write_text("rcp-bypass"),
    "a broken log": break_a_log,
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
    verdict, _ = official_verdict(root, tmp_path, caplog)
    assert call("check", root, *OPTIONS).exit_code == int(verdict == "fail")


def test_the_rules_do_not_count(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "ACME")
    break_a_log(root)
    assert call("check", root, *OPTIONS[:2]).exit_code == 1
    assert call("check", root, *OPTIONS).exit_code == 0


def test_a_round(tmp_path: Path) -> None:
    write_submission(tmp_path / "round" / "Good")
    every_log(fast, write_submission(tmp_path / "round" / "Bad", seed=8))
    result = call("check", tmp_path / "round", *OPTIONS)
    assert result.exit_code == 1
    (line,) = (line for line in result.stdout.splitlines() if "RCP101" in line)
    assert line.strip().startswith("Bad/")
    assert call("check", tmp_path / "round", *OPTIONS, "--rcp-bypass").exit_code == 0
