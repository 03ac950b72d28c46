"""The command line as a process with limits of time and memory, for hostile input."""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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
    return run_all([arguments], parallel=parallel)[0]


def run_all(commands: Sequence[Sequence[str | Path]], *, parallel: bool = False) -> list[Outcome]:
    """Run commands as ``run``, one after another in one process; its peak memory is that of
    each.

    They check a tree once for each set of options. If the process is ended before the last one, all
    others have the status of its end.
    """
    with tempfile.TemporaryDirectory() as folder:
        texts = [[*map(str, arguments)] for arguments in commands]
        server = _server()
        assert server.stdin
        assert server.stdout
        print(json.dumps([texts, folder, parallel]), file=server.stdin, flush=True)
        status, kibibytes = json.loads(server.stdout.readline())
        outcomes = []
        for number in range(len(commands)):
            files = [Path(folder, f"{number}.{kind}") for kind in ("status", "out", "err")]
            own, out, err = (file.read_bytes() if file.exists() else b"" for file in files)
            outcomes.append(Outcome(int(own or status), out, err, kibibytes / 1024))
        return outcomes


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
