"""``mlperf-pkg watch``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import click
from msgspec import Struct

from mlperf_pkg.checker.plan import round_for
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FAILED
from mlperf_pkg.cli.types import Choice
from mlperf_pkg.commands.watch.display import display
from mlperf_pkg.commands.watch.events import Event, Lost, State
from mlperf_pkg.commands.watch.judge import Judge
from mlperf_pkg.commands.watch.session import Session
from mlperf_pkg.commands.watch.show import EVENT_FORMATS, duration, status
from mlperf_pkg.errors import UserError

_SECONDS = 60.0


@click.command(name="watch")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@options.ruled
@click.option("--fail-fast", is_flag=True, help="Exit as soon as a run is lost.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05, max=3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the files are looked at.",
)
@click.option(
    "--idle",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="MINUTES",
    help="Tell when a log has brought nothing for so long.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MINUTES",
    help="Give up a log that has brought nothing for so long; by default never.",
)
@click.option(
    "--format",
    "format_",
    type=Choice(list(EVENT_FORMATS)),
    default="text",
    show_default=True,
    help="Lines of text, or one JSON object a line.",
)
def command(
    *,
    logs: tuple[str, ...],
    how: Options,
    fail_fast: bool,
    interval: float,
    idle: float,
    timeout: float | None,
    format_: str,
) -> int:
    """Follow logs while they are written.

    LOG is the log of one run; it need not be there yet. Told are, as soon as
    they are certain, findings that no later record can mend, so that a run that
    is lost is known hours before its end; each evaluation; and when the run
    should end, as the reference converges. A file that is truncated or replaced
    is followed again from its head.

    Exit status: 0 if every run has stopped with success and without an error,
    1 if one is lost, 2 if a log could not be followed to its end.

    \b
    Examples:
      mlperf-pkg watch logs/run_1.log
      mlperf-pkg watch logs/*.log --fail-fast
      mlperf-pkg watch run.log --format json --timeout 60 > events.jsonl
    """
    patience = _Patience(idle * _SECONDS, timeout * _SECONDS if timeout else None)
    refreshing = format_ == "text" and sys.stdout.isatty()
    watched = [_Watched(session, patience) for session in _sessions(logs, how)]
    with ExitStack() as stack:
        for each in watched:
            stack.callback(each.session.close)
        write, refresh = stack.enter_context(display(refreshing=refreshing))
        while True:
            for event in (event for each in watched for event in each.events()):
                write(EVENT_FORMATS[format_](event, datetime.now()))
                if fail_fast and isinstance(event, Lost):
                    return 1
            if all(each.over for each in watched):
                break
            refresh([each.status() for each in watched if not each.over])
            time.sleep(interval)
    if any(each.session.lost for each in watched):
        return 1
    return 0 if all(each.session.done for each in watched) else FAILED


def _sessions(logs: Sequence[str], how: Options) -> Iterator[Session]:
    waivers = Waivers(how.config.waivers, how.origin)
    waivers.check_codes()
    for log in dict.fromkeys(logs):
        if Path(log).is_dir():
            raise UserError(f"{log}: is a folder; name the logs in it")
        usage, round_, _ = round_for(Path(log), how)
        yield Session(Judge(log, usage, round_, waivers))


class _Patience(Struct, frozen=True):
    """Seconds of silence after which it is told, and after which a log is given up."""

    idle: float
    timeout: float | None


class _Watched(Struct):
    """A log, and whether it is silent or given up."""

    session: Session
    patience: _Patience
    silent: bool = False
    given_up: bool = False

    @property
    def over(self) -> bool:
        return self.session.done or self.given_up

    def events(self) -> Iterator[Event]:
        if self.over:
            return
        yield from self.session.tick()
        if not self.session.done:
            yield from self._silence()

    def _silence(self) -> Iterator[Event]:
        seconds, path = self.session.silent, self.session.path
        said = f"nothing new for {duration(seconds / _SECONDS)}"
        if self.patience.timeout is not None and seconds >= self.patience.timeout:
            self.given_up = True
            yield State(path, "given_up", f"{said}: given up")
        elif seconds >= self.patience.idle and not self.silent:
            yield State(path, "silent", said)
        self.silent = seconds >= self.patience.idle

    def status(self) -> str:
        return status(self.session.path, self.session.progress, datetime.now())
