"""``mlperf-pkg check``."""

from __future__ import annotations

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Outputs
from mlperf_pkg.render import FORMATS


@click.command(name="check")
@options.checked
@options.chosen
@options.written(FORMATS, several=True)
def command(
    *,
    paths: tuple[str, ...],
    how: Options,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    target: Outputs,
) -> int:
    """Check logs, result sets, submissions or whole rounds.

    PATH is a log, a folder of logs, a submission (a folder with results/ and
    systems/) or a folder of submissions, here or in a store (s3://...); without
    one it is logs/. Two verdicts are given: that of the official checker and
    that of the written rules.

    Exit status: 0 if no error was found, 1 if one was, 2 if it could not be
    checked. Findings that mlperf-pkg.yaml waives are told, but are no errors.

    \b
    Examples:
      mlperf-pkg check logs/
      mlperf-pkg check training_results_v2.0/ACME
      mlperf-pkg check logs/ --round 2.0 -o report.json
      mlperf-pkg check submissions/ -o - -o report.sarif -o report.xml
      mlperf-pkg check submissions/ --ignore CODE,REPO102
      mlperf-pkg check s3://bucket/ACME --scheduler tcp://10.0.0.1:8786
    """
    target.refuse_early(paths)
    report = check(paths, how).report.only(select, ignore)
    target.write(FORMATS, report, paths)
    return int(any(finding.is_error for finding in report.findings))
