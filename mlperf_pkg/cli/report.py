"""``mlperf-pkg report``."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output

DEFAULT_PAGE = "report.html"


@click.command(name="report")
@options.checked
@options.filtered
@options.output_option(
    "Write the page to FILE; - is standard output.",
    metavar="FILE",
    default=DEFAULT_PAGE,
    show_default=True,
)
@options.force_option()
def command(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    filter_findings: options.Filter,
    output: Path,
    force: bool,
) -> int:
    """Write one HTML page: verdicts, results, charts and findings.

    PATH is as for 'mlperf-pkg check'. The page is a single file that loads nothing
    from the network and runs only its own scripts: send it, print it, archive it.
    Its name is printed.

    The command needs an extra: pip install 'mlperf-pkg[report]'.

    Exit status: 0 if there is no error, 1 if there is one, 2 if the page could not
    be written.

    \b
    Examples:
      mlperf-pkg report logs/
      mlperf-pkg report training_results_v2.0 -o v2.0.html
    """
    from mlperf_pkg.commands.charts import pictures  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.compare.prices import all_prices  # noqa: PLC0415
    from mlperf_pkg.commands.page import content, html, template  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page.entries import entries, published_sets  # noqa: PLC0415
    from mlperf_pkg.commands.page.excerpts import excerpts  # noqa: PLC0415

    to_stdout = output == Path("-")
    target = Output(None if to_stdout else output, force)
    target.refuse_early(paths)
    template.library()
    pictures.library()
    checked = check(paths, replace(check_options, curves=True))
    report = filter_findings(checked.report)
    findings = content.shown_findings(report)
    lines = excerpts(checked, findings)
    prices = all_prices(None, check_options.config.prices, Path())
    page = content.content(report, entries(checked, prices), lines, published_sets())
    target.write(html.html(page, pictures.runtime()))
    if not to_stdout:
        click.echo(output)
    return int(report.has_errors)
