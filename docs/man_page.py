"""Manual pages of commands, in the language of man(7); ``setup.py`` puts them into the wheel."""

import inspect
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from mlperf_pkg.cli.group import general_in_words

_EXIT_STATUS = "Exit status: "
_EXAMPLES = "Examples:"


def pages(ctx: click.Context, version: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of the page of a command, then those of its subcommands."""
    below = list(_subcommands(ctx))
    yield f"{_name(ctx)}.1", _page(ctx, below, version)
    for child in below:
        yield from pages(child, version)


def _subcommands(ctx: click.Context) -> Iterator[click.Context]:
    command = ctx.command
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            if child := command.get_command(ctx, name):
                yield click.Context(child, parent=ctx, info_name=name)


def _name(ctx: click.Context) -> str:
    return ctx.command_path.replace(" ", "-")


def _page(ctx: click.Context, below: Sequence[click.Context], version: str) -> str:
    command: click.Command = getattr(ctx.command, "default", ctx.command)  # of "review"
    name = _name(ctx)
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    description = [text for text in paragraphs if not text.startswith((_EXIT_STATUS, "\b"))]
    status = [text for text in paragraphs if text.startswith(_EXIT_STATUS)]
    examples = [text for text in paragraphs if text.startswith("\b")]
    usage = " ".join(command.collect_usage_pieces(ctx))
    records = [r for p in command.get_params(ctx) if (r := p.get_help_record(ctx)) and r[1]]
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = datetime.fromtimestamp(seconds, UTC).date()
    sections = [
        f'.TH "{_escaped(name.upper())}" "1" "{date}" "mlperf-pkg {version}" "mlperf-pkg"',
        *_section("NAME", f"{_escaped(name)} \\- {_escaped(_summary(command))}"),
        *_section("SYNOPSIS", f".B {_escaped(ctx.command_path)}\n{_escaped(usage)}"),
        *_section("DESCRIPTION", "\n.PP\n".join(map(_escaped, description))),
        *_section("OPTIONS", "\n".join(filter(None, [_entries(records), _general(ctx)]))),
        *_section("COMMANDS", _entries([(c.info_name or "", _summary(c.command)) for c in below])),
        *_section("EXIT STATUS", "\n".join(_escaped(_status(text)) for text in status)),
        *_section("EXAMPLES", "\n".join(map(_example, examples))),
        *_section("SEE ALSO", _see_also(ctx, below)),
    ]
    return "\n".join(sections) + "\n"


def _general(ctx: click.Context) -> str:
    text = general_in_words(ctx).replace("mlperf-pkg --help", "see mlperf-pkg(1)")
    return f".PP\n{_escaped(text)}" if text else ""


def _section(title: str, text: str) -> list[str]:
    return [f'.SH "{title}"', text] if text else []


def _summary(command: click.Command) -> str:
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split()).rstrip(".")


def _status(text: str) -> str:
    status = text.removeprefix(_EXIT_STATUS)
    return status[:1].upper() + status[1:]


def _entries(records: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f".TP\n.B {_escaped(term)}\n{_escaped(text)}" for term, text in records)


def _example(text: str) -> str:
    lines = [line.strip() for line in text.removeprefix("\b").strip().splitlines()]
    return "\n".join([".nf", *(_escaped(line) for line in lines if line != _EXAMPLES), ".fi"])


def _see_also(ctx: click.Context, below: Sequence[click.Context]) -> str:
    related = [other for other in (ctx.parent, *below) if other]
    return "\n".join(
        f".BR {_escaped(_name(other))} (1){',' * (other is not related[-1])}" for other in related
    )


def _escaped(text: str) -> str:
    """Return text that has no meaning to roff; hyphens stay hyphens, which can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    lines = (line.strip() for line in escaped.splitlines())
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)
