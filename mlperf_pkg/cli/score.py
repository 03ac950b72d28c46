"""``mlperf-pkg score``."""

from contextlib import nullcontext
from pathlib import Path

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options, Scores, scores
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FOLDER, Command
from mlperf_pkg.cli.options import noted
from mlperf_pkg.cli.output import Outputs, note, refuse_same
from mlperf_pkg.commands.results.official import OFFICIAL_FILES, official_files, refuse_tables
from mlperf_pkg.commands.results.score import SCORE_FORMATS, with_notice
from mlperf_pkg.commands.results.systems import read_ids, with_private_ids
from mlperf_pkg.infra.files import locked, refuse_within, write_together


@click.command(name="score", cls=Command)
@options.checked
@options.bypassing
@options.written(SCORE_FORMATS, many=True)
@click.option(
    "--tables", type=FOLDER, help="Also write the tables of the official summarizer into FOLDER."
)
@options.private_ids_option(" (needs --tables)")
def command(
    *,
    paths: tuple[str, ...],
    check_options: Options,
    target: Outputs,
    tables: Path | None,
    private_ids: Path | None,
) -> int:
    """Show times to train and how each score is computed.

    PATH is as for 'mlperf-pkg check'. For one result set, or with --verbose, score
    shows the minutes of every run, which runs are dropped and why, the olympic mean,
    the factor that multiplies it, and the score. For several result sets, it shows one
    line per set: system, benchmark, score, RCP margin and verdict.

    For a published result set, the published score is shown. From round 2.1 of Training
    and 3.0 of HPC on, the score of any other Closed set is its olympic mean multiplied by
    the factor of its RCP test.

    A line such as "3rd of 41" ranks the score among published results of the same benchmark,
    division and number of accelerators (as in the system description). They are results
    of the same round or, for a new round, of the latest round with the same target.

    --tables needs submissions of one round. It writes the same files as the official
    summarizer: summary, summary_detailed and (HPC) summary_weak_scaling, each as .csv
    and .json, and summary.xlsx. With --private-ids, every system in these files has an
    id; the ids of new systems are added to FILE, and existing ids stay.

    Exit status: 0 if there is a score, 1 if there is none, 2 if the scores could not
    be computed.

    \b
    Examples:
      mlperf-pkg score logs/
      mlperf-pkg score training_results_v5.1
      mlperf-pkg score submissions/ACME --format csv -o scores.csv
      mlperf-pkg score submissions/ACME --tables tables/
      mlperf-pkg score round/ --tables tables/ --private-ids privateid.json
    """
    target.refuse_early(paths)
    if private_ids and not tables:
        raise click.UsageError("--private-ids needs --tables FOLDER")
    if tables:
        refuse_tables(tables, paths, force=target.force)
    if private_ids:
        refuse_within(private_ids, paths)
    written = [tables, *map(tables.joinpath, OFFICIAL_FILES)] if tables else []
    refuse_same(*written, private_ids, *target.files)
    lock = locked(private_ids) if private_ids else nullcontext()
    with lock:
        ids = read_ids(private_ids) if private_ids else None
        checked = noted(check(paths, check_options))
        if tables:
            ids = with_private_ids(paths[0], checked, ids) if ids else None
            files, notes = official_files(checked, ids)
            write_together(tables, files, replace=target.force)
            for text in notes:
                note(text)
    result = scores(checked)
    has_score = any(scored.row.score_minutes is not None for scored in result.sets)
    if has_score:
        result = _with_standings(result, checked)
    if any(output.format == "markdown" for output in target.every):
        result = with_notice(result, checked)
    target.show(result, paths)
    return int(not has_score)


def _with_standings(result: Scores, checked: Checked) -> Scores:
    """Return the scores with their standings; print a note if these cannot be read."""
    from mlperf_pkg.commands.compare.published import with_standings  # noqa: PLC0415 - if needed
    from mlperf_pkg.published.results import PublishedResultsError  # noqa: PLC0415

    try:
        return with_standings(result, checked)
    except PublishedResultsError as error:
        note(str(error))
        return result
