"""``mlperf-pkg check``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg import checker
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.diagnostics import Severity
from mlperf_pkg.render import FORMATS


@click.command(name="check")
@options.checked
@options.written(FORMATS)
def command(
    *,
    paths: tuple[str, ...],
    round_: str | None,
    usage: str | None,
    jobs: int | None,
    format_: str,
    output: Path | None,
    force: bool,
    verbose: bool,
) -> int:
    """Check logs, result sets, submissions or whole rounds.

    PATH is a log, a folder of logs, a submission (a folder with results/ and
    systems/) or a folder of submissions; without one it is logs/. Two verdicts
    are given: that of the official checker and that of the written rules.

    Exit status: 0 if no error was found, 1 if one was, 2 if it could not be
    checked.

    \b
    Examples:
      mlperf-pkg check logs/
      mlperf-pkg check training_results_v2.0/ACME
      mlperf-pkg check logs/ --round 2.0 --format json -o report.json
    """
    target = Output(output, force, verbose)
    target.refuse_early(paths)
    report = checker.check(paths, checker.Options(usage, round_, jobs)).report
    target.write(FORMATS[format_](report, target.view()))
    return int(any(finding.severity is Severity.ERROR for finding in report.findings))
