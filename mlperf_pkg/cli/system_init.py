"""``mlperf-pkg system init``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mlperf_pkg.checks.system_schema import FILL_IN
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.system import UserValues, describe, this_machine
from mlperf_pkg.commands.system.check import round_of_systems
from mlperf_pkg.infra.text import visible


@click.command(name="init")
@options.round_option(options.SYSTEM_ROUND)
@click.option("--submitter", metavar="ORG", help="Set the submitting organisation.")
@options.division_option("Set the division.")
@click.option("--status", metavar="TEXT", help="Set the availability, such as onprem or cloud.")
@click.option("--name", metavar="TEXT", help="Set the system's name in the results table.")
@click.option(
    "--nodes", type=click.IntRange(min=1), metavar="N", help="Set the number of such nodes."
)
@options.output_option("Write to FILE (default: standard output).", metavar="FILE")
@options.force_option()
def command(
    *,
    round_: str | None,
    submitter: str | None,
    division: str | None,
    status: str | None,
    name: str | None,
    nodes: int | None,
    output: Path | None,
    force: bool,
) -> int:
    """Write a system description of this machine.

    Run the command on a node of the system, in the environment used for training:
    versions are those of the Python distributions installed there. Required fields
    that could not be detected begin with "FILL IN", which 'system check' rejects.
    The host's name is not read.

    Exit status: 0 if the description was written, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg system init
      mlperf-pkg system init --submitter ACME --division closed --status onprem \\
          --name "ACME X8" --nodes 4 -o systems/acme-x8.json
    """
    target = Output(output, force)
    target.refuse_early(())
    chosen = round_of_systems(options.workspace_options(round_))
    user_values = UserValues(chosen.name, submitter, division, status, name, nodes, chosen.usage)
    fields = describe(this_machine(), user_values)
    target.write(f"{json.dumps(fields, indent=2)}\n")
    missing = [field for field, value in fields.items() if str(value).startswith(FILL_IN)]
    if missing:
        click.echo(f"fields to fill in: {visible(', '.join(missing))}", err=True)
    return 0
