"""The commands of the README do what it says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.rulesets import EVERY_ROUND, WITH_RULESET
from tests.helpers.trees import SYSTEM, write_system

ROOT = Path(__file__).parents[1]
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    for line in block.splitlines()
]
TOOL = [line for line in COMMANDS if line.startswith("mlperf-pkg ")]


def test_make_targets_exist() -> None:
    targets = [line.split()[1] for line in COMMANDS if line.startswith("make ")]
    assert targets == ["demo", "test", "lint", "parity"]
    for target in targets:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_commands_run_as_written(tmp_path: Path) -> None:
    """Simulated logs first, as the others need some."""
    write_system(tmp_path / "systems", SYSTEM, submitter="Example")
    simulate = [line for line in TOOL if " simulate " in line]
    for line in [*simulate, *(line for line in TOOL if line not in simulate)]:
        command = [sys.executable, "-m", "mlperf_pkg", *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        # A round that mlperf-logging does not have yet is a difference.
        status = int("rules verify" in line and WITH_RULESET != EVERY_ROUND)
        assert done.returncode == status, f"{line}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "submissions").is_dir()


@pytest.mark.parametrize("link", re.findall(r"\]\((docs/[^)]*)\)", (ROOT / "README.md").read_text("utf-8")))  # fmt: skip
def test_links(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_tool_is_on_the_path() -> None:
    assert shutil.which("mlperf-pkg", path=str(Path(sys.executable).parent))
