"""``mlperf-pkg results``."""

from pathlib import Path

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import PATH, Command
from mlperf_pkg.cli.output import Output, refuse_same
from mlperf_pkg.commands.results.tables import IDS, ResultsFolder, summary
from mlperf_pkg.findings import Basis
from mlperf_pkg.infra.files import locked

DEFAULT_FOLDER = "summary"


@click.command(name="results", cls=Command)
@click.argument("round_dir", metavar="ROUND_FOLDER", type=PATH)
@options.judged
@options.output_folder_option(
    "Write the summary into FOLDER.", metavar="FOLDER", default=DEFAULT_FOLDER, show_default=True
)
@options.private_ids_option(f" (default: {IDS} in FOLDER)")
@click.option(
    "--verdict",
    type=click.Choice([Basis.OFFICIAL.value, Basis.RULES.value]),
    default=Basis.OFFICIAL.value,
    show_default=True,
    help="Choose which errors keep a result set out of the tables: errors that the official"
    " checker and the written rules share (official), or all errors by the written rules (rules).",
)
@options.flag(
    "--anonymous",
    text="Write private ids instead of the names of submitters and systems, while results are"
    " confidential. This needs --private-ids with a FILE outside FOLDER.",
)
@options.force_option("Overwrite an existing summary; private ids are kept.")
def command(
    *,
    round_dir: str,
    check_options: Options,
    output: Path,
    private_ids: Path | None,
    verdict: str,
    anonymous: bool,
    force: bool,
) -> int:
    """Write the summary of a round for publication.

    ROUND_FOLDER is a folder of submissions, or one submission. FOLDER receives tables by
    division and category: results.html, results.xlsx and results.csv, with energy.csv
    and weak_scaling.csv (HPC) if there are such results. scores.csv has one line per
    result set, with its rank in its table; results.json has everything. The folder
    official has the same files as 'mlperf-pkg score --tables'.

    The tables leave out a result set without a score. They also leave out a result set
    with an error that both the official checker and the written rules find. scores.csv
    and results.json give the reason. The column 'remarks' has the codes of all other
    errors. With '--verdict rules', the tables leave out every result set with an error
    by the written rules. To keep such a result set in the tables, waive the finding in
    mlperf-pkg.yaml.

    Every system has a private id. FILE keeps the ids: when the command is run again, it
    adds the ids of new systems to FILE, and never changes, removes or reuses an id. Use
    the same FILE for every summary of a round. With '--anonymous', the columns that
    name a system, its hardware, size and software, links and notes are empty. Rows are
    in the order of their ids, and the folder official is not written. What could still
    identify a row is printed.

    Exit status: 0 if every result set is in the tables, 1 if something is missing,
    2 if the summary could not be written.

    \b
    Examples:
      mlperf-pkg results training_results_v5.1
      mlperf-pkg results training_results_v5.1 -o week1 --private-ids ids.json
      mlperf-pkg results training_results_v5.1 -o week2 --private-ids ids.json
      mlperf-pkg results training_results_v5.1 --private-ids ids.json --anonymous
    """
    refuse_same(output, private_ids)
    folder = ResultsFolder(output, private_ids or output / IDS, force, anonymous)
    with locked(folder.ids):
        ids = folder.refuse_early((round_dir,))
        checked = check((round_dir,), check_options)
        result, written = folder.write(round_dir, checked, ids, Basis(verdict))
    click.echo(summary(result, written, output, Output().view()), nl=False)
    return int(bool(result.missing))
