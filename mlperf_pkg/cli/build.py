"""``mlperf-pkg build``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.types import Choice, LocalPath
from mlperf_pkg.commands.builder import show
from mlperf_pkg.commands.builder.accept import accepts
from mlperf_pkg.commands.builder.explain import explained
from mlperf_pkg.commands.builder.judge import BYPASSES
from mlperf_pkg.commands.builder.prepare import Order, Prepared, prepare
from mlperf_pkg.commands.builder.template import config_text
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.commands.builder.writing import write_tree
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.model import DIVISIONS

_FOLDER = LocalPath(file_okay=False, path_type=Path)
_MEND = (
    ": mend this, or leave a result set out with --leave-out SYSTEM/BENCHMARK,"
    " or build all the same with --keep-invalid"
)


@click.command(name="build")
@click.argument("workspace", default=".", type=_FOLDER)
@click.option("--division", type=Choice(DIVISIONS), help="Only this division; else all.")
@click.option("--logs", type=_FOLDER, help="The raw logs; by default logs/, else WORKSPACE.")
@click.option("--systems", type=_FOLDER, help="The system descriptions; by default systems/.")
@click.option("-o", "--output", type=_FOLDER, help="By default submissions/.")
@options.round_option("The round, such as 2.0; else the tree's name or the runs' times tell.")
@click.option(
    "--leave-out", multiple=True, metavar="SYSTEM/BENCHMARK", help="Not this set; repeatable."
)
@click.option("--select", is_flag=True, help="Of too many runs take those of the median window.")
@click.option("--keep-invalid", is_flag=True, help="Build what is not valid all the same.")
@click.option("--rcp-bypass", is_flag=True, help="Ask for a review of sets that fail the RCP test.")
@click.option("--seed-checker-bypass", is_flag=True, help="The same for the seed test.")
@click.option("--force", is_flag=True, help="Replace a tree that this command has built.")
@click.option("-n", "--dry-run", is_flag=True, help="Show the plan and write nothing.")
@click.option("--explain", is_flag=True, help="Print the plan as mlperf-pkg.yaml, write nothing.")
def command(
    *,
    workspace: Path,
    division: str | None,
    logs: Path | None,
    systems: Path | None,
    output: Path | None,
    round_: str | None,
    leave_out: tuple[str, ...],
    select: bool,
    keep_invalid: bool,
    force: bool,
    dry_run: bool,
    explain: bool,
    **bypasses: bool,
) -> int:
    """Build a submission from raw logs and system descriptions.

    The logs may have any names and lie in any folders. Runs are grouped by
    system, benchmark and division and copied, by start time, to OUTPUT/
    <submitter>/results/<system>/<benchmark>/result_<number>.txt, with the
    descriptions and the results tables. Which system a log belongs to is told by
    mlperf-pkg.yaml, a folder's name, submission_platform, or there is only one.

    Exit status: 0 if it was built (or would be), 1 if it is not valid, 2 if it
    could not be done.

    \b
    Examples:
      mlperf-pkg build --division closed
      mlperf-pkg build --dry-run
      mlperf-pkg build --explain > mlperf-pkg.yaml
      mlperf-pkg build --leave-out dgx-a100/bert --force
      mlperf-pkg build work --logs /scratch/runs --output /scratch/submissions
    """
    asked = [flag for flag in BYPASSES if bypasses[flag.replace("-", "_")]]
    prepared = prepare(
        Folders.of(workspace, logs, systems, output),
        Order(division, round_, leave_out, asked, keep_invalid, select),
    )
    plan = prepared.plan
    Output().write(
        config_text(explained(prepared.workspace, plan))
        if explain
        else show.plan_text(prepared, logs=dry_run)
    )
    _say("note", prepared.notes)
    if prepared.refusals:
        return _refuse(prepared)
    _say("kept although not valid", prepared.kept)
    if not dry_run and not explain:
        accept = () if keep_invalid else (accepts(prepared),)
        write_tree(prepared.target, prepared.files, *accept, force=force)
        Output().write(show.built_text(prepared))
    return 0


def _refuse(prepared: Prepared) -> int:
    _say("error", prepared.refusals)
    click.echo(f"nothing was built{_MEND if prepared.mendable else ''}", err=True)
    return 1


def _say(kind: str, messages: Iterable[str]) -> None:
    for message in messages:
        for line in f"{kind}: {message}".split("\n"):
            click.echo(visible(line), err=True)
