"""The command line as a process with limits of time and memory, for hostile input."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from msgspec import Struct

_CAPABILITIES = "-dac_override,-dac_read_search"  # by which root may read everything
_SECONDS = 60
_SERVER = f"from tests.helpers.limited_server import serve; serve({_SECONDS})"


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
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        request = [[*map(str, arguments)], str(out), str(err), parallel]
        status, kibibytes = _answer(json.dumps(request))
        return Outcome(status, out.read_bytes(), err.read_bytes(), kibibytes / 1024)


def _answer(request: str) -> tuple[int, int]:
    server = _server()
    assert server.stdin
    assert server.stdout
    print(request, file=server.stdin, flush=True)
    status, kibibytes = json.loads(server.stdout.readline())
    return status, kibibytes


@cache
def _server() -> subprocess.Popen[str]:
    """The process that runs commands, until this one ends."""
    command = [*_unprivileged(), sys.executable, "-c", _SERVER]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    server = subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)
    return server


def can_refuse() -> bool:
    """Whether a file without any rights is refused to ``run``."""
    return os.geteuid() != 0 or shutil.which("setpriv") is not None


def _unprivileged() -> list[str]:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return []
    return ["setpriv", f"--bounding-set={_CAPABILITIES}", f"--inh-caps={_CAPABILITIES}"]
