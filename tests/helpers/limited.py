"""The command line as a process with limits of time and memory, for hostile input."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from tests.helpers.program import COMMAND

_CAPABILITIES = "-dac_override,-dac_read_search"  # by which root may read everything
_PARALLEL = "from mlperf_pkg.checker import reading; reading.PARALLEL_FROM_BYTES = 0; "
SECONDS = 60
_MEASURED = [
    sys.executable,
    "-I",
    "-S",
    str(Path(__file__).with_name("measured_child.py")),
    str(SECONDS),
]


class Outcome(Struct):
    """The status and output of a command, and the peak memory of its processes."""

    status: int
    stdout: bytes
    stderr: bytes
    megabytes: float

    @property
    def text(self) -> str:
        return (self.stdout + self.stderr).decode("utf-8", "replace")


def run(*arguments: str | Path, parallel: bool = False) -> Outcome:
    """Run a command, for at most a minute, as a user with ordinary rights.

    It uses several processes where it can if ``parallel``, however small the input is.
    """
    command = [*COMMAND[:-1], f"{_PARALLEL if parallel else ''}{COMMAND[-1]}"]
    with tempfile.TemporaryDirectory() as folder:
        out, err, measured = (Path(folder, name) for name in ("out", "err", "measured"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            subprocess.run(
                [*_MEASURED, measured, *_unprivileged(), *command, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                check=True,
            )
        status, kibibytes = map(int, measured.read_text().split())
        return Outcome(status, out.read_bytes(), err.read_bytes(), kibibytes / 1024)


def can_refuse() -> bool:
    """Whether a file without any rights is refused to ``run``."""
    return os.geteuid() != 0 or shutil.which("setpriv") is not None


def _unprivileged() -> list[str]:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return []
    return ["setpriv", f"--bounding-set={_CAPABILITIES}", f"--inh-caps={_CAPABILITIES}"]
