"""``mlperf-pkg completion``: the shells load its scripts from where the documentation says."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from mlperf_pkg.cli.main import cli
from tests.helpers.ci_kit import needs
from tests.helpers.console import DOCS
from tests.helpers.program import call

PAGE = (DOCS / "completion.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"^# (\w+).*\n((?:[^#`\n].*\n)+)", PAGE, re.MULTILINE))
PROGRAMS = {"powershell": "pwsh"}
# What prints the completions of "mlperf-pkg sco".
LINES = {
    "bash": (
        "COMP_WORDS=(mlperf-pkg sco) COMP_CWORD=1; compopt() { :; };"
        ' _mlperf_pkg_completion mlperf-pkg; echo "${COMPREPLY[@]}"'
    ),
    "zsh": "print -r -- ${_comps[mlperf-pkg]/_mlperf-pkg/score}",
    "fish": "complete -C 'mlperf-pkg sco'",
    "powershell": "(TabExpansion2 'mlperf-pkg sco' 14).CompletionMatches.CompletionText",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, with the program on the PATH."""
    program = tmp_path / "bin" / "mlperf-pkg"
    program.parent.mkdir()
    code = "from mlperf_pkg.cli.main import main; main()"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_the_page_has_every_shell() -> None:
    assert BLOCKS.keys() == LINES.keys()


@pytest.mark.parametrize("shell", LINES)
def test_the_script_is_that_of_click(shell: str) -> None:
    script = get_completion_class(shell)
    if script is None:
        pytest.skip("an older click")
    source = script(cli, {}, "mlperf-pkg", "_MLPERF_PKG_COMPLETE").source()
    assert call("completion", shell).stdout == source


def test_an_older_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlperf_pkg.cli.completion.get_completion_class", lambda shell: None)
    done = call("completion", "powershell")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "needs a newer click" in done.stderr


@pytest.mark.parametrize("shell", [pytest.param(s, marks=needs(PROGRAMS.get(s, s))) for s in LINES])
def test_the_shell_completes(home: Path, shell: str) -> None:
    """After the lines of the page, of which the second is in the configuration."""
    program = shutil.which(PROGRAMS.get(shell, shell))
    assert program
    once, *configuration = BLOCKS[shell].splitlines()
    made = subprocess.run([program, "-c", once], cwd=home, check=False, capture_output=True)
    assert made.returncode == 0, made.stderr
    script = "\n".join([*configuration, LINES[shell]])
    done = subprocess.run(
        [program, "-c", script], capture_output=True, text=True, check=False, cwd=home
    )
    assert done.stdout.split() == ["score"], done.stderr
