"""``mlperf-pkg system init``."""

from __future__ import annotations

import click

from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.system_values import described, write_description
from mlperf_pkg.commands.system import UserValues, describe, this_machine


@click.command(name="init")
@described
def command(*, user_values: UserValues, target: Output) -> int:
    """Write a system description of this machine.

    Run the command on a node of the system, in the environment used for training:
    versions are those of the Python distributions installed there. Required fields
    that could not be detected begin with "FILL IN", which 'system check' rejects.
    The host's name is not read. If nodes may differ, run it on each of them and merge
    the descriptions with 'system merge'.

    Exit status: 0 if the description was written, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg system init
      mlperf-pkg system init --submitter ACME --division closed --status onprem \\
          --name "ACME X8" --nodes 4 -o systems/acme-x8.json
      srun --ntasks-per-node=1 \\
          sh -c 'mlperf-pkg system init -o nodes/node$SLURM_NODEID.json'
    """
    target.refuse_early(())
    write_description(target, describe(this_machine(), user_values))
    return 0
