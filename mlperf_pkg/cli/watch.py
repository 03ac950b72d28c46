"""``mlperf-pkg watch``."""

import sys
from math import inf, isnan
from typing import Any

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import PATH, Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.cli.streams import stop_cleanly
from mlperf_pkg.commands.watch import watch
from mlperf_pkg.commands.watch.events import EVENT_FORMATS


class _NumberRange(click.FloatRange):
    """A ``click.FloatRange`` that refuses NaN, which no bound excludes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with a usage error where it is not one."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


@click.command(name="watch", cls=Command)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...", type=PATH)
@options.judged
@options.flag("--fail-fast", text="Exit as soon as a run can no longer be valid.")
@click.option(
    "--interval",
    type=_NumberRange(min=0.05, max=3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Read new lines every SECONDS.",
)
@click.option(
    "--idle",
    type=_NumberRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="MINUTES",
    help="Report a log that has not grown for MINUTES.",
)
@click.option(
    "--timeout",
    type=_NumberRange(min=0, min_open=True),
    metavar="MINUTES",
    help="Stop following a log that has not grown for MINUTES (default: never stop).",
)
@options.written(EVENT_FORMATS)
def command(
    *,
    logs: tuple[str, ...],
    check_options: Options,
    fail_fast: bool,
    interval: float,
    idle: float,
    timeout: float | None,
    target: Output,
) -> int:
    """Follow logs while they are written.

    LOG is the log of one run; it need not exist yet. Watch reports findings as soon
    as no later record can change them, so you know hours before the end of a run if
    the run cannot become valid. Watch also reports each evaluation, and when the run
    is expected to end if it converges like the reference. A file that is truncated or
    replaced is followed again from its start. Text has a line for each event, JSON
    an object.

    Exit status: 0 if every run ended with success and without an error, 1 if a run
    cannot become valid or has an error at its end, 2 if a log could not be followed to its end.

    \b
    Examples:
      mlperf-pkg watch logs/run_1.log
      mlperf-pkg watch logs/*.log --fail-fast
      mlperf-pkg watch run.log --timeout 60 -o json:events.jsonl
    """
    target.refuse_early(logs)
    is_text = target.format == "text"
    refreshing = is_text and target.file is None and sys.stdout.isatty()
    with stop_cleanly(), target.as_stdout():
        return watch(
            logs,
            check_options,
            interval_s=interval,
            idle_s=60 * idle,
            timeout_s=60 * timeout if timeout else inf,
            format_=target.format,
            refreshing=refreshing,
            fail_fast=fail_fast,
        )
