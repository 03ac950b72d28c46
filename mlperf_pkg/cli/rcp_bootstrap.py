"""``mlperf-pkg rcp bootstrap``."""

from __future__ import annotations

import click

from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.rcp_options import BATCH_SIZE, one_reference
from mlperf_pkg.commands.rcp.bootstrap import BOOTSTRAP_FORMATS, bootstrap
from mlperf_pkg.commands.rcp.reference import Reference


@command.command(name="bootstrap")
@one_reference
@click.option(
    "--batch-size",
    type=BATCH_SIZE,
    required=True,
    metavar="N",
    help="Resample the limit at this batch size.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=100, max=100_000),
    default=2000,
    show_default=True,
    metavar="N",
    help="Resample N times.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Seed the random numbers; the same options and seed give the same result.",
)
@options.written(BOOTSTRAP_FORMATS)
def bootstrap(
    *,
    reference: Reference,
    batch_size: int,
    resamples: int,
    seed: int,
    format_: str,
    target: Output,
) -> int:
    """Show the confidence interval of a limit.

    Resample the reference runs of the limit (of two points if it is interpolated), and
    show the 95 % confidence intervals of mean and limit. Show also how often a set of
    runs drawn from the reference itself fails the test, which aims at 5 %.

    Exit status: 0 if there is a limit, 2 if not.

    \b
    Examples:
      mlperf-pkg rcp bootstrap llama31_8b --batch-size 32
      mlperf-pkg rcp bootstrap bert --round 5.0 --batch-size 1024 --seed 7
    """
    target.refuse_early([])
    result = bootstrap(reference, batch_size, resamples=resamples, seed=seed)
    target.write(BOOTSTRAP_FORMATS[format_](result, target.view()))
    return 0
