"""``mlperf-pkg plot``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import refuse_within
from mlperf_pkg.cli.types import Choice, LocalPath

_CHARTS = ("curves", "times", "rcp", "timeline", "scoreboard")
_FORMATS = ("svg", "png")


@click.command(name="plot")
@options.checked
@click.option(
    "-o",
    "--output",
    type=LocalPath(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The folder to write into.",
)
@click.option(
    "--format",
    "format_",
    type=Choice(_FORMATS),
    default=_FORMATS[0],
    show_default=True,
    help="Vectors or pixels.",
)
@click.option(
    "--chart",
    "names",
    type=Choice(_CHARTS),
    multiple=True,
    help="Only this chart; repeatable.",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def command(
    *,
    paths: tuple[str, ...],
    how: Options,
    output: Path,
    format_: str,
    names: tuple[str, ...],
    force: bool,
) -> int:
    """Write charts as files, one each.

    PATH is as for 'mlperf-pkg check'. Of each result set: its runs' curves, their
    times, the RCP test and the timeline; of each benchmark: the scoreboard. The
    names of the files are printed.

    Exit status: 0 if there are charts, 1 if there is nothing to draw, 2 if they
    could not be written. Needs the extra: pip install 'mlperf-pkg[report]'.

    \b
    Examples:
      mlperf-pkg plot logs/ -o charts/
      mlperf-pkg plot submissions/ACME -o charts/ --format png --chart rcp
    """
    from mlperf_pkg.commands.charts import drawing, pictures  # noqa: PLC0415 - slow to import
    from mlperf_pkg.infra.files import write_together  # noqa: PLC0415
    from mlperf_pkg.infra.resources import needed  # noqa: PLC0415

    refuse_within(output, paths)
    needed("vl_convert")
    charts = drawing.files(check(paths, how), names or _CHARTS, how.jobs)
    picture = pictures.PICTURES[format_]
    drawn = {f"{name}.{format_}": picture(chart) for name, chart in charts.items()}
    if not drawn:
        click.echo("mlperf-pkg: nothing to draw", err=True)
        return 1
    write_together(output, drawn, replace=force)
    for name in drawn:
        click.echo(output / name)
    return 0
