"""``--rules DIR``: rules of one's own, before a command or after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

PATH = click.Path(exists=True, file_okay=False, path_type=Path)


def use_rules(ctx: click.Context, folder: Path) -> None:
    """Check a folder of rules and read it before that of the package, while the command runs."""
    from mlperf_pkg.infra.resources import rules_read_from  # noqa: PLC0415 - slow to import
    from mlperf_pkg.rulebook.check import check_rulebook  # noqa: PLC0415

    ctx.with_resource(rules_read_from(folder))
    check_rulebook(folder)


def rules_option(function: Any) -> Any:
    """Add ``--rules`` to a command: it replaces that before the command."""
    return click.option(
        "--rules",
        type=PATH,
        metavar="DIR",
        is_eager=True,
        expose_value=False,
        callback=_use,
        help="Read rounds and benchmarks from DIR too, as 'mlperf-pkg --rules DIR'.",
    )(function)


def _use(ctx: click.Context, _: click.Parameter, folder: Path | None) -> None:
    if folder is None:
        return
    if ctx.resilient_parsing:  # completions read the folder themselves
        ctx.find_root().params["rules"] = folder
        return
    use_rules(ctx.find_root(), folder.absolute())  # closed even if parsing fails
