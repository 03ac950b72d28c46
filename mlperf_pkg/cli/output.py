"""Where the output of a command goes, and how it looks there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from mlperf_pkg.errors import UserError
from mlperf_pkg.files import write_whole
from mlperf_pkg.render import View

WIDTH_OF_FILES = 80


def refuse_within(path: Path, inputs: Sequence[str]) -> None:
    """Nothing is ever written into what is read.

    Raises:
        UserError: ``path`` lies within one of ``inputs``.
    """
    if any(path.resolve().is_relative_to(Path(each).resolve()) for each in inputs):
        raise UserError(f"{path}: is within what is read, where nothing is ever written")


@dataclass(frozen=True, slots=True)
class Output:
    """A file, to be overwritten only by ``force``, or standard output (``file`` None)."""

    file: Path | None = None
    force: bool = False
    verbose: bool = False

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """Refuse before the work rather than after it.

        Raises:
            UserError: the file exists or has no folder, or it would be written into an input.
        """
        if self.file is None:
            return
        refuse_within(self.file, inputs)
        if not self.file.parent.is_dir():
            raise UserError(f"{self.file}: there is no folder {self.file.parent}")
        if self.file.exists() and not self.force:
            raise UserError(f"{self.file}: exists already; --force overwrites it")

    def view(self) -> View:
        """The width of the terminal, and colours if there is one that wants them."""
        if self.file is not None:
            return View(WIDTH_OF_FILES, verbose=self.verbose)
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        width = shutil.get_terminal_size((WIDTH_OF_FILES, 24)).columns
        return View(width, color=color and os.environ.get("TERM") != "dumb", verbose=self.verbose)

    def write(self, content: str) -> None:
        """Write the whole of it.

        Raises:
            UserError: the file cannot be written.
            BrokenPipeError: nobody reads standard output any longer.
        """
        if self.file is not None:
            write_whole(self.file, content, replace=self.force)
            return
        # What the encoding of a pipe or terminal lacks is spelt out.
        encoding = sys.stdout.encoding or "utf-8"
        click.echo(content.encode(encoding, "backslashreplace").decode(encoding), nl=False)
