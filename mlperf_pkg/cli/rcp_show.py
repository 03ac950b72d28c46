"""``mlperf-pkg rcp show``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.rcp_options import (
    BATCH_SIZE,
    benchmark_argument,
    origin_options,
    round_option,
)
from mlperf_pkg.commands.rcp.reference import Origin, Reference, reference, references
from mlperf_pkg.commands.rcp.table import SHOW_FORMATS, shown
from mlperf_pkg.infra.files import write_whole


@command.command(name="show")
@benchmark_argument(required=False)
@round_option
@click.option(
    "--all/--pruned",
    "--unpruned",
    "all_",
    default=True,
    help="Show all points (default), or only those that remain after pruning.",
)
@click.option(
    "--batch-size",
    "batch_sizes",
    type=BATCH_SIZE,
    multiple=True,
    metavar="N",
    help="Show the point that sets of batch size N are compared with, interpolated if"
    " necessary; repeatable.",
)
@click.option(
    "--interpolate",
    is_flag=True,
    help="Show every batch size from the smallest to the largest point that the test uses.",
)
@options.chart_option("all reference runs and points into FILE, .svg, .png or .html")
@origin_options
@options.written(SHOW_FORMATS)
def show(
    *,
    benchmark: str | None,
    round_: str | None,
    usage: str | None,
    all_: bool,
    batch_sizes: tuple[int, ...],
    interpolate: bool,
    chart: Path | None,
    origin: Origin,
    format_: str,
    target: Output,
) -> int:
    """Show the reference points of a benchmark.

    Show for each batch size the number of reference runs, their olympic mean and
    deviation, the smallest acceptable mean (limit), and whether pruning removes the
    point. Without BENCHMARK, list the benchmarks of the round; csv and json then
    contain all their points. Numbers in csv and json are not rounded.

    --chart draws every reference run, the mean of each batch size, the points that
    pruning removes, and the smallest acceptable mean between them.

    Exit status: 0 if there are points, 2 if not, or if the chart could not be written.

    \b
    Examples:
      mlperf-pkg rcp show
      mlperf-pkg rcp show bert --round 5.0 --pruned
      mlperf-pkg rcp show llama31_8b --batch-size 48 --batch-size 1000
      mlperf-pkg rcp show llama31_8b --interpolate -o limits.csv
      mlperf-pkg rcp show --round 5.1 --format csv -o points.csv
      mlperf-pkg rcp show bert --chart bert.svg
      mlperf-pkg rcp show bert --custom rcps_bert.json --merge
    """
    inputs = [str(origin.file)] if origin.file else []
    target.refuse_early(inputs)
    if benchmark is None and (batch_sizes or interpolate or chart or origin.file):
        raise click.UsageError("--batch-size, --interpolate, --chart and --custom need a BENCHMARK")
    draw = _picture(chart, inputs, force=target.force) if chart else None
    if benchmark is None:
        chosen = references(usage, round_)
    else:
        chosen = [reference(usage, round_, benchmark, origin)]
    if chart and draw:
        write_whole(chart, draw(chosen[0]), replace=target.force)
    items = [
        shown(item, item.every_size if interpolate else batch_sizes, pruned=not all_)
        for item in chosen
    ]
    target.write(SHOW_FORMATS[format_](items, target.view()))
    return 0


def _picture(file: Path, inputs: Sequence[str], *, force: bool) -> Callable[[Reference], bytes]:
    from mlperf_pkg.commands.rcp.picture import points_picture  # noqa: PLC0415 - slow to import

    Output(file, force).refuse_early(inputs)
    return points_picture(file)
