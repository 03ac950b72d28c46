"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import completion
from mlperf_pkg.cli.destinations import destinations
from mlperf_pkg.cli.output import Output, Outputs
from mlperf_pkg.cli.progress import progress
from mlperf_pkg.cli.types import Choice, LocalPath
from mlperf_pkg.config import CONFIG_NAME, read_config_file

_Function = TypeVar("_Function", bound=Callable[..., Any])

DEFAULT_FOLDER = "logs"

_ROUND = "The round, such as 2.0; without it the tree's name or the runs' own times tell."


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """``paths``, and how they are ``judged``: what is checked."""
    return _together(
        function,
        click.argument("paths", nargs=-1, metavar="[PATH]...", callback=_paths, type=click.Path()),
        judged,
    )


def judged(function: Callable[..., Any]) -> Callable[..., Any]:
    """``how`` (``checker.Options``): how it is checked."""
    return _ruled(function, jobs_option, _scheduler_option)


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
        scheduler: str | None = None,
        **more: Any,
    ) -> Any:
        if jobs and scheduler:
            raise click.UsageError("--jobs and --scheduler exclude each other")
        how = replace(_how(round_, usage, jobs, config), scheduler=scheduler)
        with progress() as observer:
            return function(how=replace(how, observer=observer), **more)

    return _together(
        with_options,
        round_option(_ROUND),
        click.option("--usage", type=Choice(["training", "hpc"]), help="The rules to apply."),
        *between,
        click.option(
            "--config",
            type=LocalPath(dir_okay=False, path_type=Path),
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
        shell_complete=completion.prefixes,
        callback=lambda *given: _prefixes(given[2]),
        help=text,
    )


def _prefixes(given: Iterable[str]) -> tuple[str, ...]:
    wanted = [part.strip() for each in given for part in each.split(",")]
    if not wanted:
        return ()
    from mlperf_pkg.rulebook.explain.codes import known_prefix  # noqa: PLC0415 - reads every explanation

    return tuple(map(known_prefix, wanted))


def written(
    formats: Iterable[str], *, several: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """How the result is written, and where: ``format_`` and ``target`` (``Output``).

    With ``several`` it is ``target`` alone (``Outputs``), as each output has a format of its own.
    """
    known = tuple(formats)
    more = "; repeatable" if several else ""
    return lambda function: _together(
        _with_target(function, known, several),
        click.option(
            "--format",
            "format_",
            type=Choice(known),
            help="How the result is written; by default as FILE is named, else text.",
        ),
        click.option(
            "-o",
            "--output",
            multiple=True,
            metavar="[FORMAT:]FILE",
            shell_complete=completion.files,
            help=f"Write there, not to standard output (which is -){more}.",
        ),
        _force_option,
        verbose_option,
    )


def output_options(function: _Function) -> _Function:
    """``output`` and ``force``."""
    return _together(
        function,
        click.option(
            "-o",
            "--output",
            type=LocalPath(dir_okay=False, path_type=Path),
            help="Write to a file instead of standard output.",
        ),
        _force_option,
    )


def _with_target(
    function: Callable[..., Any], formats: tuple[str, ...], several: bool
) -> Callable[..., Any]:
    @wraps(function)
    def with_target(
        format_: str | None, output: tuple[str, ...], force: bool, verbose: bool, **more: Any
    ) -> Any:
        named = destinations(output, format_, formats)
        listed = tuple((name, Output(file, force, verbose)) for name, file in named)
        if several:
            return function(target=Outputs(listed, force), **more)
        if len(listed) > 1:
            raise click.UsageError("this command writes one file: give -o once")
        return function(format_=listed[0][0], target=listed[0][1], **more)

    return with_target


def _force_option(function: _Function) -> _Function:
    return click.option("--force", is_flag=True, help="Overwrite files that exist.")(function)


def _scheduler_option(function: _Function) -> _Function:
    return click.option(
        "--scheduler",
        metavar="URL",
        help="Read logs on a Dask cluster, such as tcp://10.0.0.1:8786; see docs/scale.md.",
    )(function)


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
        "--round",
        "round_",
        metavar="ROUND",
        callback=lambda *given: _round(given[2]),
        shell_complete=completion.rounds,
        help=text,
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
