"""``mlperf-pkg system init``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mlperf_pkg.checks.system_schema import FILL_IN
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.types import Choice
from mlperf_pkg.commands.system import Wanted, describe, this_machine
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.load import load_round, rounds
from mlperf_pkg.rulebook.model import DIVISIONS

_USAGE = "training"


@click.command(name="init")
@options.round_option("The round, such as 2.0; by default the newest of the rulebook.")
@click.option("--submitter", metavar="ORG", help="The submitting organisation.")
@click.option("--division", type=Choice(DIVISIONS), help="The division.")
@click.option("--status", metavar="TEXT", help="The availability, such as onprem or cloud.")
@click.option("--name", metavar="TEXT", help="The system's name in the results table.")
@click.option("--nodes", type=click.IntRange(min=1), metavar="N", help="How many such nodes.")
@options.output_options
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
    """Describe the machine that this runs on, as far as it can tell.

    Run it on a node of the system, in the environment that trains: versions are
    those of the Python distributions installed there. What the rules ask and
    the machine does not tell begins with "FILL IN", which 'system check'
    refuses. The host's name is not read.

    Exit status: 0 if it was written, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg system init
      mlperf-pkg system init --submitter ACME --division closed --status onprem \\
          --name "ACME X8" --nodes 4 -o systems/acme-x8.json
    """
    target = Output(output, force)
    target.refuse_early(())
    chosen = load_round(_USAGE, round_ or rounds(_USAGE)[-1]).name
    wanted = Wanted(chosen, submitter, division, status, name, nodes)
    fields = describe(this_machine(), wanted)
    target.write(f"{json.dumps(fields, indent=2)}\n")
    open_ = [field for field, value in fields.items() if str(value).startswith(FILL_IN)]
    if open_:
        click.echo(f"to fill in: {visible(', '.join(open_))}", err=True)
    return 0
