"""``mlperf-pkg select``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg import checker
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FAILED
from mlperf_pkg.cli.output import Output
from mlperf_pkg.render.select import SELECT_FORMATS, Selections, State, selections


@click.command(name="select")
@options.checked
@options.written(SELECT_FORMATS)
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
    """Select the runs to submit where more were made than required.

    PATH is as for 'mlperf-pkg check'. By the rules it is the consecutive runs,
    by start time, whose result is closest to the median of all such windows;
    runs that did not converge count as infinite, and an infinite median makes
    the result invalid. Shown are the windows, the median and the files to
    submit; nothing is copied or removed.

    Exit status: 0 if each result set has a valid selection, 1 if the result of
    one is invalid or has too few runs, 2 if it could not be told.

    \b
    Examples:
      mlperf-pkg select logs/
      mlperf-pkg select logs/bert --format json -o selection.json
    """
    target = Output(output, force, verbose)
    target.refuse_early(paths)
    given = selections(checker.check(paths, checker.Options(usage, round_, jobs)))
    target.write(SELECT_FORMATS[format_](given, target.view()))
    return _status(given)


def _status(given: Selections) -> int:
    states = {each.state for each in given.sets}
    if State.INVALID in states:
        return 1
    return FAILED if not states or State.NOT_CHECKED in states else 0
