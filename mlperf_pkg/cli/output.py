"""Where the output of a command goes, and how it looks there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_several, write_whole
from mlperf_pkg.infra.stores import StoredFile, is_url, is_within
from mlperf_pkg.render import Checkout, View

_Result = TypeVar("_Result")

WIDTH_OF_FILES = 80


def refuse_within(path: Path | StoredFile, inputs: Sequence[str]) -> None:
    """Nothing is ever written into what is read.

    Raises:
        UserError: ``path`` lies within one of ``inputs``.
    """
    if isinstance(path, StoredFile):
        within = any(is_within(path.url, each) for each in inputs)
    else:
        within = any(path.resolve().is_relative_to(Path(each).resolve()) for each in inputs)
    if within:
        raise UserError(f"{path}: is within what is read, where nothing is ever written")


class Output(Struct, frozen=True):
    """A file, here or in a store, overwritten only by ``force``; standard output if None."""

    file: Path | StoredFile | None = None
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
        if isinstance(self.file, Path):
            _refuse_folder(self.file)
        if self.file.exists() and not self.force:
            raise UserError(f"{self.file}: exists already; --force overwrites it")

    def view(self) -> View:
        """The width of the terminal, and colours if there is one that wants them."""
        if self.file is not None:
            return View(WIDTH_OF_FILES, verbose=self.verbose)
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        from shutil import get_terminal_size  # noqa: PLC0415 - slow to import

        width = get_terminal_size((WIDTH_OF_FILES, 24)).columns
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


def _refuse_folder(file: Path) -> None:
    if file.is_dir():
        raise UserError(f"{file}: is a folder")
    if not file.parent.is_dir():
        raise UserError(f"{file}: there is no folder {file.parent}")


class Outputs(Struct, frozen=True):
    """One result for several places, for each in a format: ``("json", Output(...))``."""

    listed: tuple[tuple[str, Output], ...]
    force: bool = False

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """As each ``Output``.

        Raises:
            UserError: one of them cannot be written.
        """
        for _, target in self.listed:
            target.refuse_early(inputs)

    def write(
        self,
        formats: Mapping[str, Callable[[_Result, View], str]],
        result: _Result,
        inputs: Sequence[str],
    ) -> None:
        """Write what ``formats`` make of the result of ``inputs``: all files or none.

        Raises:
            UserError: a file cannot be written.
            BrokenPipeError: nobody reads standard output any longer.
        """
        where = checkout(inputs)
        made = [
            (target, formats[name](result, replace(target.view(), checkout=where)))
            for name, target in self.listed
        ]
        files = {target.file: content for target, content in made if target.file}
        write_several(files, replace=self.force)
        for target, content in made:
            if target.file is None:
                target.write(content)


def checkout(inputs: Sequence[str]) -> Checkout:
    """Where the paths of a report of ``inputs`` lie in the repository around this folder.

    Without a repository they are told from this folder. The paths of one input start from it, or
    from the folder it lies in, those of several from here.
    """
    here = Path.cwd()
    root = next((each for each in (here, *here.parents) if (each / ".git").exists()), here)
    base = here
    if len(inputs) == 1 and not is_url(inputs[0]):
        base = here / inputs[0]
        base = base if base.is_dir() else base.parent
    return Checkout(root.as_posix(), here.as_posix(), base.as_posix())
