"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])

DEFAULT_FOLDER = "logs"

_ROUND = "The round, such as 2.0; without it the tree's name or the runs' own times tell."


def checked(function: _Function) -> _Function:
    """``paths``, ``round_``, ``usage`` and ``jobs``: what is checked, and how."""
    return _together(
        function,
        click.argument("paths", nargs=-1, metavar="[PATH]...", callback=_paths),
        round_option(_ROUND),
        click.option("--usage", type=click.Choice(["training", "hpc"]), help="The rules to apply."),
        jobs_option,
    )


def written(formats: Iterable[str]) -> Callable[[_Function], _Function]:
    """``format_``, ``output``, ``force`` and ``verbose``: what is written, and where."""
    return lambda function: _together(
        function,
        click.option(
            "--format",
            "format_",
            type=click.Choice(list(formats)),
            default="text",
            show_default=True,
            help="How the result is written.",
        ),
        output_options,
        verbose_option,
    )


def output_options(function: _Function) -> _Function:
    """``output`` and ``force``."""
    return _together(
        function,
        click.option(
            "-o",
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write to a file instead of standard output.",
        ),
        click.option("--force", is_flag=True, help="Overwrite files that exist."),
    )


def jobs_option(function: _Function) -> _Function:
    """``jobs``."""
    return click.option(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes; by default one per core.",
    )(function)


def verbose_option(function: _Function) -> _Function:
    """``verbose``."""
    return click.option(
        "-v", "--verbose", is_flag=True, help="Show every run, note and source; fold nothing."
    )(function)


def round_option(text: str) -> Callable[[_Function], _Function]:
    """``round_``, in which ``v2.0`` is ``2.0``."""
    return click.option(
        "--round", "round_", metavar="ROUND", callback=lambda *given: _round(given[2]), help=text
    )


def _round(value: str | None) -> str | None:
    return value if value is None else value.removeprefix("v")


def _paths(ctx: click.Context, _: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths given, else the folder that a workspace has its logs in."""
    if paths or ctx.resilient_parsing:
        return paths
    if not Path(DEFAULT_FOLDER).is_dir():
        raise click.UsageError(
            f"no PATH given, and there is no folder {DEFAULT_FOLDER}/ here: name a log, a folder"
            " of logs or a submission"
        )
    return (DEFAULT_FOLDER,)


def _together(function: _Function, *decorators: Callable[[Any], Any]) -> _Function:
    """All of them applied, the first outermost and so first in the help."""
    for decorate in reversed(decorators):
        function = decorate(function)
    return function
