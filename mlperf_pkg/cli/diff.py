"""``mlperf-pkg diff``."""

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import PATH, Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.diff.formats import DIFF_FORMATS
from mlperf_pkg.commands.diff.reading import compare_paths


@click.command(name="diff", cls=Command)
@click.argument("old", type=PATH)
@click.argument("new", type=PATH)
@click.option(
    "--borrowed-from",
    type=PATH,
    metavar="ROUND_FOLDER",
    help="Search ROUND_FOLDER for the hyperparameters that NEW borrowed. ROUND_FOLDER has the"
    " submissions as they were before the review (default: OLD).",
)
@options.judged
@options.written(DIFF_FORMATS)
def command(
    *, old: str, new: str, borrowed_from: str | None, check_options: Options, target: Output
) -> int:
    """Show what changed from OLD to NEW.

    OLD and NEW are submissions, folders of submissions or of logs, or result sets,
    which may be of different systems or submitters. Diff compares systems and the
    fields of their descriptions, result sets, hyperparameters, runs, scores,
    verdicts, findings and other files. For different rounds, it also reports copied
    runs, resubmitted logs, and Previews that became Available.

    For two versions of one round, diff first lists the changes to each entry in the
    review, with the rules on such changes. These changes are: hyperparameters borrowed
    from another submitter of OLD; another scale, number of nodes, description or code;
    logs or power logs edited, copied, moved or replaced; another score or energy; the
    entry moved to Open, withdrawn or added. If there are many changes, a summary is
    shown that fits on one screen; -v shows all changes. If NEW is one
    submission, OLD may be the whole round.

    Exit status: 0 if nothing changed, 1 if something did, 2 if the comparison could
    not be done.

    \b
    Examples:
      mlperf-pkg diff submitted/ACME review/ACME
      mlperf-pkg diff ACME/results/dgx/bert Other/results/pod/bert
      mlperf-pkg diff logs.old/ logs/ --format json
      mlperf-pkg diff training_results_v5.0 training_results_v5.1
      mlperf-pkg diff submitted/ fixed/ACME
      mlperf-pkg diff submitted/ACME fixed/ACME --borrowed-from submitted/
    """
    inputs = [old, new, borrowed_from] if borrowed_from else [old, new]
    target.refuse_early(inputs)
    changes = compare_paths(old, new, check_options, borrowed_from)
    target.show(changes)
    return int(changes.any)
