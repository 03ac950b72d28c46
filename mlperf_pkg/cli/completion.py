"""What the shell completes where the types of options do not tell."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.rulebook.load import load_round, usages
from mlperf_pkg.rulebook.load import rounds as rounds_of

_CODE = re.compile(r"\b[A-Z]{2,6}\d{3}\b")


def rounds(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Rounds of the usage, the newest first."""
    return _beginning(incomplete, (name for usage in _usages(ctx) for name in _rounds(usage)))


def benchmarks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Benchmarks of the round, or of all."""
    asked = ctx.params.get("round_")
    known = {
        name
        for usage in _usages(ctx)
        for round_ in _rounds(usage)
        if asked in (None, round_)
        for name in load_round(usage, round_).benchmarks
    }
    return _beginning(incomplete, sorted(known))


def codes(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The codes of findings."""
    return _beginning(incomplete.upper(), _codes())


def prefixes(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """After the last comma the families of codes and, where one has begun, its codes."""
    before, comma, last = incomplete.upper().rpartition(",")
    families = sorted({name.rstrip("0123456789") for name in _codes()})
    known = [*families, *_codes()] if last else families
    return [f"{before}{comma}{name}" for name in _beginning(last, known)]


def systems(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """The systems whose descriptions travel with the package."""
    return _beginning(
        incomplete, sorted(path.stem for path in data_folder("systems").glob("*.json"))
    )


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, which the shell knows itself."""
    return [CompletionItem(incomplete, type="file")]


def _beginning(incomplete: str, known: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(known) if name.startswith(incomplete)]


def _usages(ctx: click.Context) -> list[str]:
    usage = ctx.params.get("usage")
    return [usage] if usage else list(reversed(usages()))


def _rounds(usage: str) -> Iterable[str]:
    return reversed(rounds_of(usage))


def _codes() -> list[str]:
    """As ``codes.known_code`` knows them, but found in an instant: nobody waits for a tab key."""
    texts = (path.read_text("utf-8") for path in data_folder("rules").rglob("*.yaml"))
    return sorted({code for text in texts for code in _CODE.findall(text)})
