"""``mlperf-pkg plot``."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from mlperf_pkg.checker.check import check_inputs
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.reporting import noted
from mlperf_pkg.cli.types import Choice
from mlperf_pkg.infra.text import visible
from mlperf_pkg.submission.part import find_parts

_CHARTS = ("curves", "times", "rcp", "timeline", "scoreboard")
_FORMATS = ("svg", "png")


@click.command(name="plot")
@options.checked
@options.output_folder_option("Write the charts into DIR.", required=True, metavar="DIR")
@click.option(
    "--format",
    "format_",
    type=Choice(_FORMATS),
    default=_FORMATS[0],
    show_default=True,
    help="Write vectors (svg) or pixels (png).",
)
@click.option(
    "--chart",
    "names",
    type=Choice(_CHARTS),
    multiple=True,
    help="Draw only this chart (default: all); repeatable.",
)
@options.force_option()
def command(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    output: Path,
    format_: str,
    names: tuple[str, ...],
    force: bool,
) -> int:
    """Draw charts, each to its own file.

    PATH is as for 'mlperf-pkg check'; a folder inside a submission
    (ACME/results/dgx/bert) is drawn with its system names. For each result set, plot
    draws the curves of its runs, their times, the RCP test and the timeline; for each
    benchmark, the scoreboard. The names of the files are printed.

    The command needs an extra: pip install 'mlperf-pkg[report]'.

    Exit status: 0 if all charts were written, 1 if there is nothing to draw or a
    chart cannot be drawn, 2 if they could not be written.

    \b
    Examples:
      mlperf-pkg plot logs/ -o charts/
      mlperf-pkg plot submissions/ACME/results/dgx/bert -o charts/
      mlperf-pkg plot submissions/ACME -o charts/ --format png --chart rcp
    """
    from mlperf_pkg.commands.charts import drawing, pictures  # noqa: PLC0415 - slow to import
    from mlperf_pkg.infra.files import refuse_within, write_together  # noqa: PLC0415

    refuse_within(output, paths)
    pictures.library()
    checked = noted(check_inputs(find_parts(paths), replace(check_options, curves=True)))
    charts = drawing.files(checked, names or _CHARTS)
    drawn = pictures.drawn(list(charts.values()), format_)
    pictures_by_name = {
        f"{name}.{format_}": picture
        for name, picture in zip(charts, drawn, strict=True)
        if isinstance(picture, bytes)
    }
    for name, picture in zip(charts, drawn, strict=True):
        if not isinstance(picture, bytes):
            click.echo(f"mlperf-pkg: {name}: cannot be drawn: {visible(picture.reason)}", err=True)
    if not pictures_by_name:
        click.echo("mlperf-pkg: nothing to draw", err=True)
        return 1
    write_together(output, pictures_by_name, replace=force)
    for name in pictures_by_name:
        click.echo(output / name)
    return int(len(pictures_by_name) < len(charts))
