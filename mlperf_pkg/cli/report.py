"""``mlperf-pkg report``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from mlperf_pkg.checker.check import check, check_inputs
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import Command, LocalPath, SuggestingChoice
from mlperf_pkg.cli.options import noted
from mlperf_pkg.cli.output import Output
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import text
from mlperf_pkg.submission.find import find_parts

if TYPE_CHECKING:
    from mlperf_pkg.commands.page.content import Content
    from mlperf_pkg.published.model import PublishedSet

DEFAULT_PAGE = "report.html"
DEFAULT_HISTORY = "history.html"
DEFAULT_CHARTS = "charts"
_CHARTS = ("curves", "times", "rcp", "timeline", "scoreboard")
_FORMATS = ("svg", "png")


@click.command(name="report", cls=Command)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@options.judged
@options.scaled
@options.filtered
@options.flag(
    "--history",
    text="Write the page of all published rounds, with the results in PATH if it is given.",
)
@click.option(
    "--from",
    "export",
    type=LocalPath(exists=True),
    metavar="EXPORT",
    help="With --history, show the results of an export instead of the published ones.",
)
@click.option(
    "--site",
    type=LocalPath(),
    metavar="DIR",
    help="Write a site into DIR, for static hosting: a page for each PATH, the page of all"
    " published rounds, and an index.",
)
@options.flag("--review", text="With --site, add the review of each round.")
@options.repeatable(
    "--draw",
    "charts",
    type=SuggestingChoice(("all", *_CHARTS)),
    text="Write charts, each to its own file, instead of the page: all, or only these",
)
@click.option(
    "--format",
    "format_",
    type=SuggestingChoice(_FORMATS),
    help=f"With --draw, write vectors (svg) or pixels (png) (default: {_FORMATS[0]}).",
)
@click.option(
    "-o",
    "--output",
    type=LocalPath(),
    metavar="FILE",
    help=f"Write the page to FILE; - is standard output (default: {DEFAULT_PAGE}, with --history"
    f" {DEFAULT_HISTORY}). With --draw, a folder (default: {DEFAULT_CHARTS}).",
)
@options.force_option()
def command(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    filter_findings: options.Filter,
    history: bool,
    export: Path | None,
    site: Path | None,
    review: bool,
    charts: tuple[str, ...],
    format_: str | None,
    output: Path | None,
    force: bool,
) -> int:
    """Write one HTML page: verdicts, results, charts and findings.

    With --history, the page has the results of all published rounds instead: each
    benchmark over rounds and against Moore's law, one chart and a table of all results.

    PATH is as for 'mlperf-pkg check'. The page is a single file that loads nothing
    from the network and runs only its own scripts: send it, print it, archive it.
    The command prints its name, and the verdicts on standard error.

    With --site, each PATH is a round with a page of its own. Existing files of DIR are
    overwritten only with --force, and no other file is touched.

    With --draw, the charts are written as files, whose names are printed: for each
    result set the curves of its runs, their times, the RCP test and the timeline; for
    each benchmark, the scoreboard. PATH may then be a folder inside a submission
    (ACME/results/dgx/bert), which is drawn with its system names.

    The command needs an extra: pip install 'mlperf-pkg[report]'.

    Exit status: 0 if there is no error (with --history or --site: if the pages were
    written), 1 if there is one, 2 if the page could not be written. With --draw: 0 if
    all charts were written, 1 if there is nothing to draw or a chart cannot be drawn.

    \b
    Examples:
      mlperf-pkg report logs/
      mlperf-pkg report training_results_v2.0 -o v2.0.html
      mlperf-pkg report --history
      mlperf-pkg report --history submissions/ACME -o acme-in-history.html
      mlperf-pkg report --history --from results.parquet
      mlperf-pkg report --site public training_results_v4.1 training_results_v5.0
      mlperf-pkg report submissions/ACME --draw all -o charts/
      mlperf-pkg report submissions/ACME --draw rcp --draw times --format png
    """
    from mlperf_pkg.commands.charts import drawing  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page import html, template  # noqa: PLC0415 - slow to import

    modes = {"--draw": charts, "--history": history, "--site": site}
    chosen = [name for name, value in modes.items() if value]
    refused = {
        f"{' and '.join(chosen)} cannot be used together": len(chosen) > 1,
        "--from needs --history": export and not history,
        "--format needs --draw": format_ and not charts,
        "--review needs --site": review and not site,
        "--site and --output cannot be used together": site and output,
    }
    for message in (message for message, wrong in refused.items() if wrong):
        raise click.UsageError(message)
    if not paths and not history:
        paths = options.default_paths()
    if charts:
        names = set(charts) - {"all"} or _CHARTS
        folder = output or Path(DEFAULT_CHARTS)
        return _charts(paths, check_options, names, folder, format_ or _FORMATS[0], force=force)
    if site:
        return _site(paths, check_options, filter_findings, site, review=review, force=force)
    file = output or Path(DEFAULT_HISTORY if history else DEFAULT_PAGE)
    target = Output(None if file == Path("-") else file, force)
    target.refuse_early(paths)
    template.library()
    drawing.library()
    if history:
        page = _history(paths, check_options, export)
        status = 0
    else:
        content, _ = _content(paths, check_options, filter_findings)
        page = html.html(content, drawing.runtime())
        status = int(content.report.has_errors)
    target.write(page)
    if target.file:
        click.echo(file)
    return status


def _charts(
    paths: tuple[str, ...],
    check_options: Options,
    names: Collection[str],
    folder: Path,
    format_: str,
    *,
    force: bool,
) -> int:
    """Write charts into a folder, print their names and return the exit status."""
    from mlperf_pkg.commands.charts import drawing  # noqa: PLC0415 - slow to import
    from mlperf_pkg.infra.files import refuse_within, write_together  # noqa: PLC0415

    refuse_within(folder, paths)
    drawing.library()
    checked = noted(check_inputs(find_parts(paths), replace(check_options, curves=True)))
    charts = drawing.files(checked, names)
    pictures = drawing.drawn(list(charts.values()), format_)
    files: dict[str, str | bytes] = {}
    for name, picture in zip(charts, pictures, strict=True):
        if isinstance(picture, bytes):
            files[f"{name}.{format_}"] = picture
        else:
            reason = visible(picture.reason)
            click.echo(f"mlperf-pkg: {name}: cannot be drawn: {reason}", err=True)
    if not files:
        click.echo("mlperf-pkg: nothing to draw", err=True)
        return 1
    write_together(folder, files, replace=force)
    for name in files:
        click.echo(folder / name)
    return int(len(files) < len(charts))


def _content(
    paths: tuple[str, ...], check_options: Options, filter_findings: options.Filter
) -> tuple[Content, Checked]:
    """Return the content of the page of a check, and print its verdicts."""
    from mlperf_pkg.commands.compare.ratios import all_prices  # noqa: PLC0415
    from mlperf_pkg.commands.page import content  # noqa: PLC0415 - slow to import
    from mlperf_pkg.published.results import usable_results  # noqa: PLC0415

    checked = noted(check(paths, replace(check_options, curves=True)))
    report = filter_findings(checked.report)
    view = replace(Output().view(), quiet=True, color=False)
    click.echo(text.text(report, view), err=True, nl=False)
    lines = content.excerpts(checked, content.shown_findings(report))
    of_sets = list(content.sections(checked, all_prices(None, check_options.config.prices, Path())))
    record = results.sets if (results := usable_results()) else ()
    return content.Content(report, of_sets, lines, record), checked


def _site(
    paths: tuple[str, ...],
    check_options: Options,
    filter_findings: options.Filter,
    folder: Path,
    *,
    review: bool,
    force: bool,
) -> int:
    """Write a site and print the names of its pages."""
    from mlperf_pkg.commands.charts import drawing  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page import history, site, template  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.review.files import files_of, review_of, sections  # noqa: PLC0415 - slow
    from mlperf_pkg.commands.review.round import Choices, read_round  # noqa: PLC0415 - slow
    from mlperf_pkg.infra.files import refuse_within, write_together  # noqa: PLC0415
    from mlperf_pkg.published.results import usable_results  # noqa: PLC0415

    refuse_within(folder, paths)
    template.library()
    drawing.library()
    pages: dict[str, tuple[Content, dict[str, str]]] = {}
    own: list[PublishedSet] = []
    for path in paths:
        content, checked = _content((path,), check_options, filter_findings)
        files = {}
        if review:
            reviewed = read_round(path, check_options, Choices(), checked=checked)
            files = files_of(review_of(reviewed, list(sections(reviewed))))
        pages[site.page_name(content, pages)] = (content, files)
        own += history.own_sets(checked)
    files = site.files(pages, usable_results(), own, drawing.runtime())
    write_together(folder, files, replace=force)
    for name in files:
        if name.endswith(".html"):
            click.echo(folder / name)
    return 0


def _history(paths: tuple[str, ...], check_options: Options, export: Path | None) -> str:
    """Return the page of all published rounds, or of an export, with the sets in ``paths``."""
    from mlperf_pkg.commands.page import history  # noqa: PLC0415 - slow to import
    from mlperf_pkg.published.results import published_results  # noqa: PLC0415

    published = published_results()
    own = list(history.own_sets(check(paths, check_options))) if paths else []
    if paths and not own:
        raise UserError(f"{', '.join(paths)}: no result set; expected logs or submissions")
    if export is None:
        rounds = history.published_history(published, own)
    else:
        rounds = history.history(_exported(export), f"from {export.name}", own, published.sets)
    return history.history_html(rounds)


def _exported(export: Path) -> list[PublishedSet]:
    """Return the result sets of an export."""
    from mlperf_pkg.commands.export.formats import FORMATS, Destination  # noqa: PLC0415 - slow
    from mlperf_pkg.commands.export.rows import exported_sets  # noqa: PLC0415 - slow

    if export.suffix not in FORMATS:
        raise UserError(f"{export}: unknown ending; expected one of {', '.join(FORMATS)}")
    sets = list(exported_sets(Destination(export).read()))
    if not sets:
        raise UserError(f"{export}: no result set")
    return sets
