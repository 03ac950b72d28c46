"""``mlperf-pkg init``."""

from pathlib import Path

import click
from msgspec.structs import replace

from mlperf_pkg.cli import options
from mlperf_pkg.cli.group import FOLDER, Command
from mlperf_pkg.cli.output import note, say
from mlperf_pkg.commands.builder.configuration import config_text, proposed
from mlperf_pkg.commands.builder.plan import make_plan
from mlperf_pkg.commands.builder.prepare import Order, Prepared, prepare
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.config import CONFIG_NAME, read_config_file
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.text import visible


@click.command(name="init", cls=Command)
@click.argument("workspace", default=".", type=FOLDER)
@options.force_option("Overwrite an existing configuration.")
def command(*, workspace: Path, force: bool) -> int:
    """Write mlperf-pkg.yaml, the configuration of a workspace.

    The file lists every key with its meaning. Values that follow from the logs in logs/
    and the descriptions in systems/ are filled in; all other keys have an example,
    which is commented out. If it is unclear to which system some logs belong, the file
    has, for each possible system, a list of logs to fill in. The command prints what is
    left to fill in.

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
        raise UserError(f"{path} exists already; --force overwrites it")
    prepared = _prepared(workspace)
    if prepared is None:
        write_whole(path, config_text({}, ()), replace=force)
        click.echo(visible(str(path)))
        return 0
    fields, to_do = proposed(prepared.workspace, prepared.plan)
    write_whole(path, config_text(fields, to_do), replace=force)
    click.echo(visible(str(path)))
    say("to do", to_do)
    completed = replace(prepared.workspace, config=read_config_file(path))
    say("left to fill in", make_plan(completed).problems)
    return 0


def _prepared(workspace: Path) -> Prepared | None:
    """Return what is in the workspace; None where there are no logs or systems yet."""
    try:
        return prepare(Folders.of(workspace), Order(invalid="keep", allow_outside=True))
    except UserError as error:
        note(str(error))
        note(
            f"{CONFIG_NAME} was written without values, as there are no logs or systems yet to"
            " take them from"
        )
        return None
