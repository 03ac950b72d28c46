"""The command line as a process with limits of time and memory, for hostile input."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

from msgspec import Struct

from tests.helpers.program import COMMAND

_CAPABILITIES = "-dac_override,-dac_read_search"  # by which root may read everything
_PARALLEL = "from mlperf_pkg.checker import reading; reading.PARALLEL_FROM_BYTES = 0; "
SECONDS = 60


class Outcome(Struct):
    """How a command ended: its status, output, and the most memory that a process of it had."""

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
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [*_unprivileged(), *command, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=_limit,  # noqa: PLW1509 - no threads here
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        return Outcome(child.returncode, _read(out), _read(err), usage.ru_maxrss / 1024)


def can_refuse() -> bool:
    """Whether a file without any rights is refused to ``run``."""
    return os.geteuid() != 0 or shutil.which("setpriv") is not None


def _unprivileged() -> list[str]:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return []
    return ["setpriv", f"--bounding-set={_CAPABILITIES}", f"--inh-caps={_CAPABILITIES}"]


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import signal  # noqa: PLC0415

    signal.alarm(2 * SECONDS)


def _read(stream: object) -> bytes:
    stream.seek(0)  # type: ignore[attr-defined]
    data: bytes = stream.read()  # type: ignore[attr-defined]
    return data
