"""Follow logs while they are written: findings that are certain, evaluations, and the expected end.

``watch`` follows several logs, until each run has ended, is lost or is given up. ``session`` reads
one log as it grows and judges it, ``forecast`` predicts its end, ``events`` puts it into words.
"""

import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from shlex import quote
from time import monotonic, sleep

import click

from mlperf_pkg.checker.plan import choice_for
from mlperf_pkg.checker.values import Options
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.commands.watch.events import EVENT_FORMATS, Lost
from mlperf_pkg.commands.watch.session import Judge, Session
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import is_special
from mlperf_pkg.infra.text import visible
from mlperf_pkg.submission.find import find_input

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

LOST = 1
GIVEN_UP = 2
_OTHER_FILES = 64  # that are open besides the logs
_Display = tuple[Callable[[str], None], Callable[[Sequence[str]], None]]


def watch(
    logs: Sequence[str],
    options: Options,
    *,
    interval_s: float,
    idle_s: float,
    timeout_s: float,
    format_: str,
    refreshing: bool,
    fail_fast: bool,
) -> int:
    """Follow logs, write events to standard output as they happen, and return the exit status.

    It is 0 if every run has ended, 1 if one is lost or has errors, 2 if one is given up.

    ``interval_s`` is the pause between two polls. After ``idle_s`` without news a log is reported
    as silent, after ``timeout_s`` it is given up. ``format_`` is a key of ``EVENT_FORMATS``;
    ``refreshing`` shows a line for each log that is updated in place. ``fail_fast`` ends as soon as
    one run is lost.

    Raises:
        UserError: a log is a folder or a pipe, there are more than can be open at once, the
            rulebook has no such round, or a waiver names an unknown code.
        BrokenPipeError: standard output was closed by its reader.
    """
    sessions = list(_sessions(logs, options, idle_s, timeout_s))
    _allow_open_files(len(sessions))
    with ExitStack() as stack:
        for session in sessions:
            stack.callback(session.close)
        write, refresh = stack.enter_context(display(refreshing=refreshing))
        open_sessions = sessions
        while True:
            for session in open_sessions:
                for event in session.tick():
                    write(EVENT_FORMATS[format_]((session.path, event), datetime.now()))
                    if fail_fast and isinstance(event, Lost):
                        return LOST
            open_sessions = [session for session in open_sessions if session.is_open]
            if not open_sessions:
                return _exit_status(sessions)
            refresh([_status_line(session) for session in open_sessions])
            sleep(interval_s)


def _allow_open_files(logs: int) -> None:
    """Let this process hold all logs open, so that one that is replaced is read to its end first.

    Raises:
        UserError: the system does not let it.
    """
    if not resource:
        return
    needed = logs + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise UserError(
            f"{logs:,} logs are too many, as this process may open only {hard:,} files"
            " (ulimit -n); watch the logs with several commands"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _exit_status(sessions: Sequence[Session]) -> int:
    if any(session.log.lost or session.log.failed for session in sessions):
        return LOST
    if any(session.given_up for session in sessions):
        return GIVEN_UP
    return 0


def _status_line(session: Session) -> str:
    state = "not started"
    progress = session.progress
    if progress:
        state = progress.words(datetime.now())
    return visible(f"{session.path}: {state}")


def _sessions(
    logs: Sequence[str], options: Options, idle_s: float, timeout_s: float
) -> Iterator[Session]:
    waivers = Waivers(options.config.waivers, options.origin)
    waivers.refuse_unknown_codes()
    for log in dict.fromkeys(logs):
        if Path(log).is_dir():
            raise UserError(f"{log}: is a folder; expected log files: {_command_for(log)}")
        if is_special(Path(log)):
            raise UserError(f"{log}: is not a file")
        choice = choice_for(Path(log).parent, options)
        judge = Judge(log, choice.usage, choice.round, waivers)
        yield Session(judge, monotonic, idle_s, timeout_s)


def _command_for(folder: str) -> str:
    """Return the command that watches the logs in a folder, by their names."""
    try:
        paths = [place.path for place in find_input(folder).every_log]
    except UserError:  # the folder has no logs yet
        paths = []
    patterns = set()
    for path in paths:
        if isinstance(path, Path):  # others are in archives
            patterns.add(f"{quote(str(path.parent))}/*{quote(path.suffix)}")
    if not patterns:
        patterns.add(f"{quote(folder.rstrip('/'))}/run_1.log")
    return " ".join(["mlperf-pkg watch", *sorted(patterns)])


# ---- standard output ----------------------------------------------------------------------


@contextmanager
def display(*, refreshing: bool) -> Iterator[_Display]:
    """Yield two functions: to write text that stays, and to update the status lines below it.

    The second raises BrokenPipeError if standard output was closed by its reader, which would go
    unnoticed while a log does not grow.
    """
    if not refreshing:
        yield lambda text: click.echo(text, nl=False), lambda _: _refuse_closed()
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield (
            lambda text: console.print(Text(text), end="", soft_wrap=True),
            lambda lines: live.update(
                Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True
            ),
        )


def _refuse_closed() -> None:
    closed: list[tuple[int, int]] = []
    # There is no poll on Windows, or standard output is not a file of the operating system.
    with suppress(AttributeError, OSError, ValueError):
        waiting = select.poll()
        waiting.register(sys.stdout.fileno(), 0)
        closed = waiting.poll(0)
    if closed:
        raise BrokenPipeError
