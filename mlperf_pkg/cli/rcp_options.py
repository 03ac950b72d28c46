"""The arguments and options that the commands of ``mlperf-pkg rcp`` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from mlperf_pkg.cli import completion, options
from mlperf_pkg.cli.group import reads
from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.commands.rcp.reference import Origin, Reference, reference

_Command = Callable[..., Any]

BATCH_SIZE = click.IntRange(min=1, max=999_999_999)


def benchmark_argument(*, required: bool = True) -> Callable[[_Command], _Command]:
    """Add ``benchmark``."""
    return click.argument(
        "benchmark",
        required=required,
        callback=lambda _, __, value: value and value.lower(),
        shell_complete=completion.benchmarks,
    )


def round_option(function: _Command) -> _Command:
    """Add ``round_`` and ``usage``, by default that which has the benchmark."""
    text = "Use this round (default: the newest with points of the benchmark)."
    with_round: _Command = options.round_option(text)(reads("usage")(function))
    return with_round


def origin_options(function: _Command) -> _Command:
    """Add ``origin``, the source of the points."""

    @wraps(function)
    def with_origin(custom: Path | None, merge: bool, **others: Any) -> Any:
        if merge and not custom:
            raise click.UsageError("--merge needs --custom FILE")
        return function(origin=Origin(custom, merge), **others)

    merging = click.option(
        "--merge",
        is_flag=True,
        help="Add the points of --custom FILE to those of mlperf-logging; a point of FILE"
        " replaces one of the same batch size.",
    )(with_origin)
    return click.option(
        "--custom",
        type=LocalPath(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Use the points in FILE (format of mlperf-logging) instead of those of"
        " mlperf-logging.",
    )(merging)


def one_reference(function: _Command) -> _Command:
    """Add the arguments and options that name the points of one benchmark: ``reference``."""

    @wraps(function)
    def with_reference(
        benchmark: str, usage: str | None, round_: str | None, origin: Origin, **others: Any
    ) -> Any:
        points: Reference = reference(usage, round_, benchmark, origin)
        return function(reference=points, **others)

    decorated: _Command = with_reference
    for decorate in (origin_options, round_option, benchmark_argument()):
        decorated = decorate(decorated)
    return decorated
