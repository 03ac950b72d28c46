"""The commands of the README do what it says, in the order in which it has them."""

import os
import re
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path

from tests.helpers.console import prints
from tests.helpers.wheels import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
IN_ONE_PROCESS = """
import shlex, sys
from mlperf_pkg.cli.main import cli
def status(line):
    try:
        cli(shlex.split(line)[1:], prog_name="mlperf-pkg")
    except SystemExit as end:
        return end.code or 0
print([status(line) for line in sys.argv[1:]])
"""
TOOL = [line for line in COMMANDS if line.startswith("mlperf-pkg ")]


def test_make_targets_exist() -> None:
    targets = [line.split()[1] for line in COMMANDS if line.startswith("make ")]
    assert targets == ["demo", "test", "lint", "parity"]
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_commands_run_as_written(tool: Path, tmp_path: Path) -> None:
    """In an empty folder, by a stranger who has nothing but the wheel."""
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    simulate, check, *others = TOOL
    for line in (simulate, check):
        done = run(*shlex.split(line), cwd=tmp_path, PATH=path)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert check == "mlperf-pkg check logs/"
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert prints(done.stdout.replace(version("mlperf-logging"), "4.1.68"), shown)
    done = run(tool.parent / "python", "-c", IN_ONE_PROCESS, *others, cwd=tmp_path, PATH=path)
    assert done.stdout.splitlines()[-1] == str([0] * len(others)), f"{done.stdout}\n{done.stderr}"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"logs", "systems", "submissions", "mlperf-pkg.yaml", "report.html"}


def test_links() -> None:
    links = re.findall(r"\]\((docs/[^)]*)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
