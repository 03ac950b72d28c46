"""``mlperf-pkg rcp diff``."""

from __future__ import annotations

import click

from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import Command, reads
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.rcp_options import benchmark_argument
from mlperf_pkg.commands.rcp.differences import DIFF_FORMATS, differences


@command.command(name="diff")
@click.argument("old", shell_complete=completion.rounds)
@click.argument("new", shell_complete=completion.rounds)
@benchmark_argument(required=False)
@reads("usage")
@options.written(DIFF_FORMATS)
def diff_points(
    *, old: str, new: str, benchmark: str | None, usage: str | None, format_: str, target: Output
) -> int:
    """Show how the reference points of rounds OLD and NEW differ.

    List the points that were added (+), removed (-) or changed (~), with their runs,
    mean and smallest acceptable mean (limit). A point with the same runs is listed if
    pruning removes it in only one of the rounds.

    Exit status: 0 with or without differences, 2 if a round has no points.

    \b
    Examples:
      mlperf-pkg rcp diff 5.0 5.1
      mlperf-pkg rcp diff 4.1 5.0 retinanet
      mlperf-pkg rcp diff 1.0 3.0 --usage hpc --format csv
    """
    target.refuse_early([])
    result = differences(
        usage or "training", old.removeprefix("v"), new.removeprefix("v"), benchmark
    )
    target.write(DIFF_FORMATS[format_](result, target.view()))
    return 0
