"""``mlperf-pkg rules``: what the rulebook asks, and whether it is what the checker asks."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import Group
from mlperf_pkg.cli.types import Choice, LocalPath
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.render import rules as render
from mlperf_pkg.rulebook.explain.codes import known_code
from mlperf_pkg.rulebook.explain.describe import (
    benchmark_layers,
    common_layers,
    effective,
    loaded,
)
from mlperf_pkg.rulebook.explain.diff import compare
from mlperf_pkg.rulebook.load import load_round, rounds, usages
from mlperf_pkg.rulebook.model import DIVISIONS, Round
from mlperf_pkg.rulebook.upstream import verify as verification

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _round(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    return value.removeprefix("v") if value else value


_format = click.option(
    "--format",
    "format_",
    type=Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the result is written.",
)
_benchmark = click.option(
    "--benchmark",
    metavar="NAME",
    shell_complete=completion.benchmarks,
    help="Only this benchmark.",
)


def _usage(default: str | None, text: str) -> _Decorator:
    choice = Choice(["training", "hpc"])
    return click.option(
        "--usage", type=choice, default=default, show_default=bool(default), help=text
    )


def _division(default: str | None, text: str) -> _Decorator:
    choice = Choice(DIVISIONS)
    return click.option(
        "--division", type=choice, default=default, show_default=bool(default), help=text
    )


@click.group(name="rules", cls=Group)
def command() -> None:
    """Show what the rules ask, where they changed, and that they are current.

    Exit status: that of the command.

    \b
    Examples:
      mlperf-pkg rules list --round 5.1
      mlperf-pkg rules show RUN110
      mlperf-pkg rules diff 5.1 6.0
    """


@command.command(name="list")
@_usage(None, "Only this usage.")
@options.round_option("Only this round.")
@_benchmark
@_division("closed", "With --benchmark: whose rules.")
@_format
def list_(
    *, usage: str | None, round_: str | None, benchmark: str | None, division: str, format_: str
) -> int:
    """List rounds and benchmarks, or the rules of a benchmark.

    Without options all rounds, with --round its benchmarks with their targets
    and numbers of runs, with --benchmark the rules of its runs in that round
    or, without --round, in the newest that has it. A rule in brackets rests on
    the official checker or on the written rules alone.

    Exit status: 0 if there are such rules, 2 if not.

    \b
    Examples:
      mlperf-pkg rules list
      mlperf-pkg rules list --round 5.1
      mlperf-pkg rules list --benchmark bert --round 4.0 --division open
    """
    found = _rounds(usage, round_, benchmark)
    if benchmark:
        click.echo(_benchmark_rules(found[-1], benchmark, division, format_), nl=False)
    elif format_ == "json":
        click.echo(render.rounds_json(found), nl=False)
    elif round_:
        click.echo("\n".join(map(render.round_text, found)), nl=False)
    else:
        click.echo(render.rounds_text(found), nl=False)
    return 0


def _rounds(usage: str | None, name: str | None, benchmark: str | None) -> list[Round]:
    """The rounds asked for, oldest first.

    Raises:
        UserError: the rulebook has none.
    """
    several = [usage] if usage else list(reversed(usages()))
    known = [load_round(each, n) for each in several for n in rounds(each)]
    found = [each for each in known if name in (None, each.name)]
    if not found:
        names = list(dict.fromkeys(each.name for each in known))
        meant = did_you_mean(name or "", names)
        raise UserError(f"the rulebook has no round {name!r}: it has {', '.join(names)}{meant}")
    having = [each for each in found if benchmark in each.benchmarks or not benchmark]
    if not having:
        names = sorted({name for each in found for name in each.benchmarks})
        meant = did_you_mean(benchmark or "", names)
        raise UserError(f"no benchmark {benchmark!r} there: there are {', '.join(names)}{meant}")
    return having


def _benchmark_rules(round_: Round, name: str, division: str, format_: str) -> str:
    benchmark = loaded(round_, name)
    several = [*common_layers(round_, division), *benchmark_layers(benchmark, division)]
    write = render.benchmark_json if format_ == "json" else render.benchmark_text
    return write(round_, benchmark, effective(several))


@command.command()
@click.argument("code", shell_complete=completion.codes)
@_format
def show(*, code: str, format_: str) -> int:
    """Explain the CODE of a finding.

    What is asked, where and since when, whose rule it is, and a line of a log
    that meets it.

    Exit status: 0 if there is such a code, 2 if not.

    \b
    Examples:
      mlperf-pkg rules show BERT111
      mlperf-pkg rules show SET101
    """
    known = known_code(code)
    write = render.code_json if format_ == "json" else render.code_text
    click.echo(write(known), nl=False)
    return 0


@command.command()
@click.argument("old", callback=_round, shell_complete=completion.rounds)
@click.argument("new", callback=_round, shell_complete=completion.rounds)
@_usage("training", "The usage of the rounds.")
@_benchmark
@_division(None, "Only this division.")
@_format
def diff(
    *, old: str, new: str, usage: str, benchmark: str | None, division: str | None, format_: str
) -> int:
    """Show what changes for a submitter between rounds OLD and NEW.

    Exit status: 0 whether or not something changes, 2 if there is no such round.

    \b
    Examples:
      mlperf-pkg rules diff 5.1 6.0
      mlperf-pkg rules diff 2.0 2.1 --benchmark bert --division closed
      mlperf-pkg rules diff 1.0 3.0 --usage hpc
    """
    found = compare(usage, old, new, benchmark, division)
    write = render.comparison_json if format_ == "json" else render.comparison_text
    click.echo(write(found), nl=False)
    return 0


@command.command()
@click.option(
    "--against",
    type=LocalPath(exists=True, file_okay=False, path_type=Path),
    help="The folder of another mlperf_logging than the installed one.",
)
@click.option(
    "--accept",
    metavar="REASON",
    help="For maintainers: keep in rules/upstream.json that the rules that differ mean the same.",
)
@_format
def verify(*, against: Path | None, accept: str | None, format_: str) -> int:
    """Compare the rulebook with the installed mlperf-logging.

    Every difference is named, so that a change of the official checker is seen
    the day it is installed.

    Exit status: 0 if they agree, 1 if they differ, 2 if it could not be told.

    \b
    Examples:
      mlperf-pkg rules verify
      mlperf-pkg rules verify --against ~/logging/mlperf_logging
    """
    if accept:
        verification.accept(verification.verify(against), accept)
    found = verification.verify(against)
    reference = str(against) if against else f"mlperf-logging {version('mlperf-logging')}"
    count = sum(len(rounds(usage)) for usage in usages())
    if format_ == "json":
        click.echo(render.differences_json(found, reference), nl=False)
    else:
        click.echo(render.differences_text(found, reference, count), nl=False)
    return int(bool(found))
