"""``mlperf-pkg verify-round``."""

from __future__ import annotations

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.verify_round.steps import steps_of, text
from mlperf_pkg.errors import UserError


@click.command(name="verify-round")
@click.argument("folder", metavar="DIR", type=click.Path())
@options.judged
@options.bypassing
@options.verbose_option
def command(*, folder: str, check_options: Options, verbose: bool) -> int:
    """Say whether submissions pass the official checkers.

    This is what the scripts verify_for_v*.sh are for. DIR is a submission or a folder of
    submissions. For each one: the verdicts of the
    package checker, with the flags of package_checker_params, and of the repository
    checker, and how many result sets the summarizer gives a score. The errors that
    fail it follow. What the written rules forbid beyond that is not shown here:
    'mlperf-pkg check' shows both.

    Exit status: 0 if all submissions pass both checkers, 1 if one does not, 2 if the
    check could not be done. The official scripts also exit with 0 if the checkers find
    errors.

    \b
    Examples:
      mlperf-pkg verify-round ACME --round 5.1
      mlperf-pkg verify-round training_results_v5.1
      mlperf-pkg verify-round ACME --usage hpc --round 3.0.0
    """
    steps = steps_of(check((folder,), check_options))
    if not steps:
        raise UserError(f"{folder}: no submission; expected <submitter>/systems and results")
    output = Output(verbose=verbose)
    output.write(text(steps, output.view()))
    return int(not all(item.passed for item in steps))
