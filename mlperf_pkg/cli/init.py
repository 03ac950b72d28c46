"""``mlperf-pkg init``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mlperf_pkg.cli import options
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
@options.force_option("Overwrite an existing configuration.")
def command(*, workspace: Path, force: bool) -> int:
    """Write mlperf-pkg.yaml, the configuration of a workspace.

    The file lists every key with its meaning. Values that follow from the logs in
    logs/ and the descriptions in systems/ are filled in; the others are examples,
    commented out.

    Exit status: 0 if the file was written, 2 if it could not be.

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
    write_whole(path, config_text(_settings(workspace)), replace=force)
    click.echo(visible(str(path)))
    return 0


def _settings(workspace: Path) -> Mapping[str, Any]:
    """Return the settings that follow from logs and systems; none where there are no files yet."""
    try:
        prepared = prepare(Folders.of(workspace), Order(keep_invalid=True, allow_outside=True))
    except UserError as error:
        click.echo(visible(f"note: no value could be filled in: {error}"), err=True)
        return {}
    return explained(prepared.workspace, prepared.plan)
