"""``mlperf-pkg rcp new``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.reporting import noted
from mlperf_pkg.commands.rcp.creation import Author, new_point
from mlperf_pkg.infra.text import visible


@command.command(name="new")
@options.checked
@options.counting_samples
@click.option("--creator", metavar="ORG", help="Name the organisation (default: as logged).")
@click.option("--platform", metavar="TEXT", help="Name the system (default: as logged).")
@click.option(
    "--when",
    metavar="TEXT",
    help="Give the time of the runs (default: 'Prior to ROUND submission').",
)
@click.option("--precision", metavar="TEXT", help="Name the numerical format, such as BF16.")
@options.output_option(
    "Write the point to FILE; - is standard output.",
    metavar="FILE",
    default="-",
    show_default=True,
)
@options.force_option()
def new(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    creator: str | None,
    platform: str | None,
    when: str | None,
    precision: str | None,
    output: Path,
    force: bool,
) -> int:
    """Make a new reference point from logs of the reference.

    PATH is as for 'mlperf-pkg check': the logs of at least 2N runs, where a submission
    has N. All runs must converge and have the same benchmark, batch size and
    hyperparameters. The point is written in the format of mlperf-logging, which
    --custom_rcps of the official RCP checker and 'mlperf-pkg rcp check --custom' read.
    stderr shows its mean and limit, and whether pruning would keep it.

    Exit status: 0 if the point was written, 2 if not.

    \b
    Examples:
      mlperf-pkg rcp new reference-logs/ -o new-point.json
      mlperf-pkg rcp new logs/ --creator ACME --platform H100 --precision BF16
    """
    target = Output(None if output == Path("-") else output, force)
    target.refuse_early(paths)
    checked = noted(check(paths, check_options))
    point = new_point(checked, Author(creator, platform, when, precision))
    target.write(point.json())
    for note in point.notes:
        click.echo(visible(f"note: {note}"), err=True)
    return 0
