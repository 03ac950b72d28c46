"""``mlperf-pkg score``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.scores import scores
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.official_tables import OfficialTables
from mlperf_pkg.cli.output import Outputs
from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.commands.score.formats import SCORE_FORMATS


@click.command(name="score")
@options.checked
@options.written(SCORE_FORMATS, several=True)
@click.option(
    "--tables",
    type=LocalPath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the official summarizer's tables there.",
)
def command(
    *,
    paths: tuple[str, ...],
    how: Options,
    target: Outputs,
    tables: Path | None,
) -> int:
    """Show times to train and how scores come about.

    PATH is as for 'mlperf-pkg check'. Shown are the minutes of each run, the
    runs that are dropped and why, the olympic mean, the factor that convergence
    faster than the reference costs, and the score.

    Exit status: 0 if there is a score, 1 if there is none, 2 if it could not be
    worked out.

    --tables is for submissions of one round: what the official summarizer would
    write of them, as summary, summary_detailed and (HPC) summary_weak_scaling,
    each .csv and .json, and summary.xlsx.

    \b
    Examples:
      mlperf-pkg score logs/
      mlperf-pkg score submissions/ACME --format csv -o scores.csv
      mlperf-pkg score submissions/ACME --tables tables/
    """
    target.refuse_early(paths)
    official = OfficialTables(tables, target.force) if tables else None
    if official:
        official.refuse_early(paths)
    checked = check(paths, how)
    if official:
        official.write(checked)
    given = scores(checked)
    target.write(SCORE_FORMATS, given, paths)
    return int(all(each.row.score_minutes is None for each in given.sets))
