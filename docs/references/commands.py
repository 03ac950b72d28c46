"""Reference pages for the command line, generated from the commands."""

import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import cast

import click

from mlperf_pkg.cli.group import general_in_words
from mlperf_pkg.cli.main import SECTIONS, cli
from references.markdown import block, code, contents, page, plain, table

_PROGRAM = "mlperf-pkg"
_VERBATIM = "\b"  # click keeps the lines of a paragraph that starts with it
_STATUS = "Exit status: "
_EXAMPLES = "Examples:"


def pages() -> Iterator[tuple[str, str]]:
    """Yield a page that lists all commands, one for each section of them, and one for each."""
    top = click.Context(cli, info_name=_PROGRAM, **cli.context_settings)
    contexts = {name: _below(top, name) for name in cli.list_commands(top)}
    parts = list(_about(top, 2))
    for section, names in SECTIONS.items():
        commands = _commands({name: contexts[name] for name in names})
        parts += [f"## {section}", commands]
        yield _page_of(section), page(section, [commands, contents(f"cli/{n}" for n in names)])
    below = contents(_page_of(section).removesuffix(".md") for section in SECTIONS)
    yield "cli.md", page("Command line", [*parts, below])
    for name, ctx in contexts.items():
        yield f"cli/{name}.md", page(name, _whole(ctx))


def _page_of(section: str) -> str:
    return f"cli-{section.lower().replace(' ', '-')}.md"


def _commands(contexts: Mapping[str, click.Context]) -> str:
    rows = [
        (f"[{name}](cli/{name}.md)", plain(ctx.command.get_short_help_str(80)))
        for name, ctx in contexts.items()
    ]
    return table(("Command", "Meaning"), rows)


def _below(ctx: click.Context, name: str) -> click.Context:
    group = cast(click.Group, ctx.command)
    return click.Context(cast(click.Command, group.get_command(ctx, name)), ctx, name)


def _whole(ctx: click.Context) -> Iterator[str]:
    default = getattr(ctx.command, "default", ctx.command)  # of a group that does more than that
    yield from _about(click.Context(default, ctx.parent, ctx.info_name), 2)
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            yield f"## {ctx.info_name} {name}"
            yield from _about(_below(ctx, name), 3)


def _about(ctx: click.Context, level: int) -> Iterator[str]:
    """Yield usage, help, options, exit status and examples of one command."""
    mark = "#" * level
    paragraphs = inspect.cleandoc(ctx.command.help or "").split("\n\n")
    texts = [paragraph.removeprefix(_VERBATIM).strip() for paragraph in paragraphs]
    yield block(f"{ctx.command_path} {' '.join(ctx.command.collect_usage_pieces(ctx))}")
    for text in texts:
        if not text.startswith((_STATUS, _EXAMPLES)):
            yield plain(text)
    yield f"{mark} Options"
    yield table(("Option", "Meaning"), _options(ctx))
    if text := general_in_words(ctx):
        yield plain(text)
    for text in texts:
        if text.startswith(_STATUS):
            yield f"{mark} Exit status"
            yield plain(text.removeprefix(_STATUS).capitalize())
        if text.startswith(_EXAMPLES):
            yield f"{mark} Examples"
            yield block(textwrap.dedent(text.partition("\n")[2]), "sh")


def _options(ctx: click.Context) -> Iterator[tuple[str, str]]:
    for option in ctx.command.get_params(ctx):
        if isinstance(option, click.Option) and (record := option.get_help_record(ctx)):
            yield code(record[0]), plain(record[1])
