"""``mlperf-pkg build``."""

from pathlib import Path

import click
from msgspec.structs import replace

from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FOLDER, Command, LocalPath, reads
from mlperf_pkg.cli.output import Output, say
from mlperf_pkg.commands.builder import prepare as preparing
from mlperf_pkg.commands.builder.configuration import config_text, explained
from mlperf_pkg.commands.builder.plan import BYPASSES
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.commands.builder.writing import write_tree
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.errors import UserError
from mlperf_pkg.results.report import Report

_ADVICE = (
    ". Fix the errors, or use '--leave-out SYSTEM/BENCHMARK' to leave out one result set,"
    " '--invalid drop' to leave out all sets that are not valid, or '--invalid keep' to build"
    " them anyway"
)


@click.command(name="build", cls=Command)
@click.argument("workspace", default=".", type=FOLDER)
@options.division_option(
    "Build only this division and keep the results of the other division (default: build both)."
)
@click.option(
    "--logs",
    type=LocalPath(),
    metavar="PATH",
    help="Read the raw logs from PATH, a folder or an archive (default: logs/, else WORKSPACE).",
)
@click.option(
    "--systems", type=FOLDER, help="Read the system descriptions from FOLDER (default: systems/)."
)
@click.option(
    "-o", "--output", type=FOLDER, help="Write the submission into FOLDER (default: submissions/)."
)
@options.round_option(options.ROUND)
@options.repeatable(
    "--leave-out",
    metavar="SYSTEM/BENCHMARK",
    text="Leave out this result set (HPC: SYSTEM/weak/BENCHMARK)",
)
@options.flag(
    "--choose-runs", text="Submit the runs that 'mlperf-pkg select' chooses if there are too many."
)
@options.invalid_option
@options.flag(
    "--as-open", text="Submit Closed logs as Open if the description of their system says Open."
)
@options.bypass_options(*BYPASSES)
@options.flag(
    "--allow-outside",
    text="Copy the code and extra files that mlperf-pkg.yaml names, even from outside WORKSPACE.",
)
@options.force_option(
    "Replace a submission that 'build' wrote, unless its files were changed since. With"
    " --division, replace only the results of that division."
)
@options.flag("-n", "--dry-run", text="Show the plan and write nothing.")
@options.flag(
    "--explain", text="Print the plan in the format of mlperf-pkg.yaml, and write nothing."
)
@reads("usage")
@options.gathered(preparing.Order, "order")
def command(
    *,
    workspace: Path,
    logs: Path | None,
    systems: Path | None,
    output: Path | None,
    order: preparing.Order,
    force: bool,
    dry_run: bool,
    explain: bool,
    **bypasses: bool,
) -> int:
    """Build a submission from raw logs and system descriptions.

    The logs may have any names and be in any folders, compressed or in archives.
    Runs are grouped by system, benchmark and division, sorted by start time and
    copied into the output folder as
    <submitter>/results/<system>/<benchmark>/result_<number>.txt. System descriptions
    and tables of results are written too.

    To which system a log belongs is read from mlperf-pkg.yaml, else from the name of a
    folder, else from submission_platform in the log, else from the numbers of nodes and
    accelerators in the log if only one system has these numbers. HPC logs below a
    folder named weak are of weak scaling, all others of strong scaling.

    With --rcp-bypass, the file package_checker_params asks reviewers to accept the
    result sets that fail the RCP test. With --seed-checker-bypass, it does so for the
    sets that fail the seed test.

    With --division, the results of the other division stay in the submission,
    unchanged.

    Exit status: 0 if the submission was built (or would be), 1 if it is not valid, 2
    if it could not be built.

    \b
    Examples:
      mlperf-pkg build --division closed
      mlperf-pkg build --division open
      mlperf-pkg build --dry-run
      mlperf-pkg build --explain > explained.yaml
      mlperf-pkg build --leave-out dgx-a100/bert --force
      mlperf-pkg build --invalid drop
      mlperf-pkg build work --logs /scratch/runs --output /scratch/submissions
    """
    chosen_bypasses = [flag for flag in BYPASSES if bypasses[options.parameter(flag)]]
    folders = Folders.of(workspace, logs, systems, output)
    prepared = preparing.prepare(folders, replace(order, bypasses=chosen_bypasses))
    plan = prepared.plan
    if explain:
        Output().write(config_text(explained(prepared.workspace, plan)))
    else:
        Output().write(preparing.plan_text(prepared, logs=dry_run))
    say("note", prepared.notes)
    if prepared.lost:
        say("error", prepared.refusals)
        raise UserError(prepared.lost)
    if prepared.refusals:
        say("error", prepared.refusals)
        if plan.configuration:
            path = folders.workspace / CONFIG_NAME
            click.echo(f"Complete the following lines, and save them as {path}:", err=True)
            click.echo(plan.configuration, err=True)
        advice = "" if plan.problems else _ADVICE
        click.echo(f"nothing was built{advice}", err=True)
        return 1
    say("kept", prepared.kept)
    if not dry_run and not explain:
        report = _write(prepared, order, force=force)
        Output().write(preparing.built_text(prepared, report))
    return 0


def _write(prepared: preparing.Prepared, order: preparing.Order, *, force: bool) -> Report:
    """Write the tree, which must be valid unless the order keeps what is not; return its check."""
    reports: list[Report] = []

    def accept(tree: Path) -> None:
        keeps_invalid = order.invalid == "keep"
        reports.append(preparing.accept(prepared, tree, keeps_invalid=keeps_invalid))

    division = prepared.plan.division
    write_tree(prepared.target, prepared.files, accept, force=force, division=division)
    return reports[0]
