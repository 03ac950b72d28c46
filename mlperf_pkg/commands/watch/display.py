"""Write events as they happen, to a pipe or to a terminal with a status line per log."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.live import Live

Write = Callable[[str], None]
Refresh = Callable[[Sequence[str]], None]


@contextmanager
def display(*, refreshing: bool) -> Iterator[tuple[Write, Refresh]]:
    """Yield two functions: to write text that stays, and to update the status lines below it.

    The second raises BrokenPipeError if standard output was closed by its reader, which would go
    unnoticed while a log does not grow.
    """
    if not refreshing:
        yield _write, lambda _: _refuse_closed()
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield (
            lambda text: console.print(Text(text), end="", soft_wrap=True),
            lambda lines: _refresh(live, Text("\n".join(lines), no_wrap=True, overflow="ellipsis")),
        )


def _refresh(live: Live, text: object) -> None:
    live.update(text, refresh=True)  # type: ignore[arg-type]


def _refuse_closed() -> None:
    if not hasattr(select, "poll"):  # Windows
        return
    waiting = select.poll()
    try:
        waiting.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):  # not a file of the operating system
        return
    if waiting.poll(0):
        raise BrokenPipeError


def _write(text: str) -> None:
    click.echo(text, nl=False)
