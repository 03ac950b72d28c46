"""Groups of commands, each imported only when it is used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

import click

from mlperf_pkg.cli.streams import OUTPUT, discard_output
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.text import did_you_mean, visible

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FAILED = 2  # exit status of a command that could not do its work
INTERRUPTED = 128 + 2
PIPE_CLOSED = 128 + 13
FORMER = {"verify-round": ("check", "--fail-on=official"), "plot": ("report", "--chart=all")}
"""What replaces former commands, until the release after the next."""


class Failure(click.ClickException):
    """A message on stderr and exit status 2."""

    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message as compilers do, free of terminal escapes."""
        lines = "\n".join(visible(line) for line in self.message.split("\n"))
        click.echo(f"mlperf-pkg: error: {lines}", file=file, err=True)


class Group(click.Group):
    """A group that suggests the nearest command for a mistyped name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with a suggestion."""
        name, commands = args[0], self.list_commands(ctx)
        if name not in commands and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"no such command {name!r}{did_you_mean(name, commands)}")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group whose commands are each the ``command`` of a module."""

    def __init__(
        self,
        *args: Any,
        modules: Mapping[str, str],
        sections: Mapping[str, Iterable[str]] | None = None,
        **attributes: Any,
    ) -> None:
        """Create a group; ``modules`` maps names of commands to names of modules.

        ``sections`` divides the names in the help under titles.
        """
        super().__init__(*args, **attributes)
        self._modules = modules
        self._sections = sections or {"Commands": modules}

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names in the order of the table, which is that of use."""
        return list(self._modules)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command, or None if the name is unknown."""
        if cmd_name not in self._modules:
            return None
        command: click.Command = import_module(self._modules[cmd_name]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of each section, in columns of the same width."""
        width = max(map(len, self._modules))
        limit = formatter.width - 6 - width
        for title, names in self._sections.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [(n.ljust(width), c.get_short_help_str(limit)) for n, c in commands if c]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete options and names of commands, without importing any."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only this needs it

        names = [CompletionItem(name) for name in self._modules if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


class Program(LazyGroup):
    """The outermost group, which turns results and exceptions into exit statuses.

    A command returns its exit status. Option ``debug`` shows the traceback of an unexpected error.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or by a former name the one that replaces it, which a note names."""
        if (words := FORMER.get(args[0])) and not ctx.resilient_parsing:
            click.echo(f"note: {args[0]} is now 'mlperf-pkg {' '.join(words)}'", err=True)
            args = [*words, *args[1:]]
        return super().resolve_command(ctx, args)

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
        except Exception as error:
            if ctx.params["debug"]:
                raise
            raise Failure(_bug(error)) from error


def system_error(error: OSError) -> str:
    """Return the message of an error; standard output that fails is discarded from now on."""
    if error.filename == OUTPUT:
        discard_output()
    return reason_of(error)


def _bug(error: Exception) -> str:
    return (
        f"{type(error).__name__}: {error}\n"
        "This is a bug in mlperf-pkg: please report it with the output of 'mlperf-pkg --debug ...'"
    )
