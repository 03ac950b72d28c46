"""``mlperf-pkg completion``."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from click.shell_completion import get_completion_class

from mlperf_pkg.cli.group import Group
from mlperf_pkg.cli.types import Choice
from mlperf_pkg.commands.desk.completion_files import (
    SHELLS,
    configure,
    home_folder,
    install,
    place,
    shell_of,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import visible

_shell = click.argument("shell", required=False, type=Choice(SHELLS))


@click.group(name="completion", cls=Group)
def command() -> None:
    """Complete commands, options and values with the tab key.

    SHELL is bash (4.4 or newer), zsh, fish or powershell; by default it is that of
    the variable SHELL.

    Exit status: 0 for success, 2 if nothing could be written.

    \b
    Examples:
      mlperf-pkg completion install
      mlperf-pkg completion show zsh
    """


@command.command(name="install")
@_shell
@click.option("--yes", is_flag=True, help="Also change the configuration of the shell if needed.")
def _install(*, shell: str | None, yes: bool) -> int:
    """Write the script into the folder where the shell looks for it.

    The script is all that is written for fish, and for bash with the package
    bash-completion. Others need a line in their configuration, such as ~/.zshrc: the
    command shows it and asks before it appends it. Without a terminal, and without
    --yes, no existing file is changed. Install again after an update of mlperf-pkg.

    Exit status: 0 if the script was written, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg completion install
      mlperf-pkg completion install fish
      mlperf-pkg completion install zsh --yes
    """
    shell = shell or shell_of(os.environ)
    where = place(shell, home_folder(), os.environ)
    install(where, _script(shell))
    click.echo(f"wrote {visible(str(where.script))}")
    if not where.is_configured:
        name, line = visible(str(where.configuration)), visible(where.line)
        click.echo(f"{name} needs the line:\n  {line}")
        if not yes and not (sys.stdin.isatty() and click.confirm(f"Append it to {name}?")):
            return 0
        configure(where)
        click.echo(f"appended to {name}")
    click.echo("new shells complete mlperf-pkg")
    return 0


@command.command(name="show")
@_shell
def _show(*, shell: str | None) -> int:
    """Write the script to standard output.

    Exit status: 0 if the script was written, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg completion show bash > /etc/bash_completion.d/mlperf-pkg
      mlperf-pkg completion show powershell
    """
    click.echo(_script(shell or shell_of(os.environ)), nl=False)
    return 0


def _script(shell: str) -> str:
    """Return the script that click has for a shell.

    Raises:
        UserError: it has none.
    """
    script: Any = get_completion_class(shell)
    if script is None:
        raise UserError(f"completion in {shell} needs a newer click: pip install -U click")
    root = click.get_current_context().find_root().command
    text: str = script(root, {}, "mlperf-pkg", "_MLPERF_PKG_COMPLETE").source()
    return text
