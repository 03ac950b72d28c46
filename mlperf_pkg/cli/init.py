"""``mlperf-pkg init``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.commands.builder.explain import explained
from mlperf_pkg.commands.builder.prepare import Order, prepare
from mlperf_pkg.commands.builder.template import config_text
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.text import visible


@click.command(name="init")
@click.argument("workspace", default=".", type=LocalPath(file_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite a configuration that exists.")
def command(*, workspace: Path, force: bool) -> int:
    """Write the configuration of a workspace, mlperf-pkg.yaml.

    Every key stands in it with its meaning. What the logs in logs/ and the
    descriptions in systems/ tell is filled in; the rest are examples, commented
    out.

    Exit status: 0 if it was written, 2 if not.

    \b
    Examples:
      mlperf-pkg init
      mlperf-pkg init work --force
    """
    if not workspace.is_dir():
        raise UserError(f"{workspace}: no such folder")
    path = workspace / CONFIG_NAME
    if path.exists() and not force:
        raise UserError(f"{path}: exists already; --force overwrites it")
    write_whole(path, config_text(_told(workspace)), replace=force)
    click.echo(visible(str(path)))
    return 0


def _told(workspace: Path) -> Mapping[str, Any]:
    """What logs and systems tell; nothing where there are none yet."""
    try:
        prepared = prepare(Folders.of(workspace), Order(keep_invalid=True))
    except UserError as error:
        click.echo(visible(f"note: nothing could be filled in: {error}"), err=True)
        return {}
    return explained(prepared.workspace, prepared.plan)
