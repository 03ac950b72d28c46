"""Shell completion."""

import os
import re
import shutil
import stat
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from mlperf_pkg.cli.main import SECTIONS, cli
from mlperf_pkg.render import FORMATS
from mlperf_pkg.rulebook.documents import rounds
from mlperf_pkg.rulebook.explain import rulebook_codes
from mlperf_pkg.rulebook.load import codes, load_round
from tests.helpers.ci import needs
from tests.helpers.console import DOCS
from tests.helpers.program import call


def items(line: str) -> list[CompletionItem]:
    """Return the completions of the last word of a line."""
    _, *words, last = line.split(" ")
    complete = ShellComplete(cli, {}, "mlperf-pkg", "_MLPERF_PKG_COMPLETE")
    return complete.get_completions(words, last)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mlperf-pkg ", [*chain(*SECTIONS.values())]),
        ("mlperf-pkg s", ["score", "select", "system", "simulate"]),
        ("mlperf-pkg check logs --sche", ["--scheduler"]),
        ("mlperf-pkg check --format ", list(FORMATS)),
        ("mlperf-pkg check --round ", [*rounds("training")[::-1], "3.0"]),
        ("mlperf-pkg check --usage hpc --round ", ["3.0", "2.0", "1.0"]),
        ("mlperf-pkg check --usage hpcc --round 5", ["5.1", "5.0"]),
        ("mlperf-pkg rules list --usage hpc --benchmark c", ["cosmoflow"]),
        (
            "mlperf-pkg rules list --usage training --round 2.0 --benchmark ",
            sorted(load_round("training", "2.0").benchmarks),
        ),
        (
            "mlperf-pkg rules show SET10",
            [code for code in sorted(codes()) if code.startswith("SET10")],
        ),
        (
            "mlperf-pkg rules show bert10",
            [code for code in sorted(rulebook_codes()) if code.startswith("BERT10")],
        ),
        ("mlperf-pkg rules show opt_nam", ["opt_name"]),
        (
            "mlperf-pkg check --select RC",
            ["RCP", *(code for code in sorted(codes()) if code.startswith("RCP"))],
        ),
        ("mlperf-pkg check --ignore REPO,SEED101", ["REPO,SEED101"]),
        ("mlperf-pkg simulate logs --system bow-pod1", ["bow-pod128", "bow-pod16"]),
        ("mlperf-pkg compare --published 5.1,0", ["5.1,0.7"]),
        ("mlperf-pkg compare --published a", ["all"]),
        ("mlperf-pkg review compare resubmitted 4.1 5.", ["5.1", "5.0"]),
        ("mlperf-pkg simulate logs --failure a", ["aborted"]),
        ("mlperf-pkg chekc logs ", [*chain(*SECTIONS.values())]),
        ("mlperf-pkg rules shwo ", ["list", "show", "diff"]),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert [item.value for item in items(line)] == list(dict.fromkeys(words))


@pytest.mark.parametrize(
    ("line", "kind"), [("check -o ", "file"), ("diff old ne", "file"), ("pack ", "dir")]
)
def test_paths(line: str, kind: str) -> None:
    """The shell completes these itself."""
    assert [item.type for item in items(f"mlperf-pkg {line}")] == [kind]


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


@pytest.mark.parametrize("shell", LINES)
def test_the_script_is_that_of_click(shell: str) -> None:
    script = get_completion_class(shell)
    if script is None:
        pytest.skip(f"a click without {shell}")
    source = script(cli, {}, "mlperf-pkg", "_MLPERF_PKG_COMPLETE").source()
    assert call("completion", shell).stdout == source


def test_an_older_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.shell_completion.get_completion_class", lambda shell: None)
    done = call("completion", "powershell")
    assert (done.exit_code, done.stdout, "a newer version of click" in done.stderr) == (2, "", True)


@pytest.mark.parametrize("shell", [pytest.param(s, marks=needs(PROGRAMS.get(s, s))) for s in LINES])
def test_the_shell_completes(home: Path, shell: str) -> None:
    """After the lines of the page, of which the second is in the configuration."""
    program = shutil.which(PROGRAMS.get(shell, shell))
    assert program
    once, *configuration = BLOCKS[shell].splitlines()
    subprocess.run([program, "-c", once], cwd=home, check=True)
    script = "\n".join([*configuration, LINES[shell]])
    completions = subprocess.check_output([program, "-c", script], text=True, cwd=home)
    assert completions.split() == ["score"]
