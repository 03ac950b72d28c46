"""``mlperf-pkg system``: commands about system descriptions."""

import json
from pathlib import Path
from typing import Any

import click

from mlperf_pkg.checks.descriptions import FILL_IN
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import PATH, CommandGroup, reads
from mlperf_pkg.cli.output import Output, Outputs
from mlperf_pkg.commands.system import description, machine
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import FORMATS
from mlperf_pkg.results.wording import counted

_FOLDER = "systems"
_ROUND = (
    "Apply the rules of this round, such as 2.0 (default: the round in mlperf-pkg.yaml, else the"
    " newest round that mlperf-pkg knows)."
)


@click.group(name="system", cls=CommandGroup)
def command() -> None:
    """Write and check system descriptions.

    Exit status: that of the command.

    \b
    Examples:
      mlperf-pkg system init --submitter ACME -o systems/dgx-a100.json
      mlperf-pkg system init nodes/ -o systems/acme-pod4.json
      mlperf-pkg system check systems/
    """


@command.command(name="init")
@click.argument("nodes", nargs=-1, metavar="[NODE]...", type=PATH)
@options.round_option(_ROUND)
@click.option("--submitter", metavar="ORG", help="Set the submitting organisation.")
@options.division_option("Set the division.")
@click.option("--status", metavar="TEXT", help="Set the availability, such as onprem or cloud.")
@click.option("--name", metavar="TEXT", help="Set the system's name in the results table.")
@options.count_option("--nodes", "number", text="Set the number of nodes.")
@options.output_option("Write to FILE (default: standard output).", metavar="FILE")
@options.force_option()
@reads("usage")
def init(
    *,
    nodes: tuple[str, ...],
    round_: str | None,
    usage: str | None,
    number: int | None,
    output: Path | None,
    force: bool,
    **values: str | None,
) -> int:
    """Write the system description of this machine or of several nodes.

    Run the command on a node of the system, in the environment used for training, as
    the versions of frameworks and libraries are those of the Python packages installed
    there. Required fields that could not be detected begin with "FILL IN", which
    'system check' rejects. The name of the host is not read. If FILE is in a folder
    systems/ that does not exist, the folder is created.

    If nodes may differ, run the command on each node. Then run the
    command once more, and give as NODE the description of each node, or a folder that
    contains the descriptions. The fields in which nodes differ are listed on standard
    error; if several values are possible, the field begins with "FILL IN".

    Exit status: 0 if the description was written and the nodes are alike, 1 if they
    differ, 2 if the description could not be written.

    \b
    Examples:
      mlperf-pkg system init
      mlperf-pkg system init --submitter ACME --division closed --status onprem \\
          --name "ACME X8" --nodes 4 -o systems/acme-x8.json
      mkdir -p nodes
      srun --ntasks-per-node=1 \\
          sh -c 'mlperf-pkg system init -o nodes/node$SLURM_NODEID.json'
      mlperf-pkg system init nodes/ -o systems/acme-pod4.json
    """
    chosen = description.round_of_systems(options.workspace_options(round_, usage))
    user_values = description.UserValues(chosen.name, nodes=number, usage=chosen.usage, **values)
    if output and output.parent.name == _FOLDER and output.parent.parent.is_dir():
        output.parent.mkdir(exist_ok=True)
    target = Output(output, force)
    target.refuse_early(nodes)
    if not nodes:
        _write(target, description.describe(machine.this_machine(), user_values))
        return 0
    descriptions = description.read_nodes(nodes)
    merged, differences = description.merge(descriptions, user_values)
    _write(target, merged)
    if not differences:
        return 0
    count = counted(len(descriptions), "node")
    fields = counted(len(differences), "field")
    click.echo(f"{count}, which differ in {fields}:", err=True)
    for difference in differences:
        click.echo(f"  {visible(difference)}", err=True)
    return 1


def _write(target: Output, fields: dict[str, Any]) -> None:
    """Write a description, and list the fields to fill in on standard error."""
    target.write(f"{json.dumps(fields, indent=2)}\n")
    missing = [field for field, value in fields.items() if FILL_IN in str(value)]
    if missing:
        click.echo(f"fields to fill in: {visible(', '.join(missing))}", err=True)


@command.command(name="check")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=PATH)
@options.round_option(_ROUND)
@reads("usage")
@options.shown
@options.failing
@options.written(FORMATS, many=True)
def check(
    *,
    paths: tuple[str, ...],
    round_: str | None,
    usage: str | None,
    showing: options.Showing,
    status: options.Status,
    target: Outputs,
) -> int:
    """Check system descriptions, systems/<system_desc_id>.json.

    PATH is a description, or a folder in which every *.json is checked (default:
    systems/). Without --round, the round is read from mlperf-pkg.yaml, else from the
    logs in logs/ beside the folder; else it is the newest round.

    Exit status: 0 if there is no error, 1 if there is one, 2 if a file could not be
    read.

    \b
    Examples:
      mlperf-pkg system check
      mlperf-pkg system check systems/dgx-a100.json --round 2.0
      mlperf-pkg system check systems/ --usage hpc --round 3.0
      mlperf-pkg system check --format concise
    """
    if not paths and not Path(_FOLDER).is_dir():
        raise click.UsageError(f"no PATH given, and there is no folder {_FOLDER}/ here")
    paths = paths or (_FOLDER,)
    target.refuse_early(paths)
    chosen = description.round_of_systems(options.workspace_options(round_, usage), paths)
    report = description.check_descriptions(paths, chosen)
    target.show(report, (), showing)  # paths are relative to the current folder
    return status(report)
