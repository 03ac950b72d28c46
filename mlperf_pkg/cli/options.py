"""Arguments and options that several commands share, each declared once."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import UNREAD, Checked, Options, with_config
from mlperf_pkg.cli import completion
from mlperf_pkg.cli.group import (
    FILE,
    FOLDER,
    PATH,
    CommandFunction,
    SuggestingChoice,
    attached,
    reads,
)
from mlperf_pkg.cli.output import Formats, Output, Outputs, destinations, note
from mlperf_pkg.cli.streams import progress
from mlperf_pkg.config import round_name
from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.render import Show, View
from mlperf_pkg.results.report import Report
from mlperf_pkg.results.wording import shortened
from mlperf_pkg.rulebook.model import DIVISIONS

_Function = TypeVar("_Function", bound=CommandFunction)

Filter = Callable[[Report], Report]
"""Return a report without the findings that the user does not want to see."""

DEFAULT_FOLDER = "logs"
_NAMED = 3  # logs in a note
_OFFICIAL = "official"
_STATISTICS = "statistics"
ROUND = (
    "Apply the rules of this round, such as 2.0 (default: inferred from the folder name or the run"
    " timestamps)."
)


# ---- inputs and rules ---------------------------------------------------------------------


def checked(function: CommandFunction) -> CommandFunction:
    """Add the arguments ``paths`` and all options of ``judged``."""
    add_paths = click.argument("paths", nargs=-1, metavar="[PATH]...", callback=_paths, type=PATH)
    return add_paths(judged(function))


def judged(function: CommandFunction) -> CommandFunction:
    """Add ``--round`` to the options of ``judging``."""
    return round_option(ROUND)(judging(function))


def judging(function: CommandFunction) -> CommandFunction:
    """Add the options of a check: the function receives ``check_options`` (``Options``)."""
    general = ("usage", "config", "jobs", "scheduler")
    add_step = attached("check_options", _check_options, "round_", *general)
    return reads(*general)(add_step(function))


def _check_options(
    *,
    usage: str | None,
    config: Path | None,
    jobs: int | None,
    scheduler: str | None,
    round_: str | None = None,
) -> Options:
    """Return the options of a check, whose progress is shown until the command ends."""
    if jobs and scheduler:
        raise click.UsageError("--jobs and --scheduler cannot be used together")
    context = click.get_current_context()
    check_options = Options(usage, round_, jobs, scheduler=scheduler)
    check_options = with_config(check_options, config, _inputs(context), note)
    return replace(check_options, observer=context.with_resource(progress()))


def _inputs(context: click.Context) -> list[str]:
    """Return the arguments of the command that runs: what it reads."""
    inputs: list[str] = []
    for param in context.command.params:
        if isinstance(param, click.Argument):
            value = context.params.get(param.name or "") or ()
            values = value if isinstance(value, tuple) else (value,)
            inputs.extend(map(str, values))
    return inputs


def workspace_options(round_: str | None, usage: str | None = None) -> Options:
    """Return the options of a command about the workspace here, with its configuration."""
    return with_config(Options(usage, round_), None, (), note)


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
        callback=lambda _, __, value: value if value is None else round_name(value),
        shell_complete=completion.rounds,
        help=text,
    )


_AS_THERE = ", like the flag of this name in the file package_checker_params."
_FLAGS = {
    "rcp-bypass": f"Accept result sets that fail the RCP test{_AS_THERE}",
    "seed-checker-bypass": f"Accept result sets that fail the seed test{_AS_THERE}",
    "rcp-bert-train-samples": "Read from the key train_samples how many samples BERT took to"
    f" converge{_AS_THERE}",
}


def bypass_options(*names: str) -> Callable[[CommandFunction], CommandFunction]:
    """Add flags of ``package_checker_params``."""

    def decorate(function: CommandFunction) -> CommandFunction:
        for name in reversed(names):
            function = flag(f"--{name}", text=_FLAGS[name])(function)
        return function

    return decorate


def flagged(*flags: str) -> Callable[[CommandFunction], CommandFunction]:
    """Add the options of ``bypass_options``, which apply to all result sets.

    They are added to ``check_options``, so this decorator comes after ``checked``.
    """

    def with_flags(check_options: Options, **values: bool) -> Options:
        chosen = {flag for flag in flags if values[parameter(flag)]}
        return replace(check_options, flags=check_options.flags | chosen)

    add_step = attached("check_options", with_flags, "check_options", *map(parameter, flags))
    add_options = bypass_options(*flags)
    return lambda function: add_options(add_step(function))


def parameter(flag: str) -> str:
    """Return the name under which the value of a flag is handed on."""
    return flag.replace("-", "_")


counting_samples = flagged("rcp-bert-train-samples")
bypassing = flagged("rcp-bypass", "seed-checker-bypass", "rcp-bert-train-samples")


def flag(*names: str, text: str) -> Callable[[_Function], _Function]:
    """Add an option without a value."""
    return click.option(*names, is_flag=True, help=text)


def repeatable(*names: str, text: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add an option that may be used several times."""
    return click.option(*names, multiple=True, help=f"{text}; repeatable.", **attributes)


def seed_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``seed``."""
    return click.option("--seed", type=int, metavar="N", default=0, show_default=True, help=text)


def gathered(kind: type[Struct], name: str) -> Callable[[CommandFunction], CommandFunction]:
    """Hand the options that are fields of ``kind`` to the function as one value, ``name``."""
    fields = kind.__struct_fields__
    with_underscore = [f"{field}_" for field in fields]  # such as ``round_``

    def make(**values: Any) -> Struct:
        return kind(**{option.rstrip("_"): value for option, value in values.items()})

    return attached(name, make, *fields, *with_underscore)


def count_option(
    *names: str, text: str, least: int = 1, most: int | None = None, **attributes: Any
) -> Callable[[_Function], _Function]:
    """Add a number from ``least`` to ``most``; a default is shown."""
    attributes = {"metavar": "N", "show_default": "default" in attributes, **attributes}
    return click.option(*names, type=click.IntRange(least, most), help=text, **attributes)


def division_option(text: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add ``division``."""
    return click.option("--division", type=SuggestingChoice(DIVISIONS), help=text, **attributes)


# ---- findings to show ---------------------------------------------------------------------


def filtered(function: CommandFunction) -> CommandFunction:
    """Add ``--select`` and ``--ignore``: the function receives ``filter_findings`` (``Filter``)."""
    add_select = _codes_option("--select", "Show only", "")
    add_ignore = _codes_option("--ignore", "Hide", "; the verdicts do not change")
    add_step = attached("filter_findings", _finding_filter, "select", "ignore")
    return add_select(add_ignore(add_step(function)))


def _finding_filter(select: tuple[str, ...], ignore: tuple[str, ...]) -> Filter:
    return lambda report: report.only(select, ignore)


def _codes_option(name: str, verb: str, more: str) -> Callable[[CommandFunction], CommandFunction]:
    return click.option(
        name,
        multiple=True,
        metavar="CODES",
        shell_complete=completion.prefixes,
        callback=_prefixes,
        help=f"{verb} findings whose codes have these prefixes (repeatable or"
        f" comma-separated){more}.",
    )


def _prefixes(_: click.Context, __: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    if not values:
        return ()
    from mlperf_pkg.rulebook.explain import known_prefix  # noqa: PLC0415 - reads every explanation

    return tuple(known_prefix(prefix.strip()) for prefix in ",".join(values).split(","))


def noted(checked: Checked) -> Checked:
    """Return ``checked``, whose findings are not shown; print which logs cannot be read."""
    logs_by_problem: dict[str, list[str]] = {}
    for finding in checked.report.findings:
        if finding.code in UNREAD:
            logs = logs_by_problem.setdefault(finding.text, [])
            logs.extend(place.path for place in finding.occurrences)
    for problem, logs in logs_by_problem.items():
        note(f"{shortened(logs, _NAMED, 'log')}: {problem}")
    return checked


Showing = Callable[[View], View]
"""Return a view that shows what the user wants to see of the findings."""

Status = Callable[[Report], int]
"""Return the exit status for a report: 1 if a finding or a verdict fails the command."""


def shown(function: CommandFunction) -> CommandFunction:
    """Add ``--show`` and read ``--quiet``: the function receives ``showing``."""
    severities = [level.value for level in Show]
    add_show = click.option(
        "--show",
        type=SuggestingChoice([*severities, _STATISTICS]),
        help="Show all findings of this severity and above (default: warnings and errors; for a"
        " round, only the most important codes). 'all' also shows the source of each rule."
        " 'statistics' prints a table of the findings by code and submitter.",
    )
    add_step = attached("showing", _showing, "show", "quiet")
    return add_show(reads("quiet")(add_step(function)))


def _showing(show: str | None, quiet: bool | None) -> Showing:
    level = Show.WARNINGS
    if show and show != _STATISTICS:
        level = Show(show)
    return partial(
        replace,
        show=level,
        all_kinds=show is not None,
        quiet=bool(quiet),
        statistics=show == _STATISTICS,
    )


def failing(function: CommandFunction) -> CommandFunction:
    """Add ``--fail-on``: the function receives ``status`` (``Status``)."""
    severities = [severity.value for severity in Severity]
    add_fail_on = click.option(
        "--fail-on",
        type=SuggestingChoice([*severities, _OFFICIAL]),
        default=Severity.ERROR.value,
        show_default=True,
        help="Exit with status 1 if there is a finding of this severity or above. With 'official',"
        " do so only if the official verdict is not 'pass'.",
    )
    return add_fail_on(attached("status", _status, "fail_on")(function))


def _status(fail_on: str) -> Status:
    if fail_on == _OFFICIAL:
        return lambda report: int(report.verdict.official is not Verdict.PASS)
    severity = Severity(fail_on)
    return lambda report: int(report.fails_on(severity))


# ---- output -------------------------------------------------------------------------------


def written(
    formats: Formats, *, many: bool = False
) -> Callable[[CommandFunction], CommandFunction]:
    """Add the options of the result: the function receives ``target``.

    It is an ``Output`` or, with ``many``, ``Outputs``.
    """
    add_format = click.option(
        "--format",
        "format_",
        type=SuggestingChoice(tuple(formats)),
        help="Write in this format (default: by the ending of FILE, else text).",
    )
    repeated = "; repeatable" if many else ""
    add_output = click.option(
        "-o",
        "--output",
        multiple=True,
        metavar="[FORMAT:]FILE",
        shell_complete=completion.files,
        help=f"Write to FILE, in FORMAT if given; - is standard output, the default{repeated}.",
    )
    add_force = force_option()

    def make_target(
        format_: str | None, output: tuple[str, ...], verbose: bool | None, *, force: bool
    ) -> Output | Outputs:
        chosen = destinations(output, format_, tuple(formats))
        outputs = [Output(file, force, bool(verbose), name, formats) for name, file in chosen]
        if many:
            return Outputs(tuple(outputs))
        if len(outputs) > 1:
            raise click.UsageError("this command writes one file: give -o once")
        return outputs[0]

    def decorate(function: CommandFunction) -> CommandFunction:
        add_step = attached("target", make_target, "format_", "output", "verbose", "force")
        return add_format(add_output(add_force(reads("verbose")(add_step(function)))))

    return decorate


def output_option(text: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add ``output``, one local file."""
    return click.option("-o", "--output", type=FILE, help=text, **attributes)


def output_folder_option(text: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add ``output``, a local folder."""
    return click.option("-o", "--output", type=FOLDER, help=text, **attributes)


def force_option(text: str = "Overwrite existing files.") -> Callable[[_Function], _Function]:
    """Add ``force``."""
    return flag("--force", text=text)


def invalid_option(function: _Function) -> _Function:
    """Add ``invalid``."""
    add_invalid = click.option(
        "--invalid",
        type=SuggestingChoice(("keep", "drop")),
        help="Keep result sets that are not valid, or drop them and print why (default: write"
        " nothing if a result set is not valid).",
    )
    return add_invalid(function)


def published_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``published``, names of rounds or ``all``, which is also meant without a name."""
    return click.option(
        "--published",
        multiple=True,
        is_flag=False,
        flag_value="all",
        metavar="ROUND",
        callback=_round_names,
        shell_complete=completion.published_rounds,
        help=f"{text} the published results of a round, such as 5.1, or of all rounds ('all');"
        " repeatable or comma-separated.",
    )


def _round_names(_: click.Context, __: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    names = [round_name(name.strip()) for name in ",".join(values).split(",")]
    return tuple(filter(None, names))


def chart_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``chart``, a local file."""
    return click.option(
        "--chart",
        type=FILE,
        help=f"Also draw {text}. This needs packages that 'mlperf-pkg doctor' lists.",
    )


def private_ids_option(text: str) -> Callable[[_Function], _Function]:
    """Add ``private_ids``, a local file."""
    return click.option(
        "--private-ids",
        type=FILE,
        help=f"Read the private ids of systems from FILE; add ids of new systems to FILE{text}.",
    )
