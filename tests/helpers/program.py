"""The command line, called in this process or as one of its own."""

import io
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from mlperf_pkg.cli.main import cli

COMMAND = [sys.executable, "-c", "from mlperf_pkg.cli.main import main; main()"]


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def call(*arguments: str | Path) -> Result:
    """Call it here; its exit status and output are in the result."""
    logger = logging.getLogger("mlperf_pkg")
    level = logger.level
    try:
        return CliRunner().invoke(
            cli, [str(argument) for argument in arguments], prog_name="mlperf-pkg"
        )
    finally:
        logger.setLevel(level)  # which --debug changes


def start(*arguments: str | Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start it as a process without a terminal."""
    pipes: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    env = {**os.environ, **environment}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], env=env, **pipes)
