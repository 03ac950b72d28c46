"""Pages that show a session at a terminal: their commands, and what each prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_REFERENCE = "4.1.68"  # the version that pages show
_STEP = re.compile(r"^\$ (.*(?:\n> .*)*)\n?((?:(?!\$ ).*\n?)*)", re.MULTILINE)


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Commands and what each prints, from the ``console`` blocks."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for command, output in _STEP.findall(block):
            yield command.replace("\n> ", "\n"), output


def prints(output: str, pattern: str) -> bool:
    """Whether it is the same, where ``...`` is any part of a line, or alone any lines."""
    lines = (
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in pattern.splitlines()
    )
    return re.fullmatch("".join(lines), output) is not None


def follow(page: str, folder: Path, **environment: str) -> None:
    """Do in a folder what a page of ``docs/`` says, and see what it says."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "COLUMNS": "80", "LC_ALL": "C", **environment}
    for command, expected in steps((DOCS / page).read_text("utf-8")):
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=env, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        output = done.stdout.replace(version("mlperf-logging"), _REFERENCE)
        assert prints(output, expected), f"$ {command}\n{output}\n--- not ---\n{expected}"
