"""``mlperf-pkg export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import PATH, Command, LocalPath, SuggestingChoice
from mlperf_pkg.cli.options import noted
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import locked
from mlperf_pkg.published.results import published_results

if TYPE_CHECKING:
    from mlperf_pkg.commands.export.rows import Rows

_TABLES = ("systems", "result_sets", "runs", "evaluations", "settings", "findings")


@click.command(name="export", cls=Command)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=PATH)
@options.judged
@click.option(
    "-o",
    "--output",
    type=LocalPath(),
    metavar="FILE",
    required=True,
    help="Write to FILE, which ends in .parquet, .csv or .sqlite.",
)
@click.option(
    "--table",
    type=SuggestingChoice(_TABLES),
    help="Write only this table, into a single file FILE that ends in .parquet or .csv.",
)
@options.published_option("Also export")
@options.flag("--evaluations", text="Export the evaluations of all runs too.")
@options.flag("--append", text="Add rounds to FILE; refuse a round that FILE contains already.")
@options.flag("--replace", text="Add rounds to FILE; replace a round that FILE contains already.")
@options.force_option("Overwrite FILE.")
def command(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    output: Path,
    table: str | None,
    published: tuple[str, ...],
    evaluations: bool,
    append: bool,
    replace: bool,
    force: bool,
) -> int:
    """Write results, runs and findings as tables.

    PATH is as for 'mlperf-pkg check'. FILE is a database (SQLite) or, with Parquet and
    CSV, a folder with a file for each table. docs/export.md describes the tables,
    docs/howto/questions-in-sql.md has examples.

    Parquet needs a Python package. If the package is missing, the error names the
    command that installs it.

    Exit status: 0 if the tables were written, 2 if they could not be written.

    \b
    Examples:
      mlperf-pkg export training_results_v5.1 -o results.parquet
      mlperf-pkg export training_results_v5.0 -o results.parquet --append
      mlperf-pkg export --published all -o history.parquet
      mlperf-pkg export logs/ -o runs.csv --table runs
    """
    from mlperf_pkg.commands.export.formats import FORMATS, Destination  # noqa: PLC0415 - slow
    from mlperf_pkg.commands.export.rows import common_rounds, merged  # noqa: PLC0415 - slow

    if append + replace + force > 1:
        raise click.UsageError("give only one of --append, --replace and --force")
    if output.suffix not in FORMATS:
        endings = ", ".join(FORMATS)
        raise click.UsageError(f"-o {output}: unknown ending; expected one of {endings}")
    destination = Destination(output, table)
    if table and destination.holds_all:
        raise click.UsageError(
            "--table applies only to .parquet and .csv; a database such as"
            f" {output} always has all tables"
        )
    if not paths and not published:
        paths = options.default_paths()
    changes = append or replace
    with locked(output):
        destination.refuse_early(paths, replace=changes or force)
        old = destination.read() if changes and output.exists() else {}
        rows = _rows(paths, check_options, published, evaluations=evaluations)
        if not replace and (both := common_rounds(old, rows)):
            raise UserError(f"{output}: contains {both} already; --replace replaces it")
        rows = merged(old, rows)
        destination.write(rows, replace=force or (changes and bool(old)))
    if output.is_dir():
        note = (
            "this is a folder with a file for each table; --table NAME writes one table to one file"
        )
        click.echo(f"note: {output}: {note}", err=True)
    names = (table,) if table else tuple(rows)
    click.echo(f"{output}: {', '.join(f'{name} {len(rows[name]):,}' for name in names)}")
    return 0


def _rows(
    paths: tuple[str, ...], check_options: Options, published: tuple[str, ...], *, evaluations: bool
) -> Rows:
    """Return the rows of a check, of the published results, or of both."""
    from mlperf_pkg.commands.export import rows  # noqa: PLC0415 - slow

    options_ = structs.replace(check_options, curves=evaluations)
    of_paths: Rows = rows.rows_of(noted(check(paths, options_))) if paths else {}
    if not published:
        return of_paths
    of_record = rows.rows_of_published(published_results(), published)
    both = rows.common_rounds(of_record, of_paths)
    if both:
        raise UserError(
            f"{both} is in the published results and in PATH; export only one of the two"
        )
    return rows.merged(of_record, of_paths)
