"""``mlperf-pkg report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.reporting import noted
from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.errors import UserError
from mlperf_pkg.render import text

if TYPE_CHECKING:
    from mlperf_pkg.published.model import PublishedSet

DEFAULT_PAGE = "report.html"
DEFAULT_HISTORY = "history.html"


@click.command(name="report")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@options.judged
@options.scaled
@options.filtered
@click.option(
    "--history",
    is_flag=True,
    help="Write the page of all published rounds, with the results in PATH if it is given.",
)
@click.option(
    "--from",
    "export",
    type=LocalPath(exists=True, path_type=Path),
    metavar="EXPORT",
    help="With --history, show the results of an export instead of the published ones.",
)
@options.output_option(
    f"Write the page to FILE; - is standard output (default: {DEFAULT_PAGE}, with --history"
    f" {DEFAULT_HISTORY}).",
    metavar="FILE",
)
@options.force_option()
def command(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    filter_findings: options.Filter,
    history: bool,
    export: Path | None,
    output: Path | None,
    force: bool,
) -> int:
    """Write one HTML page: verdicts, results, charts and findings.

    With --history, the page has the results of all published rounds instead: each
    benchmark over rounds, against Moore's law, scaling, and a table of all results.

    PATH is as for 'mlperf-pkg check'. The page is a single file that loads nothing
    from the network and runs only its own scripts: send it, print it, archive it.
    The command prints its name, and the verdicts on standard error.

    The command needs an extra: pip install 'mlperf-pkg[report]'.

    Exit status: 0 if there is no error (with --history: if the page was written), 1 if
    there is one, 2 if the page could not be written.

    \b
    Examples:
      mlperf-pkg report logs/
      mlperf-pkg report training_results_v2.0 -o v2.0.html
      mlperf-pkg report --history
      mlperf-pkg report --history submissions/ACME -o acme-in-history.html
      mlperf-pkg report --history --from results.parquet
    """
    from mlperf_pkg.commands.charts import pictures  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page import template  # noqa: PLC0415 - slow to import

    if export and not history:
        raise click.UsageError("--from needs --history")
    if not paths and not history:
        paths = options.default_paths()
    file = output or Path(DEFAULT_HISTORY if history else DEFAULT_PAGE)
    to_stdout = file == Path("-")
    target = Output(None if to_stdout else file, force)
    target.refuse_early(paths)
    template.library()
    pictures.library()
    if history:
        page, status = _history(paths, check_options, export), 0
    else:
        page, status = _report(paths, check_options, filter_findings)
    target.write(page)
    if not to_stdout:
        click.echo(file)
    return status


def _report(
    paths: tuple[str, ...], check_options: Options, filter_findings: options.Filter
) -> tuple[str, int]:
    """Return the page of a check and the exit status."""
    from mlperf_pkg.commands.charts import pictures  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.compare.prices import all_prices  # noqa: PLC0415
    from mlperf_pkg.commands.page import content, html  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page.entries import entries, published_sets  # noqa: PLC0415
    from mlperf_pkg.commands.page.excerpts import excerpts  # noqa: PLC0415

    checked = noted(check(paths, replace(check_options, curves=True)))
    report = filter_findings(checked.report)
    view = replace(Output().view(), quiet=True, color=False)
    click.echo(text.text(report, view), err=True, nl=False)
    findings = content.shown_findings(report)
    lines = excerpts(checked, findings)
    prices = all_prices(None, check_options.config.prices, Path())
    page = content.content(report, entries(checked, prices), lines, published_sets())
    return html.html(page, pictures.runtime()), int(report.has_errors)


def _history(paths: tuple[str, ...], check_options: Options, export: Path | None) -> str:
    """Return the page of all published rounds, or of an export, with the sets in ``paths``."""
    from mlperf_pkg.commands.charts import pictures  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page import history, history_html  # noqa: PLC0415 - slow to import
    from mlperf_pkg.published.results import published_results  # noqa: PLC0415

    published = published_results()
    own = list(history.own_sets(check(paths, check_options))) if paths else []
    if paths and not own:
        raise UserError(f"{', '.join(paths)}: no result set; expected logs or submissions")
    if export is None:
        rounds = history.published_history(published, own)
    else:
        rounds = history.history(_exported(export), f"from {export.name}", own, published.sets)
    return history_html.history_html(rounds, pictures.runtime())


def _exported(export: Path) -> list[PublishedSet]:
    """Return the result sets of an export."""
    from mlperf_pkg.commands.export.exported_sets import exported_sets  # noqa: PLC0415 - slow
    from mlperf_pkg.commands.export.files import FORMATS, Destination  # noqa: PLC0415 - slow

    if export.suffix not in FORMATS:
        raise UserError(f"{export}: unknown ending; expected one of {', '.join(FORMATS)}")
    sets = list(exported_sets(Destination(export).read()))
    if not sets:
        raise UserError(f"{export}: no result set")
    return sets
