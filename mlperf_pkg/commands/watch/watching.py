"""Follow several logs until each run has ended, is lost or is given up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from shlex import quote

from msgspec import Struct

from mlperf_pkg.checker.plan import choice_for
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.commands.watch.display import display
from mlperf_pkg.commands.watch.events import Event, Lost, State
from mlperf_pkg.commands.watch.judge import Judge
from mlperf_pkg.commands.watch.session import Session
from mlperf_pkg.commands.watch.show import EVENT_FORMATS, duration, status
from mlperf_pkg.errors import UserError
from mlperf_pkg.submission.find import find_input

_SECONDS_PER_MINUTE = 60.0


class Outcome(Enum):
    """How following the logs ended."""

    SUCCESS = auto()
    LOST = auto()
    GIVEN_UP = auto()


class WatchOptions(Struct, frozen=True, kw_only=True):
    """The options of ``watch``.

    ``interval_s`` is the pause between two polls. After ``idle_s`` without news a log is reported
    as silent, after ``timeout_s`` (None: never) it is given up. ``format`` is a key of
    ``EVENT_FORMATS``; ``refreshing`` shows a line for each log that is updated in place.
    ``fail_fast`` ends as soon as one run is lost.
    """

    interval_s: float
    idle_s: float
    timeout_s: float | None
    format: str
    refreshing: bool
    fail_fast: bool


def watch(logs: Sequence[str], options: Options, watch_options: WatchOptions) -> Outcome:
    """Follow logs and write events to standard output as they happen.

    Raises:
        UserError: a log is a folder, the rulebook has no such round, or a waiver names an unknown
            code.
        BrokenPipeError: standard output was closed by its reader.
    """
    followed = [_Followed(session, watch_options) for session in _sessions(logs, options)]
    with ExitStack() as stack:
        for log in followed:
            stack.callback(log.session.close)
        write, refresh = stack.enter_context(display(refreshing=watch_options.refreshing))
        while True:
            for event in (event for log in followed for event in log.events()):
                write(EVENT_FORMATS[watch_options.format](event, datetime.now()))
                if watch_options.fail_fast and isinstance(event, Lost):
                    return Outcome.LOST
            if all(log.over for log in followed):
                return _outcome([log.session for log in followed])
            refresh([log.status() for log in followed if not log.over])
            time.sleep(watch_options.interval_s)


def _outcome(sessions: Sequence[Session]) -> Outcome:
    if any(session.lost for session in sessions):
        return Outcome.LOST
    return Outcome.SUCCESS if all(session.done for session in sessions) else Outcome.GIVEN_UP


def _sessions(logs: Sequence[str], options: Options) -> Iterator[Session]:
    waivers = Waivers(options.config.waivers, options.origin)
    waivers.refuse_unknown_codes()
    for log in dict.fromkeys(logs):
        if Path(log).is_dir():
            raise UserError(f"{log}: is a folder; expected log files: {_command_for(log)}")
        choice = choice_for(Path(log).parent.resolve(), options)
        round_ = choice.round.name if choice.round else None
        yield Session(Judge(log, choice.usage, round_, waivers))


def _command_for(folder: str) -> str:
    """Return the command that watches the logs in a folder, by their names."""
    try:
        paths = [place.path for place in find_input(folder).every_log]
    except UserError:  # the folder has no logs yet
        paths = []
    logs = [path for path in paths if isinstance(path, Path)]  # others are in archives
    patterns = {f"{quote(str(log.parent))}/*{quote(log.suffix)}" for log in logs}
    example = f"{quote(folder.rstrip('/'))}/run_1.log"
    return " ".join(["mlperf-pkg watch", *sorted(patterns or {example})])


class _Followed(Struct):
    """A log, and whether it is silent or given up."""

    session: Session
    watch_options: WatchOptions
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
        message = f"nothing new for {duration(seconds / _SECONDS_PER_MINUTE)}"
        if self.watch_options.timeout_s is not None and seconds >= self.watch_options.timeout_s:
            self.given_up = True
            yield State(path, "given_up", f"{message}: given up")
        elif seconds >= self.watch_options.idle_s and not self.silent:
            yield State(path, "silent", message)
        self.silent = seconds >= self.watch_options.idle_s

    def status(self) -> str:
        return status(self.session.path, self.session.progress, datetime.now())
