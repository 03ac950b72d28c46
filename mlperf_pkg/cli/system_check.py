"""``mlperf-pkg system check``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.cli import options, reporting
from mlperf_pkg.cli.output import Outputs
from mlperf_pkg.cli.rules_folder import rules_option
from mlperf_pkg.commands.system.check import check_descriptions, round_of_systems
from mlperf_pkg.render import FORMATS

_FOLDER = "systems"


@click.command(name="check")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
@options.round_option(options.SYSTEM_ROUND)
@options.usage_option("Apply the rules of MLPerf Training or MLPerf HPC (default: training).")
@rules_option
@reporting.shown
@reporting.failing
@options.written(FORMATS, repeatable=True)
def command(
    *,
    paths: tuple[str, ...],
    round_: str | None,
    usage: str | None,
    showing: reporting.Showing,
    status: reporting.Status,
    target: Outputs,
) -> int:
    """Check system descriptions, systems/<system_desc_id>.json.

    PATH is a description, or a folder in which every *.json is checked (default:
    systems/). Without --round, the round is that of mlperf-pkg.yaml, otherwise that
    of the logs in logs/ beside that folder, otherwise the newest.

    Exit status: 0 if there is no error, 1 if there is one, 2 if a file could not be
    read.

    \b
    Examples:
      mlperf-pkg system check
      mlperf-pkg system check systems/dgx-a100.json --round 2.0
      mlperf-pkg system check systems/ --usage hpc --round 3.0
      mlperf-pkg system check --format concise
    """
    paths = paths or _default()
    target.refuse_early(paths)
    chosen = round_of_systems(options.workspace_options(round_, usage), paths)
    report = check_descriptions(paths, chosen)
    target.write(FORMATS, report, (), showing.view)  # paths are relative to the current folder
    return status(report)


def _default() -> tuple[str]:
    if not Path(_FOLDER).is_dir():
        raise click.UsageError(f"no PATH given, and there is no folder {_FOLDER}/ here")
    return (_FOLDER,)
