"""``mlperf-pkg review objections``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.commands.review.objection_text import OBJECTION_FORMATS


@click.command(name="objections")
@click.argument("file", type=LocalPath(dir_okay=False, path_type=Path))
@click.argument("tree", type=click.Path(), required=False)
@options.judged
@click.option("--id", "ids", multiple=True, metavar="ID", help="Change this objection; repeatable.")
@click.option("--state", metavar="STATE", help="Set the state of the objections with --id.")
@click.option("--issue", metavar="URL", help="Record the issue of the objection.")
@click.option(
    "--percent",
    type=float,
    metavar="P",
    help="Record the total difference; expected with the state waived.",
)
@click.option("--note", metavar="TEXT", help="Record a note.")
@options.written(OBJECTION_FORMATS)
def command(
    *,
    file: Path,
    tree: str | None,
    check_options: Options,
    ids: tuple[str, ...],
    state: str | None,
    issue: str | None,
    percent: float | None,
    note: str | None,
    format_: str,
    target: Output,
) -> int:
    """Show or change the states of objections.

    FILE is an objections.yaml written by 'review objection -o'. States are drafted,
    filed, acknowledged, fix_required, fixed, withdrawn and waived; only differences
    below 2 % may be waived.

    TREE is the corrected round, or a submission. An objection is settled if its
    findings are gone, and removed if its result sets and descriptions are gone, as
    after a withdrawal. New errors, which no objection names, follow.

    Exit status: 0 if no objection stands, except withdrawn and waived ones, 1 if one
    does, 2 if the command could not do its work.

    \b
    Examples:
      mlperf-pkg review objections objections/objections.yaml
      mlperf-pkg review objections o.yaml --id a-1 --state filed
      mlperf-pkg review objections o.yaml --id a-1 --state waived --percent 1.2
      mlperf-pkg review objections o.yaml training_results_v5.1
    """
    from mlperf_pkg.commands.review.objections import (  # noqa: PLC0415 - slow to import
        Change,
        Judged,
        Outcome,
        change_states,
        examine,
        judge,
        read_entries,
        state_of,
    )

    if bool(ids) != bool(state):
        raise click.UsageError("--id and --state belong together")
    if not state and not (issue is None and percent is None and note is None):
        raise click.UsageError("--issue, --percent and --note need --id and --state")
    target.refuse_early(tuple(filter(None, [tree])))
    if state:
        change_states(file, ids, Change(state_of(state, "--state"), issue, percent, note))
    entries = read_entries(file)
    if tree is None:
        outcome = Outcome(tuple(map(Judged, entries)))
    else:
        outcome = judge(entries, examine(tree, check_options))
    target.write(OBJECTION_FORMATS[format_](outcome, target.view()))
    return int(not outcome.is_settled)
