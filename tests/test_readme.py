"""The commands of the README do what it says, in the order in which it has them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path

from tests.helpers.console import prints
from tests.helpers.rulesets import EVERY_ROUND, WITH_RULESET
from tests.helpers.wheels import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
TOOL = [line for line in COMMANDS if line.startswith("mlperf-pkg ")]


def test_make_targets_exist() -> None:
    targets = [line.split()[1] for line in COMMANDS if line.startswith("make ")]
    assert targets == ["demo", "test", "lint", "parity"]
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_commands_run_as_written(tool: Path, tmp_path: Path) -> None:
    """In an empty folder, by a stranger who has nothing but the wheel."""
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    for line in TOOL:
        done = run(*shlex.split(line), cwd=tmp_path, PATH=path)
        # A round that mlperf-logging does not have yet is a difference.
        status = int("rules verify" in line and WITH_RULESET != EVERY_ROUND)
        assert done.returncode == status, f"{line}\n{done.stdout}\n{done.stderr}"
        if line == "mlperf-pkg check logs/":
            (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
            assert prints(done.stdout.replace(version("mlperf-logging"), "4.1.68"), shown)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"logs", "systems", "submissions", "mlperf-pkg.yaml", "report.html"}


def test_links() -> None:
    links = re.findall(r"\]\((docs/[^)]*)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
