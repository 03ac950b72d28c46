"""``mlperf-pkg select``."""

from __future__ import annotations

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FAILED
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.select.formats import SELECT_FORMATS, Selections, State, selections


@click.command(name="select")
@options.checked
@options.written(SELECT_FORMATS)
def command(
    *,
    paths: tuple[str, ...],
    how: Options,
    format_: str,
    target: Output,
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
    target.refuse_early(paths)
    given = selections(check(paths, how))
    target.write(SELECT_FORMATS[format_](given, target.view()))
    return _status(given)


def _status(given: Selections) -> int:
    states = {each.state for each in given.sets}
    if State.INVALID in states:
        return 1
    return FAILED if not states or State.NOT_CHECKED in states else 0
