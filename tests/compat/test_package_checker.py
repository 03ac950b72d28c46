"""Our package checker beside the official one, live: exit status and the lines that scripts read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.compat import package_checker
from tests.checks.test_traps import ALL, Trap, submission
from tests.compat.official import FINAL, outcomes, package_checker_run
from tests.helpers.broken_runs import SET, every_log, fast, same_seed, twice
from tests.helpers.trees import SYSTEM, write_submission

UNLIKE = {
    # The official checker takes "[" for a pattern, and ends without a final line on a Closed set.
    "[ in a system's name",
    "[ in a submitter's name",
    "[ in a name that matches another",
    "no division in round 0.7",  # it ends without a final line
    "a division that is a path",  # it runs the file; we report that a log is never run
}
"""Traps on which the exit status or a line differs."""


TRAPS = ALL if os.environ.get("MLPERF_PKG_FULL") else ALL[::4]


def both(
    root: Path, scratch: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[tuple[int, list[str]], tuple[int, list[str]]]:
    """The exit status and the lines of ours and of theirs, which gets a copy: it writes there."""
    copy = shutil.copytree(root, scratch / "copy" / root.name, symlinks=True)
    theirs = package_checker_run([str(copy), *arguments])
    capsys.readouterr()
    status = package_checker.main(
        [str(root), *arguments, "--log_output", str(scratch / "package_checker.log")]
    )
    lines = capsys.readouterr().err.replace(str(root), str(copy)).splitlines()
    return (status, lines), theirs


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_traps_as_theirs(trap: Trap, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if trap.name in UNLIKE:
        pytest.skip("a known difference")
    root = submission(tmp_path / trap.submitter, trap)
    trap.change(root)
    (status, lines), (their_status, their_lines) = both(
        root, tmp_path, capsys, "training", f"{trap.round}.0"
    )
    assert status == their_status
    if their_status == 0:
        assert outcomes(lines) == outcomes(their_lines)
    else:  # they end with a traceback
        assert any("FOUND ERRORS" in line for line in lines)


def test_the_known_differences_exist() -> None:
    assert {trap.name for trap in ALL} >= UNLIKE


# ---- options ------------------------------------------------------------------------------


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "valid": lambda text: text,
    "fast": fast,
    "same seed": same_seed,
    "twice": twice,
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--werror",),
        ("--quiet",),
        ("--rcp-bypass",),
        ("--seed-checker-bypass",),
        ("--rcp-bert",),
    ],
    ids=" ".join,
)
def test_options(
    name: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = every_log(BROKEN[name], write_submission(tmp_path / "ACME"))
    ours, theirs = both(root, tmp_path, capsys, "training", "2.0.0", *options)
    assert ours[0] == theirs[0] == 0
    assert outcomes(ours[1]) == outcomes(theirs[1])


def test_flags_at_the_top_are_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verify scripts turn them into options."""
    root = every_log(fast, write_submission(tmp_path / "ACME"))
    (root / "package_checker_params").write_text("rcp-bypass")
    ours, theirs = both(root, tmp_path, capsys, "training", "2.0.0")
    assert outcomes(ours[1]) == outcomes(theirs[1])
    assert any("FOUND ERRORS" in line for line in ours[1])


@pytest.mark.parametrize("where", [SET, f"results/{SYSTEM}"])
def test_flags_of_a_folder_are_read(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = every_log(fast, write_submission(tmp_path / "ACME"))
    (root / where / "package_checker_params").write_text("rcp-bypass")
    ours, theirs = both(root, tmp_path, capsys, "training", "2.0.0")
    assert outcomes(ours[1]) == outcomes(theirs[1])
    assert any("passed using rcp_bypass" in line for line in ours[1])


# ---- what differs on purpose --------------------------------------------------------------


@pytest.mark.parametrize("switch", ["option", "variable"])
def test_the_exit_status_on_request(
    switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good = write_submission(tmp_path / "Good")
    bad = every_log(fast, write_submission(tmp_path / "Bad"))
    if switch == "variable":
        monkeypatch.setenv("MLPERF_PKG_EXIT_STATUS", "1")
    options = ["--exit-status"] if switch == "option" else []
    assert package_checker.main([str(good), "training", "2.0.0", *options]) == 0
    assert package_checker.main([str(bad), "training", "2.0.0", *options]) == 1


def test_the_log_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines are added to it; it is never written beside logs."""
    monkeypatch.chdir(tmp_path)
    root = write_submission(tmp_path / "ACME")
    for _ in range(2):
        package_checker.main(["ACME", "training", "2.0.0"])
    text = (tmp_path / "package_checker.log").read_text("utf-8")
    assert text.count(FINAL) == 2
    assert "** Detailed log output is also at package_checker.log" in capsys.readouterr().out
    monkeypatch.chdir(root)
    assert package_checker.main([".", "training", "2.0.0"]) == 0
    assert (root / "package_checker.log").exists()
    assert "Detailed" in capsys.readouterr().out
    assert package_checker.main([".", "training", "2.0.0", "--log_output", f"{SET}/log"]) == 0
    assert not (root / SET / "log").exists()
    output = capsys.readouterr()
    assert f"{SET}/log: is inside the results, and is not written" in output.err
    assert "Detailed" not in output.out


@pytest.mark.parametrize("name", ["nowhere", "logs", "."])
def test_what_is_not_a_submission(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    assert package_checker.main([name, "training", "2.0.0"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("ERROR - ")
