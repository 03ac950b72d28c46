"""``mlperf-pkg doctor``."""

import textwrap

import click

from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import Command
from mlperf_pkg.cli.output import Formats, Output
from mlperf_pkg.commands.doctor import FORMAT, Diagnosis, State, diagnoses
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.table import json_text

_NAME = 18  # columns
_INDENT = " " * (len(State.BROKEN) + _NAME + 3)


def _lines(result: Diagnosis) -> str:
    start = f"{result.state:<{len(State.BROKEN)}} {result.name:<{_NAME}} "
    text = textwrap.fill(
        visible(result.text),
        width=80,
        initial_indent=start,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
    repair = f"{_INDENT}{visible(result.repair)}\n" if result.repair else ""
    return f"{text}\n{repair}"


_FORMATS: Formats = {
    "text": lambda results, _: "".join(map(_lines, results)),
    "json": lambda results, _: json_text({"format": FORMAT, "diagnoses": results}),
}


@click.command(name="doctor", cls=Command)
@options.written(_FORMATS)
def command(*, target: Output) -> int:
    """Show what is installed and works, and how to repair the rest.

    Shows versions, extras and what they are for, the rounds that mlperf-logging and
    the rulebook have, the data of the package, and the folders that are written.
    Each line is ok, a note (a limit, or something optional that is missing) or
    broken. Below it is the command that changes that.

    Exit status: 0 if nothing is broken, 1 if something is.

    \b
    Examples:
      mlperf-pkg doctor
      mlperf-pkg doctor --format json
    """
    target.refuse_early(())
    results = tuple(diagnoses())
    target.show(results)
    return int(any(result.state is State.BROKEN for result in results))
