"""Commands with their general options, and groups of them, each imported only when it is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from mlperf_pkg.cli.streams import OUTPUT, discard_output
from mlperf_pkg.errors import EMPTY_PATH, UserError, reason_of
from mlperf_pkg.infra.text import did_you_mean, visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


CommandFunction = Callable[..., Any]
"""The function of a command, which returns its exit status."""

FAILED = 2  # exit status of a command that could not do its work
INTERRUPTED = 128 + 2
PIPE_CLOSED = 128 + 13
_NO_THREAD = "can't (start new|spawn worker) thread"  # of Python, of libraries in Rust
_BUG = "This is a bug in mlperf-pkg: please report it with the output of 'mlperf-pkg --debug ...'"


class Failure(click.ClickException):
    """A message on stderr and exit status 2."""

    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message as compilers do, free of terminal escapes."""
        lines = "\n".join(visible(line) for line in self.message.split("\n"))
        click.echo(f"mlperf-pkg: error: {lines}", file=file, err=True)


# ---- types of arguments and options ------------------------------------------------------


class SuggestingChoice(click.Choice):  # type: ignore[type-arg,unused-ignore] # generic only in newer versions
    """A ``click.Choice`` whose error message suggests the nearest choice."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return one of the choices, or fail with a usage error."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            suggestion = did_you_mean(str(value), map(str, self.choices))
            self.fail(error.message.rstrip(".") + (suggestion or "."), param, ctx)


class InputPath(click.Path):
    """A ``click.Path`` here or in an object store; an empty one is a usage error.

    A variable that is not set gives an empty path, which would mean the current folder.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with a usage error where it is empty."""
        if value == "":
            self.fail(EMPTY_PATH, param, ctx)
        return super().convert(value, param, ctx)


class LocalPath(InputPath):
    """An ``InputPath`` on this machine: a URL is a usage error."""

    def __init__(self, **attributes: Any) -> None:
        """Create a type whose values are ``Path``, with FILE, FOLDER or PATH in the help."""
        super().__init__(path_type=Path, **attributes)
        self.name = "folder" if self.name == "directory" else self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail with a usage error where it is a URL."""
        from mlperf_pkg.infra.stores import is_url  # noqa: PLC0415 - "--version" needs none

        if is_url(value):
            self.fail(f"{value} is a URL; expected a local path", param, ctx)
        return super().convert(value, param, ctx)


PATH = InputPath()
FILE = LocalPath(dir_okay=False)
EXISTING_FILE = LocalPath(exists=True, dir_okay=False)
FOLDER = LocalPath(file_okay=False)


# ---- general options ----------------------------------------------------------------------


class _GeneralOption(click.Option):
    """An option of all commands, before the command's name or after it; the last one counts.

    Its value is kept by the outermost context. Only the help of the program describes it.
    """

    def __init__(self, *names: str, **attributes: Any) -> None:
        """Create an option that is not an argument of functions."""
        super().__init__(names, expose_value=False, callback=_keep, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names and the help, None in the help of a command."""
        return None if ctx.parent else super().get_help_record(ctx)


def _keep(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    name = option.name or ""
    root = ctx.find_root()
    if ctx is root or ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
        root.params[name] = value
        if ctx is not root and not ctx.resilient_parsing:
            apply_general(root, name)


GENERAL = (
    _GeneralOption(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Use N processes (default: one per core).",
    ),
    _GeneralOption(
        "--scheduler",
        metavar="URL",
        help="Read logs on a Dask cluster, such as tcp://10.0.0.1:8786 (see docs/scale.md).",
    ),
    _GeneralOption(
        "--config",
        type=FILE,
        help="Read settings and waivers from FILE (default: mlperf-pkg.yaml in the current folder,"
        " unless the folder is a part of the input).",
    ),
    _GeneralOption(
        "--usage",
        type=SuggestingChoice(("training", "hpc")),
        help="Use MLPerf Training or MLPerf HPC (default: inferred from the folder name or the"
        " benchmark, else training).",
    ),
    _GeneralOption(
        "--rules",
        type=InputPath(exists=True, file_okay=False, path_type=Path),
        envvar="MLPERF_PKG_RULES",
        metavar="FOLDER",
        is_eager=True,
        help="Read rounds and benchmarks from FOLDER too; they replace the rounds and benchmarks"
        " of mlperf-pkg that have the same names.",
    ),
    _GeneralOption(
        "-q", "--quiet", is_flag=True, help="Print only the verdicts; the exit status is the same."
    ),
    _GeneralOption("-v", "--verbose", is_flag=True, help="Show all runs and result sets."),
    _GeneralOption("--debug", is_flag=True, help="Show the tracebacks of unexpected errors."),
)
_EVERYWHERE = ("rules", "debug")  # commands need not read them
_DECISIVE = ("config", "usage")  # refused by commands that do not read them


def apply_general(root: click.Context, name: str) -> None:
    """Do what an option asks for that no command reads, while the program runs."""
    if name == "debug" and root.params["debug"]:
        import logging  # noqa: PLC0415 - only a defect needs it

        logging.basicConfig(format="%(message)s")
        logging.getLogger("mlperf_pkg").setLevel(logging.DEBUG)
    if name == "rules" and root.params["rules"]:
        from mlperf_pkg.infra.resources import rules_read_from  # noqa: PLC0415 - slow to import
        from mlperf_pkg.rulebook.check import check_rulebook

        folder = root.params["rules"].absolute()
        root.with_resource(rules_read_from(folder))
        check_rulebook(folder)


def reads(*names: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that hands the values of general options to the function of a command."""

    def decorate(function: CommandFunction) -> CommandFunction:
        function.reads = {*names, *read_by(function)}  # type: ignore[attr-defined]
        return function

    return decorate


def read_by(function: object) -> set[str]:
    """Return the general options that the function of a command reads."""
    names: set[str] = getattr(function, "reads", set())
    return names


def general_in_words(ctx: click.Context) -> str:
    """Return the general options that have a meaning for a command; empty for the program."""
    if ctx.parent is None:
        return ""
    names = {*_EVERYWHERE, *read_by(ctx.command.callback)}
    spellings = ["/".join(option.opts) for option in GENERAL if option.name in names]
    return f"General options (mlperf-pkg --help): {', '.join(spellings)}"


# ---- commands -----------------------------------------------------------------------------


class Step(NamedTuple):
    """What turns values of options into one that the function of a command receives.

    The values that it ``takes``, as far as the command has them, are the arguments of ``make``; the
    function receives what that returns, by the name ``gives``, instead of them.
    """

    gives: str
    make: Callable[..., Any]
    takes: tuple[str, ...]


def attached(
    gives: str, make: Callable[..., Any], *takes: str
) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that attaches a ``Step`` to the function of a command.

    Steps are done in the order in which their decorators are read, the first one first.
    """

    def decorate(function: CommandFunction) -> CommandFunction:
        steps = [Step(gives, make, takes), *_steps_of(function)]
        function.steps = steps  # type: ignore[attr-defined]
        return function

    return decorate


def _steps_of(function: object) -> list[Step]:
    steps: list[Step] = getattr(function, "steps", [])
    return steps


_QUOTED = r"(?<!\w)'[^'\s]+(?:\s+[^'\s]+){1,4}'"
_WITH_VALUE = r"(?<![\w-])--?[a-z][\w-]* (?=[A-Z]{2,}\b)"
_HYPHEN = "\u2011"  # at which no line is broken
_SPACE = "\u00a0"


class _HelpText(click.HelpFormatter):
    """Help in which no option, no name with hyphens and no quoted command is broken over lines."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(_unbroken(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], *args: Any, **others: Any) -> None:
        """Write options or commands with their descriptions."""
        super().write_dl([(name, _unbroken(text)) for name, text in rows], *args, **others)

    def getvalue(self) -> str:
        """Return all that was written."""
        return super().getvalue().replace(_HYPHEN, "-").replace(_SPACE, " ")


def _unbroken(text: str) -> str:
    """Return the text; its options, hyphens and quoted commands stay on one line."""
    text = re.sub(_QUOTED, lambda match: _SPACE.join(match[0].split()), text)
    text = re.sub(_WITH_VALUE, lambda match: match[0].replace(" ", _SPACE), text)
    return text.replace("-", _HYPHEN)


class _Context(click.Context):
    formatter_class = _HelpText


class Command(click.Command):
    """A command that has the general options too, and the steps of its own options."""

    context_class = _Context

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the arguments and options, the general ones last."""
        return _with_general(ctx, super().get_params(ctx))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Name the general options."""
        super().format_epilog(ctx, formatter)
        text = general_in_words(ctx)
        if text:
            formatter.write_paragraph()
            formatter.write_text(text)

    def invoke(self, ctx: click.Context) -> Any:
        """Do the steps, then call the function of the command once.

        The command is refused if a general option is set that would change nothing.
        """
        general = ctx.find_root().params
        names = read_by(self.callback)
        for name in _DECISIVE:
            if general.get(name) is not None and name not in names:
                ctx.fail(f"--{name} does not apply to '{ctx.command_path}'")
        values = {name: general.get(name) for name in names}
        values.update(ctx.params)
        for step in _steps_of(self.callback):
            taken = {name: values.pop(name) for name in step.takes if name in values}
            values[step.gives] = ctx.invoke(step.make, **taken)
        ctx.params = values
        return super().invoke(ctx)


def _with_general(ctx: click.Context, params: list[click.Parameter]) -> list[click.Parameter]:
    """Return the parameters of a command and, unless it is the program, the general options."""
    return [*params, *GENERAL] if ctx.parent else params


# ---- groups -------------------------------------------------------------------------------


class CommandGroup(click.Group):
    """A group that suggests the nearest command for a mistyped name."""

    command_class = Command
    context_class = _Context

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options, the general ones last."""
        return _with_general(ctx, super().get_params(ctx))

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names in the order of definition, which is that of use."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with a suggestion."""
        name = args[0]
        commands = self.list_commands(ctx)
        if name not in commands and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"no such command {name!r}{did_you_mean(name, commands)}")
        return super().resolve_command(ctx, args)


class Program(CommandGroup):
    """The outermost group, which turns results and exceptions into exit statuses.

    Each command is the ``command`` of the module of its name, and returns its exit status.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Iterable[str]], **others: Any) -> None:
        """Create a group; ``sections`` has the names of commands by their title in the help."""
        super().__init__(*args, **others)
        self._sections = sections
        self._names = [*chain.from_iterable(sections.values())]

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names in the order of the table, which is that of use."""
        return self._names

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or None if the name is unknown."""
        if cmd_name not in self._names:
            return None
        command: click.Command = import_module(f"{__package__}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of each section, in columns of the same width."""
        width = max(map(len, self._names))
        limit = formatter.width - 6 - width
        for title, names in self._sections.items():
            commands = {n.ljust(width): self.get_command(ctx, n) for n in names}
            with formatter.section(title):
                formatter.write_dl(
                    [(name, c.get_short_help_str(limit)) for name, c in commands.items() if c]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete options and names of commands, without importing any."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only this needs it

        names = [CompletionItem(name) for name in self._names if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def make_context(self, *args: Any, **others: Any) -> click.Context:
        """Parse the arguments and read the user's rules; Ctrl-C ends this silently."""
        try:
            return super().make_context(*args, **others)
        except KeyboardInterrupt as error:
            raise click.exceptions.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:  # of a help text
            discard_output()
            raise click.exceptions.Exit(PIPE_CLOSED) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and exit with its status."""
        try:
            ctx.exit(super().invoke(ctx))
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except UserError as error:
            raise Failure(str(error)) from error
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            discard_output()
            ctx.exit(PIPE_CLOSED)
        except OSError as error:
            raise Failure(system_error(error)) from error
        except MemoryError as error:
            raise Failure("not enough memory; --jobs 1 needs the least memory") from error
        except (GeneratorExit, SystemExit):
            raise
        except BaseException as error:  # a library in Rust that panics raises no Exception
            if ctx.params["debug"]:
                raise
            raise Failure(_unexpected(error)) from error


def _unexpected(error: BaseException) -> str:
    """Return the message of an error that nobody expected."""
    text = f"{type(error).__name__}: {error}"
    if re.search(_NO_THREAD, text):
        return "no thread can be started: the limit of processes is reached (ulimit -u)"
    return f"{text}\n{_BUG}"


def system_error(error: OSError) -> str:
    """Return the message of an error; standard output that fails is discarded from now on."""
    if error.filename == OUTPUT:
        discard_output()
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the current folder does not exist any more; change to another one"
    return reason_of(error)
