"""Pages that show a session at a terminal: their commands, and what each prints."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.helpers.program import call

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


def follow(page: str, folder: Path) -> None:
    """Do in a folder what a page of ``docs/`` says, and see what it says."""
    unlike = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        patch.setenv("LC_ALL", "C")
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        for command, expected in steps((DOCS / page).read_text("utf-8")):
            output = _output(command).replace(version("mlperf-logging"), _REFERENCE)
            if not prints(output, expected):
                unlike.append(f"$ {command}\n{output}\n--- not ---\n{expected}")
    assert not unlike, "\n".join(unlike)


def _output(command: str) -> str:
    """What a command prints; that of this project alone needs no process."""
    if re.fullmatch(r"mlperf-pkg [^|;]*", command):
        return call(*shlex.split(command.replace("\\\n", ""))[1:]).output
    done = subprocess.run(
        ["sh", "-c", command],
        text=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout
