"""``mlperf-pkg rules``: show the rulebook, and compare it with the official checker."""

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
from mlperf_pkg.rulebook.files import rounds, usages
from mlperf_pkg.rulebook.load import load_round
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
    help="Output format.",
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
    """Show the rules and their changes, and verify that they are current.

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
@_division("closed", "The division of the rules that --benchmark lists.")
@_format
def list_(
    *, usage: str | None, round_: str | None, benchmark: str | None, division: str, format_: str
) -> int:
    """List rounds and benchmarks, or the rules of a benchmark.

    Without options, list all rounds. With --round, list its benchmarks with
    their targets and numbers of runs. With --benchmark, list the rules of the
    benchmark in that round or, without --round, in its newest one. Brackets mark
    rules that only the official checker or only the written rules have.

    Exit status: 0 if the rulebook has such rules, 2 if not.

    \b
    Examples:
      mlperf-pkg rules list
      mlperf-pkg rules list --round 5.1
      mlperf-pkg rules list --benchmark bert --round 4.0 --division open
    """
    chosen = _rounds(usage, round_, benchmark)
    if benchmark:
        click.echo(_benchmark_rules(chosen[-1], benchmark, division, format_), nl=False)
    elif format_ == "json":
        click.echo(render.rounds_json(chosen), nl=False)
    elif round_:
        click.echo("\n".join(map(render.round_text, chosen)), nl=False)
    else:
        click.echo(render.rounds_text(chosen), nl=False)
    return 0


def _rounds(usage: str | None, name: str | None, benchmark: str | None) -> list[Round]:
    """Return the rounds of a usage, name and benchmark, as far as these are given, by age.

    Raises:
        UserError: the rulebook has none.
    """
    chosen_usages = [usage] if usage else list(reversed(usages()))
    candidates = [load_round(item, n) for item in chosen_usages for n in rounds(item)]
    chosen = [round_ for round_ in candidates if name in (None, round_.name)]
    if not chosen:
        names = list(dict.fromkeys(round_.name for round_ in candidates))
        meant = did_you_mean(name or "", names)
        raise UserError(f"the rulebook has no round {name!r}: it has {', '.join(names)}{meant}")
    having = [round_ for round_ in chosen if benchmark in round_.benchmarks or not benchmark]
    if not having:
        names = sorted({name for round_ in chosen for name in round_.benchmarks})
        meant = did_you_mean(benchmark or "", names)
        where = f"round {name}" if name else "the rulebook"
        raise UserError(f"{where} has no benchmark {benchmark!r}: it has {', '.join(names)}{meant}")
    return having


def _benchmark_rules(round_: Round, name: str, division: str, format_: str) -> str:
    benchmark = loaded(round_, name)
    layers = [*common_layers(round_, division), *benchmark_layers(benchmark, division)]
    write = render.benchmark_json if format_ == "json" else render.benchmark_text
    return write(round_, benchmark, effective(layers))


@command.command()
@click.argument("code", shell_complete=completion.codes)
@_format
def show(*, code: str, format_: str) -> int:
    """Explain the CODE of a finding.

    Show what the rule requires, where and since when, its basis and source, and
    a line of a log that meets it.

    Exit status: 0 if the code exists, 2 if not.

    \b
    Examples:
      mlperf-pkg rules show BERT111
      mlperf-pkg rules show SET101
    """
    write = render.code_json if format_ == "json" else render.code_text
    click.echo(write(known_code(code)), nl=False)
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

    Exit status: 0 with or without changes, 2 if a round does not exist.

    \b
    Examples:
      mlperf-pkg rules diff 5.1 6.0
      mlperf-pkg rules diff 2.0 2.1 --benchmark bert --division closed
      mlperf-pkg rules diff 1.0 3.0 --usage hpc
    """
    comparison = compare(usage, old, new, benchmark, division)
    write = render.comparison_json if format_ == "json" else render.comparison_text
    click.echo(write(comparison), nl=False)
    return 0


@command.command()
@click.option(
    "--against",
    type=LocalPath(exists=True, file_okay=False, path_type=Path),
    help="Compare with the mlperf_logging in this folder instead of the installed one.",
)
@click.option(
    "--accept",
    metavar="REASON",
    help="For maintainers: record all differing rules as equivalent in rules/upstream.json.",
)
@_format
def verify(*, against: Path | None, accept: str | None, format_: str) -> int:
    """Compare the rulebook with the installed mlperf-logging.

    Report every difference, so that no change in a new version of the official
    checker goes unnoticed.

    Exit status: 0 if they agree, 1 if they differ, 2 if they cannot be compared.

    \b
    Examples:
      mlperf-pkg rules verify
      mlperf-pkg rules verify --against ~/logging/mlperf_logging
    """
    if accept:
        verification.accept(verification.verify(against), accept)
    differences = verification.verify(against)
    reference = str(against) if against else f"mlperf-logging {version('mlperf-logging')}"
    count = sum(len(rounds(usage)) for usage in usages())
    if format_ == "json":
        click.echo(render.differences_json(differences, reference), nl=False)
    else:
        click.echo(render.differences_text(differences, reference, count), nl=False)
    return int(bool(differences))
