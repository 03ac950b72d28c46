"""The argument of the commands that compare two rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mlperf_pkg.cli import completion

_BOTH = 2


def sides_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument ``sides``: an old and a new round, or neither."""
    return click.argument(
        "sides",
        nargs=-1,
        metavar="[OLD NEW]",
        callback=_sides,
        type=click.Path(),
        shell_complete=completion.files_or_rounds,
    )(function)


def _sides(ctx: click.Context, _: click.Parameter, sides: tuple[str, ...]) -> tuple[str, ...]:
    if len(sides) in (0, _BOTH) or ctx.resilient_parsing:
        return sides
    raise click.UsageError("expected OLD and NEW, or neither for all published rounds")
