"""The commands of the README do what it says, in the order in which it has them."""

import os
import re
import shlex
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.helpers.console import prints
from tests.helpers.program import call
from tests.helpers.wheels import run
from tests.helpers.workspaces import bytes_below

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
IN_ONE_PROCESS = """
import shlex, subprocess, sys
from mlperf_pkg.cli.main import cli
def status(line):
    if line.startswith("echo "):
        return subprocess.call(line, shell=True)
    try:
        cli(shlex.split(line)[1:], prog_name="mlperf-pkg")
    except SystemExit as end:
        return end.code or 0
print([status(line) for line in sys.argv[1:]])
"""
TOOL = [line for line in COMMANDS if line.startswith(("mlperf-pkg ", "echo "))]


def test_make_targets_exist() -> None:
    targets = [line.split()[1] for line in COMMANDS if line.startswith("make ")]
    assert targets == ["demo", "test", "lint", "parity"]
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_commands_run_as_written(tool: Path, tmp_path: Path) -> None:
    """In an empty folder, by a stranger who has nothing but the wheel."""
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    simulate, check, *others = TOOL
    folder = entered(tmp_path)
    simulated = run(*shlex.split(simulate), cwd=folder, PATH=path)
    assert simulated.returncode == 0, f"{simulated.stdout}\n{simulated.stderr}"
    assert check == "mlperf-pkg check logs/"
    done = run(*shlex.split(check), cwd=folder, PATH=path)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert prints(done.stdout.replace(version("mlperf-logging"), "4.1.68"), shown)
    done = run(tool.parent / "python", "-c", IN_ONE_PROCESS, *others, cwd=folder, PATH=path)
    assert done.stdout.splitlines()[-1] == str([0] * len(others)), f"{done.stdout}\n{done.stderr}"
    names = {path.name for path in folder.iterdir()}
    built = {"submissions", "report.html"}
    assert names == {"logs", "systems", "code", "mlperf-pkg.yaml", *built}


def test_commands_run_in_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the samples of this repository, of another submitter with a system of the same id."""
    for name in ("systems", "submissions"):
        shutil.copytree(ROOT / name, tmp_path / name)
    samples = bytes_below(tmp_path)
    monkeypatch.chdir(entered(tmp_path))
    outputs = {line: output_of(line) for line in TOOL}
    assert "bow-pod16 (closed)" in outputs["mlperf-pkg check submissions/"]
    assert samples.items() <= bytes_below(tmp_path).items()


def output_of(line: str) -> str:
    """Run a command in the current folder; it must not fail."""
    if line.startswith("echo "):
        return subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout
    result = call(*shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    return result.stdout


def entered(folder: Path) -> Path:
    """Follow ``mkdir`` and ``cd`` of the README, and return where its other commands run."""
    for line in COMMANDS:
        command, *names = shlex.split(line)
        if command == "mkdir":
            (folder / names[0]).mkdir()
        elif command == "cd":
            folder = folder / names[0]
    return folder


def test_links() -> None:
    links = re.findall(r"\]\((docs/[^)]*)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
