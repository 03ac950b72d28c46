"""Arguments and options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from mlperf_pkg.checker.values import Options, with_config
from mlperf_pkg.cli import completion
from mlperf_pkg.cli.destinations import destinations
from mlperf_pkg.cli.output import Output, Outputs
from mlperf_pkg.cli.progress import progress
from mlperf_pkg.cli.rules_folder import rules_option
from mlperf_pkg.cli.types import Choice, LocalPath
from mlperf_pkg.config import CONFIG_NAME, round_name
from mlperf_pkg.infra.text import visible
from mlperf_pkg.results.report import Report
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.submission.model import KEEP_SCALING

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Command = Callable[..., Any]

Filter = Callable[[Report], Report]
"""Return a report without the findings that the user does not want to see."""

DEFAULT_FOLDER = "logs"
SYSTEM_ROUND = (
    f"Apply the rules of this round, such as 2.0 (default: that of {CONFIG_NAME}, else the newest"
    " in the rulebook)."
)

ROUND = (
    "Apply the rules of this round, such as 2.0 (default: inferred from the folder name or the run"
    " timestamps)."
)


# ---- inputs and rules ---------------------------------------------------------------------


def checked(function: _Command) -> _Command:
    """Add the arguments ``paths`` and all options of ``judged``."""
    return _decorated(
        function,
        click.argument("paths", nargs=-1, metavar="[PATH]...", callback=_paths, type=click.Path()),
        judged,
    )


def judged(function: _Command) -> _Command:
    """Add the options of a check: the function receives ``check_options`` (``Options``)."""
    return _ruled(function, jobs_option, _scheduler_option)


def ruled(function: _Command) -> _Command:
    """Add the options of ``judged`` without those for several processes."""
    return _ruled(function)


def _ruled(function: _Command, *of_processes: Callable[[Any], Any]) -> _Command:
    @wraps(function)
    def with_options(
        round_: str | None,
        usage: str | None,
        config: Path | None,
        jobs: int | None = None,
        scheduler: str | None = None,
        **others: Any,
    ) -> Any:
        if jobs and scheduler:
            raise click.UsageError("--jobs and --scheduler cannot be used together")
        check_options = Options(usage, round_, jobs, scheduler=scheduler)
        check_options = with_config(check_options, config, _inputs(), _note)
        with progress() as observer:
            return function(check_options=replace(check_options, observer=observer), **others)

    return _decorated(
        with_options,
        round_option(ROUND),
        usage_option(USAGE),
        *of_processes,
        _config_option,
        rules_option,
    )


def _inputs() -> list[str]:
    """Return the arguments of the command that runs: what it reads."""
    context = click.get_current_context()
    names = [param.name for param in context.command.params if isinstance(param, click.Argument)]
    values = [context.params.get(name or "") or () for name in names]
    lists = [value if isinstance(value, tuple) else (value,) for value in values]
    return [str(value) for value in chain.from_iterable(lists)]


def _note(text: str) -> None:
    click.echo(visible(f"note: {text}"), err=True)


def workspace_options(round_: str | None, usage: str | None = None) -> Options:
    """Return the options of a command about the workspace here, with its configuration."""
    return with_config(Options(usage, round_), None, (), _note)


def _paths(ctx: click.Context, _: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths, by default the folder of logs in a workspace."""
    return paths if paths or ctx.resilient_parsing else default_paths()


def default_paths() -> tuple[str, ...]:
    """Return the folder of logs in a workspace.

    Raises:
        click.UsageError: there is none here.
    """
    if not Path(DEFAULT_FOLDER).is_dir():
        raise click.UsageError(
            f"no PATH given, and there is no folder {DEFAULT_FOLDER}/ here: name a log, a folder"
            " of logs or a submission"
        )
    return (DEFAULT_FOLDER,)


def round_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``round_``, in the form of ``round_name``."""
    return click.option(
        "--round",
        "round_",
        metavar="ROUND",
        callback=_round_name,
        shell_complete=completion.rounds,
        help=text,
    )


def _round_name(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return value if value is None else round_name(value)


USAGE = (
    "Apply the rules of MLPerf Training or MLPerf HPC (default: inferred from the folder"
    " name or the benchmark, else training)."
)


def usage_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``usage``."""
    return click.option("--usage", type=Choice(["training", "hpc"]), help=text)


_SAMPLES = {
    "rcp-bert-train-samples": "Take the convergence of BERT from train_samples. As in"
    " package_checker_params."
}
_KEPT = {
    KEEP_SCALING: "Multiply scores by the factor in scaling.json (1 if there is none), not by that"
    " of the RCP test."
}
_KEPT_NOTE = "scores have the factors in scaling.json, not those of the RCP test (--keep-scaling)"
_BYPASSES = {
    "rcp-bypass": "Accept result sets that fail the RCP test. As in package_checker_params.",
    "seed-checker-bypass": "Do not check seeds. As in package_checker_params.",
    **_SAMPLES,
}


def bypassing(function: _Command, flags: Mapping[str, str] = _BYPASSES) -> _Command:
    """Add the options of the official package checker that apply to all result sets.

    They are added to ``check_options``, so this decorator comes after ``checked``.
    """

    @wraps(function)
    def with_flags(check_options: Options, **others: Any) -> Any:
        chosen = frozenset(flag for flag in flags if others.pop(flag.replace("-", "_")))
        if KEEP_SCALING in chosen:
            click.echo(f"note: {_KEPT_NOTE}", err=True)
        flagged = replace(check_options, flags=check_options.flags | chosen)
        return function(check_options=flagged, **others)

    return _decorated(
        with_flags,
        *(click.option(f"--{flag}", is_flag=True, help=text) for flag, text in flags.items()),
    )


def counting_samples(function: _Command) -> _Command:
    """Add ``--rcp-bert-train-samples``, but no other option of ``bypassing``."""
    return bypassing(function, _SAMPLES)


def scaled(function: _Command) -> _Command:
    """Add ``--keep-scaling`` in the way of ``bypassing``."""
    return bypassing(function, _KEPT)


def _config_option(function: _Function) -> _Function:
    return click.option(
        "--config",
        type=LocalPath(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Read settings and waivers from FILE (default: {CONFIG_NAME} in the current folder,"
        " unless that is inside the input).",
    )(function)


def jobs_option(function: _Function) -> _Function:
    """Add ``jobs``, a number of processes."""
    return click.option(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Use N processes (default: one per core).",
    )(function)


def _scheduler_option(function: _Function) -> _Function:
    return click.option(
        "--scheduler",
        metavar="URL",
        help="Read logs on a Dask cluster, such as tcp://10.0.0.1:8786 (see docs/scale.md).",
    )(function)


def division_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``division``."""
    return click.option("--division", type=Choice(DIVISIONS), help=text)


# ---- findings to show ---------------------------------------------------------------------


def filtered(function: _Command) -> _Command:
    """Add ``--select`` and ``--ignore``: the function receives ``filter_findings`` (``Filter``)."""

    @wraps(function)
    def with_filter(select: tuple[str, ...], ignore: tuple[str, ...], **others: Any) -> Any:
        return function(filter_findings=lambda report: report.only(select, ignore), **others)

    return _decorated(
        with_filter,
        _codes_option(
            "--select", "Show only codes with these prefixes (repeatable or comma-separated)."
        ),
        _codes_option(
            "--ignore",
            "Hide codes with these prefixes (repeatable or comma-separated); the verdicts do not"
            " change.",
        ),
    )


def _codes_option(name: str, text: str) -> Callable[[_Function], _Function]:
    return click.option(
        name,
        multiple=True,
        metavar="CODES",
        shell_complete=completion.prefixes,
        callback=_prefixes,
        help=text,
    )


def _prefixes(_: click.Context, __: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    prefixes = [prefix.strip() for value in values for prefix in value.split(",")]
    if not prefixes:
        return ()
    from mlperf_pkg.rulebook.explain.codes import known_prefix  # noqa: PLC0415 - reads every explanation

    return tuple(map(known_prefix, prefixes))


# ---- output -------------------------------------------------------------------------------


def written(
    formats: Iterable[str], *, repeatable: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of the result: the function receives ``format_`` and ``target`` (``Output``).

    With ``repeatable`` it receives only ``target`` (``Outputs``), as formats differ per output.
    """
    names = tuple(formats)
    suffix = "; repeatable" if repeatable else ""
    return lambda function: _decorated(
        _with_target(function, names, repeatable=repeatable),
        click.option(
            "--format",
            "format_",
            type=Choice(names),
            help="Write in this format (default: by the ending of FILE, else text).",
        ),
        click.option(
            "-o",
            "--output",
            multiple=True,
            metavar="[FORMAT:]FILE",
            shell_complete=completion.files,
            help=f"Write to FILE; - is standard output, the default{suffix}.",
        ),
        force_option(),
        verbose_option,
    )


def _with_target(function: _Command, formats: tuple[str, ...], *, repeatable: bool) -> _Command:
    @wraps(function)
    def with_target(
        format_: str | None, output: tuple[str, ...], force: bool, verbose: bool, **others: Any
    ) -> Any:
        outputs = tuple(
            (name, Output(file, force, verbose))
            for name, file in destinations(output, format_, formats)
        )
        if repeatable:
            return function(target=Outputs(outputs, force), **others)
        if len(outputs) > 1:
            raise click.UsageError("this command writes one file: give -o once")
        return function(format_=outputs[0][0], target=outputs[0][1], **others)

    return with_target


def output_option(text: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add ``output``, one local file."""
    return click.option(
        "-o", "--output", type=LocalPath(dir_okay=False, path_type=Path), help=text, **attributes
    )


def output_folder_option(text: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add ``output``, a local folder."""
    return click.option(
        "-o", "--output", type=LocalPath(file_okay=False, path_type=Path), help=text, **attributes
    )


def force_option(text: str = "Overwrite existing files.") -> Callable[[_Function], _Function]:
    """Add ``force``."""
    return click.option("--force", is_flag=True, help=text)


def keep_invalid_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``keep_invalid``."""
    return click.option("--keep-invalid", is_flag=True, help=text)


def drop_invalid_option(function: _Function) -> _Function:
    """Add ``drop_invalid``."""
    return click.option(
        "--drop-invalid",
        is_flag=True,
        help="Leave out every result set that is not valid, and say why.",
    )(function)


def verbose_option(function: _Function) -> _Function:
    """Add ``verbose``."""
    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Show all runs and result sets.",
    )(function)


def _decorated(function: _Function, *decorators: Callable[[Any], Any]) -> _Function:
    """Apply all decorators; the first is outermost, and so the first in the help."""
    for decorate in reversed(decorators):
        function = decorate(function)
    return function
