"""``mlperf-pkg rcp chart``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.rcp_options import one_reference
from mlperf_pkg.commands.rcp.reference import Reference


@click.command(name="chart")
@one_reference
@options.output_option("Draw into FILE, .svg, .png or .html.", metavar="FILE", required=True)
@options.force_option()
def command(*, reference: Reference, output: Path, force: bool) -> int:
    """Draw the reference points of a benchmark.

    The chart shows every reference run, the mean of each batch size, the points that
    pruning removes, and the smallest acceptable mean between them.

    The command needs an extra: pip install 'mlperf-pkg[report]'.

    Exit status: 0 if the chart was written, 2 if not.

    \b
    Examples:
      mlperf-pkg rcp chart bert -o bert.svg
      mlperf-pkg rcp chart llama31_8b --round 5.1 -o points.html
    """
    from mlperf_pkg.commands.rcp.table import points_picture  # noqa: PLC0415 - slow to import
    from mlperf_pkg.infra.files import write_whole  # noqa: PLC0415

    Output(output, force).refuse_early([])
    draw = points_picture(output)
    write_whole(output, draw(reference), replace=force)
    click.echo(output)
    return 0
