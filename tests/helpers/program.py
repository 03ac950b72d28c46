"""The command line, called in this process or as one of its own."""

import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from mlperf_pkg.cli.main import cli

COMMAND = [sys.executable, "-c", "from mlperf_pkg.cli.main import main; main()"]


def command_paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the names that lead to a command, and to each of its subcommands."""
    yield path
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        subcommands = {name: command.get_command(ctx, name) for name in command.list_commands(ctx)}
        assert None not in subcommands.values()
        for name, subcommand in subcommands.items():
            if subcommand:
                yield from command_paths(subcommand, (*path, name))


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
