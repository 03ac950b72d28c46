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
from mlperf_pkg.cli.group import PATH, Command, LocalPath, SuggestingChoice
from mlperf_pkg.cli.options import noted
from mlperf_pkg.cli.output import Output
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import text
from mlperf_pkg.submission.find import find_parts

if TYPE_CHECKING:
    from mlperf_pkg.commands.page.content import PageContent
    from mlperf_pkg.infra.files import Content
    from mlperf_pkg.published.model import PublishedSet

DEFAULT_PAGE = "report.html"
DEFAULT_HISTORY = "history.html"
DEFAULT_CHARTS = "charts"
_CHARTS = ("curves", "times", "rcp", "timeline", "scoreboard")
_FORMATS = ("svg", "png")


@click.command(name="report", cls=Command)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=PATH)
@options.judged
@options.filtered
@options.flag(
    "--history",
    text="Write the page of all published rounds, together with the results in PATH if PATH is"
    " given.",
)
@click.option(
    "--from",
    "export",
    type=LocalPath(exists=True),
    metavar="EXPORT",
    help="Show the results in EXPORT, which 'mlperf-pkg export' wrote, instead of the published"
    " results; only with --history.",
)
@click.option(
    "--site",
    type=LocalPath(),
    metavar="DIR",
    help="Write a static web site into DIR: a page for each PATH, a page of all published rounds,"
    " and an index.",
)
@options.flag("--review", text="Add a review of each round to the site; only with --site.")
@options.repeatable(
    "--draw",
    "charts",
    type=SuggestingChoice(("all", *_CHARTS)),
    text="Write the charts of this name, or all charts, instead of the page; each chart has a file"
    " of its own",
)
@click.option(
    "--format",
    "format_",
    type=SuggestingChoice(_FORMATS),
    help="Write the charts of --draw as vector graphics (svg) or as pixels (png) (default:"
    f" {_FORMATS[0]}).",
)
@click.option(
    "-o",
    "--output",
    type=LocalPath(),
    metavar="FILE",
    help=f"Write the page to FILE; - is standard output (default: {DEFAULT_PAGE}, or"
    f" {DEFAULT_HISTORY} with --history). With --draw, FILE is a folder (default:"
    f" {DEFAULT_CHARTS}).",
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

    With --history, the page has the results of all published rounds instead: for each
    benchmark, a chart of the best results by round beside Moore's law; then one chart
    and one table of all results.

    PATH is as for 'mlperf-pkg check'. The page is a single file that loads nothing
    from the network and runs only its own scripts: send it, print it, archive it.
    The command prints the name of the page on standard output, and the verdicts on
    standard error.

    With --site, each PATH is a round with a page of its own. Existing pages in DIR are
    overwritten only with --force; all other files in DIR stay.

    With --draw, each chart is written to a file, and the names of the files are
    printed. The charts of a result set are the curves and the times of its runs, the
    RCP test and the timeline; a benchmark has the scoreboard. PATH may then also be a
    folder inside a submission, such as ACME/results/dgx/bert.

    The command needs Python packages that are not always installed. If a package is
    missing, the error names the command that installs it.

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
    modes = {"--draw": bool(charts), "--history": history, "--site": site is not None}
    chosen = [name for name, is_chosen in modes.items() if is_chosen]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot be used together")
    if export and not history:
        raise click.UsageError("--from needs --history")
    if format_ and not charts:
        raise click.UsageError("--format needs --draw")
    if review and not site:
        raise click.UsageError("--review needs --site")
    if site and output:
        raise click.UsageError("--site and --output cannot be used together")
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
    target.refuse_early([*paths, str(export)] if export else paths)
    if history:
        return _history(paths, check_options, export, target)
    return _page(paths, check_options, filter_findings, target)


# ---- the page of a check, and that of all rounds ------------------------------------------


def _page(
    paths: tuple[str, ...], check_options: Options, filter_findings: options.Filter, target: Output
) -> int:
    """Write the page of a check and return the exit status."""
    from mlperf_pkg.commands.charts import drawing  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page import html  # noqa: PLC0415 - slow to import

    _require_extra()
    _, content = _checked(paths, check_options, filter_findings)
    _write(target, html.html(content, drawing.runtime(), jobs=check_options.processes))
    return int(content.report.has_errors)


def _history(
    paths: tuple[str, ...], check_options: Options, export: Path | None, target: Output
) -> int:
    """Write the page of all published rounds, or of an export, with the sets in ``paths``."""
    from mlperf_pkg.commands.page import history  # noqa: PLC0415 - slow to import
    from mlperf_pkg.published.results import published_results  # noqa: PLC0415

    _require_extra()
    published = published_results()
    own_sets: list[PublishedSet] = []
    if paths:
        own_sets.extend(history.own_sets(check(paths, check_options)))
        if not own_sets:
            raise UserError(f"{', '.join(paths)}: no result set; expected logs or submissions")
    if export is None:
        rounds = history.published_history(published, own_sets)
    else:
        exported = _exported(export)
        rounds = history.history(exported, f"from {export.name}", own_sets, published.sets)
    _write(target, history.history_html(rounds))
    return 0


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


def _write(target: Output, page: Content) -> None:
    """Write a page and print its name."""
    target.write(page)
    if target.file:
        click.echo(target.file)


def _require_extra() -> None:
    """Make sure that pages and charts can be written, before the work starts.

    Raises:
        UserError: the extra is not installed.
    """
    from importlib.util import find_spec  # noqa: PLC0415 - slow to import

    from mlperf_pkg.commands.charts import drawing  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.page import template  # noqa: PLC0415 - slow to import

    template.library()
    if find_spec("vl_convert") is None:  # it takes 20 MiB, and a page mostly needs it not at all
        drawing.library()


def _checked(
    paths: tuple[str, ...], check_options: Options, filter_findings: options.Filter
) -> tuple[Checked, PageContent]:
    """Return a check and the content of its page, and print its verdicts."""
    from mlperf_pkg.commands.compare.ratios import all_prices  # noqa: PLC0415
    from mlperf_pkg.commands.page import content  # noqa: PLC0415 - slow to import
    from mlperf_pkg.published.results import usable_results  # noqa: PLC0415

    checked = noted(check(paths, replace(check_options, curves=True)))
    report = filter_findings(checked.report)
    view = replace(Output().view(), quiet=True, color=False)
    click.echo(text.text(report, view), err=True, nl=False)
    excerpts = content.excerpts(checked, report.findings)
    prices = all_prices(None, check_options.config.prices, Path())
    sections = list(content.sections(checked, prices))
    published = usable_results()
    published_sets = published.sets if published else ()
    return checked, content.PageContent(report, sections, excerpts, published_sets)


# ---- charts and sites ---------------------------------------------------------------------


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
            click.echo(f"mlperf-pkg: the chart {name} cannot be drawn: {reason}", err=True)
    if not files:
        click.echo("mlperf-pkg: there is nothing to draw", err=True)
        return 1
    write_together(folder, files, replace=force)
    for file in files:
        click.echo(folder / file)
    return int(len(files) < len(charts))


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
    from mlperf_pkg.commands.page import history, site  # noqa: PLC0415 - slow to import
    from mlperf_pkg.infra.files import refuse_within, write_together  # noqa: PLC0415
    from mlperf_pkg.published.results import usable_results  # noqa: PLC0415

    refuse_within(folder, paths)
    _require_extra()
    runtime = drawing.runtime()
    pages: dict[str, site.SitePage] = {}
    own_sets: list[PublishedSet] = []
    for path in paths:
        checked, content = _checked((path,), check_options, filter_findings)
        review_files = _review_files(path, check_options, checked) if review else {}
        name = site.page_name(content, pages)
        pages[name] = site.site_page(content, review_files, runtime, check_options.processes)
        own_sets.extend(history.own_sets(checked))
    files = site.files(pages, usable_results(), own_sets)
    write_together(folder, files, replace=force)
    for file in files:
        if file.endswith(".html"):
            click.echo(folder / file)
    return 0


def _review_files(path: str, check_options: Options, checked: Checked) -> dict[str, str]:
    """Return the files of the review of a round that was checked."""
    from mlperf_pkg.commands.review import files  # noqa: PLC0415 - slow to import
    from mlperf_pkg.commands.review.round import Choices, read_round  # noqa: PLC0415 - slow

    reviewed = read_round(path, check_options, Choices(), checked=checked)
    review = files.review_of(reviewed, list(files.sections(reviewed)))
    return files.files_of(review)
