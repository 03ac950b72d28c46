"""Completion of values that click cannot derive from an option, and ``mlperf-pkg completion``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from mlperf_pkg.cli.group import Command, SuggestingChoice
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.resources import data_folder, rules_folders, rules_read_from
from mlperf_pkg.rulebook.documents import rounds as rounds_of
from mlperf_pkg.rulebook.documents import usages
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.problems import RuleFile

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]

_CODE = r"(?m)(?:^|code: )([A-Z]{2,6}\d{3})\b"  # compiled when it is used


def _with_the_users_rules(complete: _Complete) -> _Complete:
    """Let a completion know the rounds, benchmarks and codes of ``mlperf-pkg --rules FOLDER``."""

    @wraps(complete)
    def with_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        folder: Path | None = ctx.find_root().params.get("rules")
        if folder is None:
            return complete(ctx, param, incomplete)
        with rules_read_from(folder.absolute()):
            return complete(ctx, param, incomplete)

    return with_rules


@_with_the_users_rules
def rounds(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete rounds of the usage, the newest first."""
    names: list[str] = []
    for usage in _usages(ctx):
        names.extend(reversed(rounds_of(usage)))
    return beginning(incomplete, names)


def published_rounds(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete, after the last comma, the rounds with published results, the newest first."""
    from mlperf_pkg.published.results import published_results  # noqa: PLC0415 - this alone needs it

    newest_first = reversed(published_results().provenance.rounds)
    return _after_the_last_comma(incomplete, ["all", *[round_.name for round_ in newest_first]])


@_with_the_users_rules
def benchmarks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Complete benchmarks of the round, or of all rounds."""
    chosen = ctx.params.get("round_")
    names = set[str]()
    for usage in _usages(ctx):
        for round_ in rounds_of(usage):
            if chosen is None or round_ == chosen:
                names.update(load_round(usage, round_).benchmarks)
    return beginning(incomplete, sorted(names))


@_with_the_users_rules
def codes(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete codes of findings."""
    return beginning(incomplete.upper(), _codes())


@_with_the_users_rules
def subjects(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete codes and benchmarks; keys only once they are begun, as there are hundreds."""
    names = [*codes(ctx, param, incomplete), *benchmarks(ctx, param, incomplete)]
    if not incomplete:
        return names
    from mlperf_pkg.rulebook.explain import keys  # noqa: PLC0415 - slow to import

    return [*names, *beginning(incomplete, sorted(keys()))]


@_with_the_users_rules
def prefixes(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete, after the last comma, families of codes and then the codes themselves."""
    names = sorted({name.rstrip("0123456789") for name in _codes()})
    is_begun = incomplete and not incomplete.endswith(",")
    if is_begun:
        names += _codes()
    return _after_the_last_comma(incomplete.upper(), names)


def systems(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete ids of the systems that the package describes."""
    names = sorted(path.stem for path in data_folder("systems").glob("*.json"))
    return beginning(incomplete, names)


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave the completion of files to the shell."""
    return [_item(incomplete, "file")]


def files_or_rounds(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete published rounds, the newest first, else leave the completion to the shell."""
    names = [name for name in published_rounds(ctx, param, incomplete) if name[0].isdecimal()]
    return list(map(_item, names)) or files(ctx, param, incomplete)


def _item(value: str, kind: str = "plain") -> CompletionItem:
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - a check needs none

    return CompletionItem(value, type=kind)


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin as what is typed, each once."""
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _after_the_last_comma(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in beginning(last, names)]


def _usages(ctx: click.Context) -> list[str]:
    usage = ctx.find_root().params.get("usage")
    return [usage] if usage else list(reversed(usages()))


def _codes() -> list[str]:
    """Return all codes by a search of the rules' text: loading them is too slow for a key press."""
    names = set[str]()
    for folder in rules_folders():
        for path in folder.rglob("*.yaml"):
            text = RuleFile(path, path.name).read().decode()
            names.update(re.findall(_CODE, text))
    return sorted(names)


@click.command(name="completion", cls=Command)
@click.argument("shell", type=SuggestingChoice(("bash", "zsh", "fish", "powershell")))
@click.pass_context
def command(ctx: click.Context, *, shell: str) -> int:
    """Complete commands, options and values with the tab key.

    This command prints a script for SHELL, which is bash (4.4 or newer), zsh, fish or
    powershell. Write the script to the folder in which the shell looks for scripts of
    completion (docs/completion.md names the folders). After each update of mlperf-pkg,
    write the script again.

    Exit status: 0 if the script was printed, 2 if it could not be.

    \b
    Examples:
      mlperf-pkg completion powershell > ~/mlperf-pkg.ps1
      eval "$(mlperf-pkg completion bash)"
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - a check needs none

    script: Any = get_completion_class(shell)
    if script is None:
        raise UserError(
            f"completion in {shell} needs a newer version of click; run: pip install -U click"
        )
    root = ctx.find_root().command
    click.echo(script(root, {}, "mlperf-pkg", "_MLPERF_PKG_COMPLETE").source(), nl=False)
    return 0
