"""``mlperf-pkg system merge``."""

from __future__ import annotations

import click

from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.system_values import described, write_description
from mlperf_pkg.commands.system import UserValues
from mlperf_pkg.commands.system.merge import merge, read_nodes
from mlperf_pkg.infra.text import visible
from mlperf_pkg.results.wording import counted


@click.command(name="merge")
@click.argument("paths", nargs=-1, required=True, metavar="NODE...", type=click.Path())
@described
def command(*, paths: tuple[str, ...], user_values: UserValues, target: Output) -> int:
    """Write the description of a system from those of its nodes.

    NODE is a description that 'system init' wrote on a node, or a folder of such *.json
    files. The number of nodes is the number of files. Standard error lists the fields in
    which nodes differ; if several values are possible, the field begins with "FILL IN",
    which 'system check' rejects.

    Exit status: 0 if the nodes are alike, 1 if they differ, 2 if the description could
    not be written.

    \b
    Examples:
      mlperf-pkg system merge nodes/ -o systems/acme-pod4.json
      mlperf-pkg system merge nodes/*.json --submitter ACME --division closed \\
          --status onprem --name "ACME Pod 4" --nodes 4 -o systems/acme-pod4.json
    """
    target.refuse_early(paths)
    nodes = read_nodes(paths)
    merged = merge(nodes, user_values)
    write_description(target, merged.fields)
    if merged.differences:
        number = counted(len(merged.differences), "field")
        click.echo(f"{counted(len(nodes), 'node')}, which differ in {number}:", err=True)
    for difference in merged.differences:
        click.echo(f"  {visible(difference)}", err=True)
    return int(bool(merged.differences))
