"""Options of the commands that write a system description."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from mlperf_pkg.checks.system_schema import FILL_IN
from mlperf_pkg.cli import options
from mlperf_pkg.cli.output import Output
from mlperf_pkg.commands.system import UserValues
from mlperf_pkg.commands.system.check import round_of_systems
from mlperf_pkg.infra.text import visible

_Command = Callable[..., Any]
_OPTIONS = (
    options.round_option(options.SYSTEM_ROUND),
    click.option("--submitter", metavar="ORG", help="Set the submitting organisation."),
    options.division_option("Set the division."),
    click.option("--status", metavar="TEXT", help="Set the availability, such as onprem or cloud."),
    click.option("--name", metavar="TEXT", help="Set the system's name in the results table."),
    click.option(
        "--nodes", type=click.IntRange(min=1), metavar="N", help="Set the number of nodes."
    ),
    options.output_option("Write to FILE (default: standard output).", metavar="FILE"),
    options.force_option(),
)


def described(function: _Command) -> _Command:
    """Add the options: the function receives ``user_values`` and ``target`` (``Output``)."""

    @wraps(function)
    def with_values(
        *,
        round_: str | None,
        submitter: str | None,
        division: str | None,
        status: str | None,
        name: str | None,
        nodes: int | None,
        output: Any,
        force: bool,
        **others: Any,
    ) -> Any:
        chosen = round_of_systems(options.workspace_options(round_))
        values = UserValues(chosen.name, submitter, division, status, name, nodes, chosen.usage)
        return function(user_values=values, target=Output(output, force), **others)

    for option in reversed(_OPTIONS):
        with_values = option(with_values)
    return with_values


def write_description(target: Output, fields: Mapping[str, Any]) -> None:
    """Write a description, and list the fields to fill in on standard error."""
    target.write(f"{json.dumps(fields, indent=2)}\n")
    missing = [field for field, value in fields.items() if FILL_IN in str(value)]
    if missing:
        click.echo(f"fields to fill in: {visible(', '.join(missing))}", err=True)
