"""``mlperf-pkg rcp lint``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.rcp_options import round_option
from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.commands.rcp.custom import benchmarks_in
from mlperf_pkg.commands.rcp.mistakes import (
    LINT_FORMATS,
    Mistakes,
    mistakes_of_file,
    mistakes_of_package,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import visible


@command.command(name="lint")
@click.argument("file", required=False, type=LocalPath(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--benchmark",
    metavar="NAME",
    shell_complete=completion.benchmarks,
    help="Check only this benchmark (default with FILE: that of its points).",
)
@round_option
@options.written(LINT_FORMATS)
def lint(
    *,
    file: Path | None,
    benchmark: str | None,
    round_: str | None,
    usage: str | None,
    format_: str,
    target: Output,
) -> int:
    """Find mistakes in the data of reference points.

    FILE has points in the format of mlperf-logging. Without FILE, check the points of
    the installed mlperf-logging. Mistakes are a run far from the others (outlier),
    fewer than 2N runs where a submission has N (few_runs), runs that are all equal
    (equal_runs), another benchmark than that of the file (misnamed), and a benchmark
    that the round does not have (unused).

    Exit status: 0 if there are no mistakes except known ones, 1 if there are others, 2
    if the points could not be read.

    \b
    Examples:
      mlperf-pkg rcp lint
      mlperf-pkg rcp lint --round 4.1 --verbose
      mlperf-pkg rcp lint rcps_llama31_8b.json
    """
    target.refuse_early([str(file)] if file else [])
    result = _of_file(file, usage, round_, benchmark) if file else None
    result = result or mistakes_of_package(usage, round_, benchmark)
    target.write(LINT_FORMATS[format_](result, target.view()))
    return int(result.fails)


def _of_file(
    file: Path, usage: str | None, round_name: str | None, benchmark: str | None
) -> Mistakes:
    names = benchmarks_in(file)
    if benchmark is None and len(names) != 1:
        problem = f"points of {', '.join(map(visible, names))}" if names else "no reference point"
        raise UserError(f"{visible(str(file))}: {problem}; expected points of one benchmark")
    return mistakes_of_file(file, usage, round_name, benchmark or names[0])
