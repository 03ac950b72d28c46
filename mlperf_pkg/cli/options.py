"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from mlperf_pkg.checker import Options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.config import CONFIG_NAME, read_config_file

_Function = TypeVar("_Function", bound=Callable[..., Any])

DEFAULT_FOLDER = "logs"

_ROUND = "The round, such as 2.0; without it the tree's name or the runs' own times tell."


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """``paths``, and how they are ``judged``: what is checked."""
    return _together(
        function,
        click.argument("paths", nargs=-1, metavar="[PATH]...", callback=_paths),
        judged,
    )


def judged(function: Callable[..., Any]) -> Callable[..., Any]:
    """``how`` (``checker.Options``): how it is checked."""
    jobs = click.option(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes; by default one per core.",
    )
    return _ruled(function, jobs)


def ruled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``how`` as for ``judged``, in one process."""
    return _ruled(function)


def _ruled(function: Callable[..., Any], *between: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(function)
    def with_options(
        round_: str | None,
        usage: str | None,
        config: Path | None,
        jobs: int | None = None,
        **more: Any,
    ) -> Any:
        return function(how=_how(round_, usage, jobs, config), **more)

    return _together(
        with_options,
        round_option(_ROUND),
        click.option("--usage", type=click.Choice(["training", "hpc"]), help="The rules to apply."),
        *between,
        click.option(
            "--config",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help=f"Round, usage and waivers; by default {CONFIG_NAME} of this folder.",
        ),
    )


def _how(round_: str | None, usage: str | None, jobs: int | None, config: Path | None) -> Options:
    """What is checked never configures its own check: only this folder or the user does."""
    file = config or Path(CONFIG_NAME)
    if config is None and not file.exists():
        return Options(usage, round_, jobs)
    return Options(usage, round_, jobs, read_config_file(file), str(file))


def chosen(function: _Function) -> _Function:
    """``select`` and ``ignore``: prefixes of the codes that are told, and that are not."""
    return _together(
        function,
        _codes("--select", "Only findings whose code begins so; repeatable, or with commas."),
        _codes("--ignore", "No findings whose code begins so. The verdicts stay what they are."),
    )


def _codes(name: str, text: str) -> Callable[[_Function], _Function]:
    return click.option(
        name,
        multiple=True,
        metavar="CODES",
        callback=lambda *given: _prefixes(given[2]),
        help=text,
    )


def _prefixes(given: Iterable[str]) -> tuple[str, ...]:
    from mlperf_pkg.codes import known_prefix  # noqa: PLC0415 - reads every explanation

    return tuple(known_prefix(part.strip()) for each in given for part in each.split(","))


def written(
    formats: Iterable[str],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``format_`` and ``target`` (``Output``): how the result is written, and where."""
    return lambda function: _together(
        _with_target(function),
        click.option(
            "--format",
            "format_",
            type=click.Choice(list(formats)),
            default="text",
            show_default=True,
            help="How the result is written.",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Write to a file instead of standard output.",
        ),
        click.option("--force", is_flag=True, help="Overwrite files that exist."),
        verbose_option,
    )


def _with_target(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def with_target(output: Path | None, force: bool, verbose: bool, **more: Any) -> Any:
        return function(target=Output(output, force, verbose), **more)

    return with_target


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
