"""``mlperf-pkg man``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from mlperf_pkg.cli.man_page import pages
from mlperf_pkg.cli.types import LocalPath
from mlperf_pkg.commands.desk.completion_files import data_home
from mlperf_pkg.infra.files import write_together
from mlperf_pkg.infra.text import visible


@click.command(name="man")
@click.argument("folder", required=False, type=LocalPath(file_okay=False, path_type=Path))
@click.pass_context
def command(ctx: click.Context, *, folder: Path | None) -> int:
    """Write the manual pages of all commands into FOLDER.

    The default is ~/.local/share/man/man1, where man looks for the pages of a user
    with ~/.local/bin on the PATH. Earlier pages are replaced. Write them again after
    an update of mlperf-pkg.

    Exit status: 0 if the pages were written, 2 if they could not be.

    \b
    Examples:
      mlperf-pkg man && man mlperf-pkg-check
      mlperf-pkg man /usr/local/share/man/man1
    """
    target = folder or data_home(os.environ) / "man" / "man1"
    texts = dict(pages(ctx.find_root()))
    write_together(target, texts, replace=True)
    click.echo(f"wrote {len(texts)} pages into {visible(str(target))}")
    return 0
