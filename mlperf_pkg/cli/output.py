"""The output of a command: standard output or files, each in a format and a width."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.stores import StoredFile, is_url
from mlperf_pkg.render import Checkout, View

_Result = TypeVar("_Result")

WIDTH_OF_FILES = 80


class Output(Struct, frozen=True):
    """A local or stored file, overwritten only with ``force``; None is standard output."""

    file: Path | StoredFile | None = None
    force: bool = False
    verbose: bool = False

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """Check before the work starts that the file can be written.

        Raises:
            UserError: the file exists, its folder does not, or it is inside an input.
        """
        if self.file is None:
            return
        from mlperf_pkg.infra.files import (  # noqa: PLC0415 - most reports are shown
            is_special,
            refuse_within,
        )

        refuse_within(self.file, inputs)
        if isinstance(self.file, Path):
            _refuse_folder(self.file)
            if is_special(self.file):
                return
        if self.file.exists() and not self.force:
            raise UserError(f"{self.file}: exists already; --force overwrites it")

    def view(self) -> View:
        """Return the width of the terminal, and whether it shows colours."""
        if self.file is not None:
            return View(WIDTH_OF_FILES, verbose=self.verbose)
        return View(_terminal_width(), color=_shows_colors(), verbose=self.verbose)

    def write(self, content: str) -> None:
        """Write the whole content.

        Raises:
            UserError: the file cannot be written.
            BrokenPipeError: standard output was closed by its reader.
        """
        if self.file is not None:
            from mlperf_pkg.infra.files import write_whole  # noqa: PLC0415 - most reports are shown

            write_whole(self.file, content, replace=self.force)
            return
        # Characters that the terminal's encoding lacks are written as escapes.
        encoding = sys.stdout.encoding or "utf-8"
        text = content.encode(encoding, "backslashreplace").decode(encoding)
        click.echo(text, nl=False, color=_shows_colors())

    @contextmanager
    def as_stdout(self) -> Iterator[None]:
        """Write what is printed meanwhile into the file, line by line, as it comes."""
        if self.file is None:
            yield
            return
        if not isinstance(self.file, Path):
            raise UserError(f"{self.file}: expected a local file")
        with self.file.open("w", encoding="utf-8", newline="\n") as file, redirect_stdout(file):
            yield


def _shows_colors() -> bool:
    """Return whether standard output shows colours; ``NO_COLOR`` overrides ``FORCE_COLOR``."""
    if os.environ.get("NO_COLOR"):
        return False
    is_capable = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return bool(os.environ.get("FORCE_COLOR")) or is_capable


def _terminal_width() -> int:
    """Return ``COLUMNS``, else the width of the terminal, as shutil, which is slow to import."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or WIDTH_OF_FILES
    except OSError:  # no terminal
        return WIDTH_OF_FILES


def _refuse_folder(file: Path) -> None:
    if file.is_dir():
        raise UserError(f"{file}: is a folder")
    if not file.parent.is_dir():
        raise UserError(f"{file}: the folder {file.parent} does not exist")


class Outputs(Struct, frozen=True):
    """Several outputs of one result, each with the name of its format."""

    by_format: tuple[tuple[str, Output], ...]
    force: bool = False

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """Check before the work starts that every output can be written.

        Raises:
            UserError: one of them cannot be written.
        """
        for _, output in self.by_format:
            output.refuse_early(inputs)

    def write(
        self,
        formats: Mapping[str, Callable[[_Result, View], str]],
        result: _Result,
        inputs: Sequence[str],
        adapt: Callable[[View], View] = lambda view: view,
    ) -> None:
        """Write the result of ``inputs``, rendered by ``formats``: all files or none.

        ``adapt`` adds to the view what the command's options say.

        Raises:
            UserError: a file cannot be written.
            BrokenPipeError: standard output was closed by its reader.
        """
        repository = checkout(inputs)
        contents = [
            (output, formats[name](result, adapt(replace(output.view(), checkout=repository))))
            for name, output in self.by_format
        ]
        if files := {output.file: content for output, content in contents if output.file}:
            from mlperf_pkg.infra.files import write_all  # noqa: PLC0415 - most reports are shown

            write_all(files, replace=self.force)
        for output, content in contents:
            if output.file is None:
                output.write(content)


def checkout(inputs: Sequence[str]) -> Checkout:
    """Return how the paths of a report of ``inputs`` map into the repository around this folder.

    Without a repository, paths start from the current folder. The paths of one input are relative
    to that folder (or to the folder of that file), those of several inputs to the current folder.
    """
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    base = here
    if len(inputs) == 1 and not is_url(inputs[0]):
        base = here / inputs[0]
        base = base if base.is_dir() else base.parent
    return Checkout(root.as_posix(), here.as_posix(), base.as_posix())
