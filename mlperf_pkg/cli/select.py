"""``mlperf-pkg select``."""

import click

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FAILED, Command
from mlperf_pkg.cli.options import noted
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.select.select import SELECT_FORMATS, selections


@click.command(name="select", cls=Command)
@options.checked
@options.written(SELECT_FORMATS)
def command(*, paths: tuple[str, ...], check_options: Options, target: Output) -> int:
    """Select the runs to submit if there are more than required.

    PATH is as for 'mlperf-pkg check'. If there are too many runs, the rules choose
    consecutive runs (by start time), called a window: they choose the window whose
    result is closest to the median of all windows. The time of a run that did not
    converge counts as infinite, and an infinite median makes the result invalid. Select
    shows the windows, the median and the files to submit; it copies and removes nothing.

    Exit status: 0 if every result set has a valid selection, 1 if a result set is
    invalid, was not checked or has too few runs, 2 if no selection could be made.

    \b
    Examples:
      mlperf-pkg select logs/
      mlperf-pkg select logs/bert --format json -o selection.json
    """
    target.refuse_early(paths)
    result = selections(noted(check(paths, check_options)))
    target.show(result)
    states = {selected.state for selected in result.sets}
    if states <= {"not_checked"}:
        return FAILED
    return int("invalid" in states or "not_checked" in states)
