"""``mlperf-pkg report``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.types import LocalPath

DEFAULT_PAGE = "report.html"


@click.command(name="report")
@options.checked
@options.chosen
@click.option(
    "-o",
    "--output",
    type=LocalPath(dir_okay=False, path_type=Path),
    default=DEFAULT_PAGE,
    show_default=True,
    help="The page to write.",
)
@click.option("--force", is_flag=True, help="Overwrite a page that exists.")
def command(
    *,
    paths: tuple[str, ...],
    how: Options,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    output: Path,
    force: bool,
) -> int:
    """Write one HTML page: verdicts, results, charts and findings.

    PATH is as for 'mlperf-pkg check'. The page is a single file that makes no
    request and runs nothing but its own scripts: send it, print it, keep it. Its
    name is printed.

    Exit status: 0 if no error was found, 1 if one was, 2 if no page could be
    written. Needs the extra: pip install 'mlperf-pkg[report]'.

    \b
    Examples:
      mlperf-pkg report logs/
      mlperf-pkg report training_results_v2.0 -o v2.0.html
    """
    from mlperf_pkg.commands.charts import drawing, pictures  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page import content, html  # noqa: PLC0415 - slow to import
    from mlperf_pkg.infra.resources import needed  # noqa: PLC0415

    to_stdout = output == Path("-")
    target = Output(None if to_stdout else output, force)
    target.refuse_early(paths)
    for library in ("jinja2", "vl_convert"):
        needed(library)
    checked = check(paths, how)
    report = checked.report.only(select, ignore)
    shown = [each.first for each in content.shown_findings(report)[0]]
    lines = drawing.excerpts(checked, shown)
    page = content.content(report, drawing.drawn_sets(checked, how.jobs), lines)
    target.write(html.html(page, pictures.runtime()))
    if not to_stdout:
        click.echo(output)
    return int(any(finding.is_error for finding in report.findings))
