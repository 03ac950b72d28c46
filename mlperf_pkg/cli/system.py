"""``mlperf-pkg system``: commands about system descriptions."""

from __future__ import annotations

import click

from mlperf_pkg.cli.group import LazyGroup

COMMANDS = {"check": "mlperf_pkg.cli.system_check"}


@click.group(name="system", cls=LazyGroup, modules=COMMANDS)
def command() -> None:
    """Work on system descriptions.

    \b
    Example:
      mlperf-pkg system check systems/*.json
    """
