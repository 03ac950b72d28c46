"""Where scripts of completion go, and that shells load them from there."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mlperf_pkg.commands.desk.completion_files import SHELLS, place, shell_of
from mlperf_pkg.errors import UserError
from tests.helpers.ci_kit import needs
from tests.helpers.program import call


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, with a name that shells must not split, and the program on the PATH."""
    folder = tmp_path / "my $HOME"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "mlperf-pkg"
    code = "from mlperf_pkg.cli.main import main; main()"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{code}' \"$@\"\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "BASH_COMPLETION_USER_DIR", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize(
    ("shell", "variables", "script", "configuration"),
    [
        ("bash", {}, ".local/share/bash-completion/completions/mlperf-pkg", ".bashrc"),
        ("bash", {"BASH_COMPLETION_USER_DIR": "/b"}, "/b/completions/mlperf-pkg", ".bashrc"),
        ("bash", {"XDG_DATA_HOME": "/d"}, "/d/bash-completion/completions/mlperf-pkg", ".bashrc"),
        ("bash", {"XDG_DATA_HOME": "relative"}, ".local/share/bash-completion/completions/mlperf-pkg", ".bashrc"),
        ("zsh", {}, ".local/share/zsh/site-functions/_mlperf-pkg", ".zshrc"),
        ("zsh", {"ZDOTDIR": "/z"}, ".local/share/zsh/site-functions/_mlperf-pkg", "/z/.zshrc"),
        ("fish", {}, ".config/fish/completions/mlperf-pkg.fish", ""),
        ("fish", {"XDG_CONFIG_HOME": "/c"}, "/c/fish/completions/mlperf-pkg.fish", ""),
        ("powershell", {}, ".config/powershell/completions/mlperf-pkg.ps1", ".config/powershell/profile.ps1"),
    ],
)  # fmt: skip
def test_places(shell: str, variables: dict[str, str], script: str, configuration: str) -> None:
    where = place(shell, Path("/home/me"), variables)
    assert where.script == Path("/home/me", script)
    if configuration:
        assert where.configuration == Path("/home/me", configuration)
    else:
        assert where.is_configured


@pytest.mark.parametrize(
    ("shell", "name"), [("/bin/bash", "bash"), ("/opt/fish", "fish"), ("zsh", "zsh")]
)
def test_the_shell_of_the_user(shell: str, name: str) -> None:
    assert shell_of({"SHELL": shell}) == name


@pytest.mark.parametrize(
    ("variables", "name"), [({"SHELL": "/bin/tcsh"}, "tcsh"), ({"SHELL": ""}, "no SHELL"), ({}, "no SHELL")]
)  # fmt: skip
def test_an_unknown_shell(variables: dict[str, str], name: str) -> None:
    with pytest.raises(UserError, match=rf"unknown \({name}\): give bash, zsh, fish or powershell"):
        shell_of(variables)


# ---- as a user ----------------------------------------------------------------------------


def files(home: Path) -> set[Path]:
    return {path for path in home.rglob("*") if path.is_file() and path.parent.name != "bin"}


@pytest.mark.parametrize("shell", SHELLS)
def test_only_the_script_is_written(home: Path, shell: str) -> None:
    """Without a terminal and ``--yes``; twice, as after an update."""
    where = place(shell, home, {})
    for _ in range(2):
        done = call("completion", "install", shell)
        assert done.exit_code == 0
        assert f"wrote {where.script}\n" in done.output
        assert ("needs the line" in done.output) != where.is_configured
        assert ("new shells complete mlperf-pkg" in done.output) == where.is_configured
    assert files(home) == {where.script}
    assert where.script.read_text("utf-8") == call("completion", "show", shell).output


@pytest.mark.parametrize("before", ["", "alias l=ls\n", "alias l=ls"])
def test_the_configuration_is_appended_to_once(home: Path, before: str) -> None:
    configuration = home / ".zshrc"
    configuration.write_text(before)
    for _ in range(2):
        done = call("completion", "install", "zsh", "--yes")
        assert done.output.endswith("new shells complete mlperf-pkg\n")
    first, *lines = configuration.read_text().splitlines() if before else ("", *configuration.read_text().splitlines())  # fmt: skip
    assert first == before.strip()
    assert lines == ["# Completion of mlperf-pkg", place("zsh", home, {}).line]


def test_a_file_of_another_is_kept(home: Path) -> None:
    script = place("fish", home, {}).script
    script.parent.mkdir(parents=True)
    script.write_text("complete something else\n")
    done = call("completion", "install", "fish")
    assert done.exit_code == 2
    assert "not written by mlperf-pkg, and is not overwritten" in done.stderr
    assert script.read_text() == "complete something else\n"


@pytest.mark.parametrize("arguments", [("install",), ("show",)])
def test_without_a_known_shell(
    home: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = call("completion", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "tcsh" in done.stderr


def test_a_home_that_cannot_be_written(home: Path) -> None:
    (home / ".config").write_text("a file")
    done = call("completion", "install", "fish")
    assert done.exit_code == 2
    assert "cannot be written into" in done.stderr


# ---- as the shells themselves -------------------------------------------------------------

# What each shell runs with the script installed; it prints what completes "mlperf-pkg sco".
LINES = {
    "bash": (
        "source '{script}'; compopt() { :; };"
        " COMP_WORDS=(mlperf-pkg sco) COMP_CWORD=1; _mlperf_pkg_completion mlperf-pkg;"
        ' echo "${COMPREPLY[@]}"'
    ),
    "zsh": "source ~/.zshrc; print -r -- ${_comps[mlperf-pkg]/_mlperf-pkg/score}",
    "fish": "complete -C 'mlperf-pkg sco'",
    "powershell": (
        ". ~/.config/powershell/profile.ps1;"
        " (TabExpansion2 'mlperf-pkg sco' 14).CompletionMatches.CompletionText"
    ),
}
PROGRAMS = {"powershell": "pwsh"}


@pytest.mark.parametrize(
    "shell",
    [pytest.param(shell, marks=needs(PROGRAMS.get(shell, shell))) for shell in SHELLS],
)
def test_the_shell_completes(home: Path, shell: str) -> None:
    assert call("completion", "install", shell, "--yes").exit_code == 0
    program = shutil.which(PROGRAMS.get(shell, shell))
    assert program
    line = LINES[shell].replace("{script}", str(place(shell, home, {}).script))
    done = subprocess.run(
        [program, "-c", line], capture_output=True, text=True, check=False, cwd=home
    )
    assert done.stdout.split() == ["score"], done.stderr
