"""``mlperf-pkg system``: commands about system descriptions."""

from __future__ import annotations

import click

from mlperf_pkg.cli.group import LazyGroup

COMMANDS = {
    "init": "mlperf_pkg.cli.system_init",
    "merge": "mlperf_pkg.cli.system_merge",
    "check": "mlperf_pkg.cli.system_check",
}


@click.group(name="system", cls=LazyGroup, modules=COMMANDS)
def command() -> None:
    """Write and check system descriptions.

    Exit status: that of the command.

    \b
    Examples:
      mlperf-pkg system init --submitter ACME -o systems/dgx-a100.json
      mlperf-pkg system merge nodes/ -o systems/acme-pod4.json
      mlperf-pkg system check systems/
    """
