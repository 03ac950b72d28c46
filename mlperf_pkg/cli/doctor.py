"""``mlperf-pkg doctor``."""

import textwrap
from collections.abc import Sequence

import click

from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.doctor import FORMAT, Diagnosis, DiagnosisState, diagnoses
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import View
from mlperf_pkg.render.table import json_text

_NAME = 18  # columns
_INDENT = " " * (len(DiagnosisState.BROKEN) + _NAME + 3)


def _lines(result: Diagnosis) -> str:
    start = f"{result.state:<{len(DiagnosisState.BROKEN)}} {result.name:<{_NAME}} "
    text = textwrap.fill(
        visible(result.text),
        width=80,
        initial_indent=start,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if not result.repair:
        return f"{text}\n"
    return f"{text}\n{_INDENT}{visible(result.repair)}\n"


def _text(results: Sequence[Diagnosis], _: View) -> str:
    return "".join(map(_lines, results))


def _json(results: Sequence[Diagnosis], _: View) -> str:
    return json_text({"format": FORMAT, "diagnoses": results})


@click.command(name="doctor", cls=Command)
@options.written({"text": _text, "json": _json})
def command(*, target: Output) -> int:
    """Show what is installed and works, and how to repair the rest.

    The lines are about the versions of Python and packages, the optional packages and
    their use, the rounds that mlperf-logging and mlperf-pkg know, the data of
    mlperf-pkg, and the folders into which it writes. Each line begins with ok, note (a
    limit, or something optional that is missing) or broken. If a command can repair
    the problem, the command is printed below the line.

    Exit status: 0 if nothing is broken, 1 if something is.

    \b
    Examples:
      mlperf-pkg doctor
      mlperf-pkg doctor --format json
    """
    target.refuse_early(())
    results = tuple(diagnoses())
    target.show(results)
    return int(any(result.state is DiagnosisState.BROKEN for result in results))
