"""``mlperf-pkg completion``."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import get_completion_class

from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.types import Choice
from mlperf_pkg.errors import UserError


@click.command(name="completion", cls=Command)
@click.argument("shell", type=Choice(("bash", "zsh", "fish", "powershell")))
@click.pass_context
def command(ctx: click.Context, *, shell: str) -> int:
    """Complete commands, options and values with the tab key.

    The script that does so is printed for SHELL: bash (4.4 or newer), zsh, fish or
    powershell. Write it to where the shell looks for such scripts, which
    docs/completion.md lists, again after an update of mlperf-pkg.

    Exit status: 0 if the script was printed, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg completion fish > ~/.config/fish/completions/mlperf-pkg.fish
      eval "$(mlperf-pkg completion bash)"
    """
    script: Any = get_completion_class(shell)
    if script is None:
        raise UserError(f"completion in {shell} needs a newer click: pip install -U click")
    root = ctx.find_root().command
    click.echo(script(root, {}, "mlperf-pkg", "_MLPERF_PKG_COMPLETE").source(), nl=False)
    return 0
