"""The output of a command: standard output or files, each in a format and a width."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.errors import EMPTY_PATH, UserError
from mlperf_pkg.infra.stores import StoredFile, is_url
from mlperf_pkg.infra.text import did_you_mean, visible
from mlperf_pkg.render import Checkout, View

if TYPE_CHECKING:
    from mlperf_pkg.infra.files import Content

WIDTH_OF_FILES = 80
DEFAULT = "text"

Formats = Mapping[str, Callable[[Any, Any], str]]
"""The renderers of a result for a ``View``, by the names of their formats."""


class Output(Struct, frozen=True):
    """A local or stored file, overwritten only with ``force``; None is standard output.

    A result is written in one of the ``formats``.
    """

    file: Path | StoredFile | None = None
    force: bool = False
    verbose: bool = False
    format: str = DEFAULT
    formats: Formats = {}

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """Check before the work starts that the file can be written.

        Raises:
            UserError: the file exists, its folder does not, or it is inside an input.
        """
        if self.file is None:
            return
        from mlperf_pkg.infra import files  # noqa: PLC0415 - most reports are shown

        files.refuse_within(self.file, [*inputs, *_config_files()])
        if isinstance(self.file, Path):
            if self.file.is_dir():
                raise UserError(f"{self.file}: is a folder")
            if not self.file.parent.is_dir():
                raise UserError(f"{self.file}: the folder {self.file.parent} does not exist")
            if files.is_written_into(self.file):
                return
        if self.file.exists() and not self.force:
            raise UserError(f"{self.file} exists already; --force overwrites it")

    def view(self) -> View:
        """Return the width of the terminal, and whether it shows colours."""
        if self.file is not None:
            return View(WIDTH_OF_FILES, verbose=self.verbose)
        return View(
            _terminal_width(),
            color=_shows_colors(),
            wraps=sys.stdout.isatty(),
            verbose=self.verbose,
        )

    def show(self, result: Any, pictures: Mapping[Path, bytes] = {}) -> None:
        """Write a result in the format of this output, and ``pictures`` of it as ``write`` does.

        Raises:
            UserError: a file cannot be written.
            BrokenPipeError: standard output was closed by its reader.
        """
        self.write(self.formats[self.format](result, self.view()), pictures)

    def write(self, content: Content, others: Mapping[Path, bytes] = {}) -> None:
        """Write the whole content, together with other files: all files or none.

        Standard output has the content even where ``others`` cannot be written.

        Raises:
            UserError: a file cannot be written.
            BrokenPipeError: standard output was closed by its reader.
        """
        files: dict[Path | StoredFile, Content] = {}
        for path, data in others.items():
            files[path] = data
        if self.file is not None:
            if self.file in files:
                raise UserError(f"{self.file}: is named for two outputs")
            files[self.file] = content
        try:
            if files:
                from mlperf_pkg.infra.files import write_all  # noqa: PLC0415 - most are shown

                write_all(files, replace=self.force)
        finally:
            if self.file is None:
                self._print(content)

    def _print(self, content: Content) -> None:
        if not isinstance(content, str):
            from mlperf_pkg.infra.files import pieces_of  # noqa: PLC0415 - most are text

            for piece in pieces_of(content):
                self._print(piece.decode())
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
        try:
            with self.file.open("w", encoding="utf-8", newline="\n") as file, redirect_stdout(file):
                yield
        except OSError as error:
            error.filename = error.filename or str(self.file)  # a disk that is full names no file
            raise


def note(text: str) -> None:
    """Write a note, of one line, to standard error."""
    click.echo(visible(f"note: {text}"), err=True)


def say(kind: str, messages: Iterable[str]) -> None:
    """Write messages, whose names are visible already, to standard error, each after its kind."""
    for message in messages:
        for line in f"{kind}: {message}".split("\n"):
            click.echo(visible(line), err=True)


def _shows_colors() -> bool:
    """Return whether standard output shows colours; ``NO_COLOR`` overrides ``FORCE_COLOR``."""
    if os.environ.get("NO_COLOR"):
        return False
    is_capable = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    return bool(os.environ.get("FORCE_COLOR")) or is_capable


def _terminal_width() -> int:
    """Return ``COLUMNS``, else the width of the terminal, as shutil, which is slow to import."""
    columns = os.environ.get("COLUMNS", "")
    if re.fullmatch("[0-9]{1,4}", columns) and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or WIDTH_OF_FILES
    except OSError:  # no terminal
        return WIDTH_OF_FILES


def _config_files() -> list[str]:
    """Return the path of the configuration, if there is one."""
    context = click.get_current_context(silent=True)
    config = context.find_root().params.get("config") if context else None
    file = Path(config or CONFIG_NAME)
    return [str(file)] if file.is_file() else []


def refuse_same(*outputs: Path | StoredFile | None) -> None:
    """Refuse two outputs to the same file; None stands for an output that is not written.

    Raises:
        UserError: two outputs are the same file.
    """
    from mlperf_pkg.infra.files import is_written_into  # noqa: PLC0415 - most reports are shown

    files = [file for file in outputs if file is not None and not is_written_into(file)]
    resolved = [file.resolve() for file in files]
    for number, file in enumerate(files):
        if resolved[number] in resolved[:number]:
            raise UserError(f"{file}: is named for two outputs")


class Outputs(Struct, frozen=True):
    """Several outputs of one result, each in its format."""

    every: tuple[Output, ...]

    @property
    def force(self) -> bool:
        """Whether existing files are overwritten, which holds for all outputs."""
        return self.every[0].force

    @property
    def files(self) -> list[Path | StoredFile]:
        """The files that are written."""
        return [output.file for output in self.every if output.file is not None]

    def refuse_early(self, inputs: Sequence[str]) -> None:
        """Check before the work starts that every output can be written.

        Raises:
            UserError: one of them cannot be written.
        """
        for output in self.every:
            output.refuse_early(inputs)

    def show(
        self, result: Any, inputs: Sequence[str], adapt: Callable[[View], View] = lambda view: view
    ) -> None:
        """Write the result of ``inputs`` in every format: all files or none.

        ``adapt`` adds to the view what the command's options say.

        Raises:
            UserError: a file cannot be written.
            BrokenPipeError: standard output was closed by its reader.
        """
        repository = checkout(inputs)
        contents = []
        for output in self.every:
            view = adapt(replace(output.view(), checkout=repository))
            contents.append((output, output.formats[output.format](result, view)))
        files = {output.file: content for output, content in contents if output.file}
        if files:
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
    base = here
    if len(inputs) == 1 and not is_url(inputs[0]):
        base = here / inputs[0]
    if not base.is_dir():
        base = base.parent
    return Checkout(_repository(here).as_posix(), here.as_posix(), base.as_posix())


def _repository(here: Path) -> Path:
    """Return the folder of the repository around a folder, or that folder if there is none."""
    for folder in (here, *here.parents):
        if (folder / ".git").exists():
            return folder
    return here


# ---- the files and formats of --format and -o [FORMAT:]FILE -------------------------------

STDOUT = "-"
_ENDINGS = {
    ".json": "json",
    ".sarif": "sarif",
    ".xml": "junit",
    ".md": "markdown",
    ".csv": "csv",
    ".log": "log",
    ".yaml": "yaml",
    ".ics": "ics",
    ".sh": "gh",
}
_PREFIX = r"(?s:([a-z]+):(?!//)(.*))"


def destinations(
    outputs: Sequence[str], format_: str | None, formats: Sequence[str]
) -> list[tuple[str, Path | StoredFile | None]]:
    """Return the format and file of each output; the file None is standard output, the default.

    The format of an output is its prefix. Without a prefix it is ``format_`` if there is only one
    output; otherwise the ending of the file decides, and then ``format_``.

    Raises:
        click.UsageError: a prefix is not a format, a file has no name or is named twice.
    """
    if "" in outputs:
        raise click.UsageError(f"-o: {EMPTY_PATH}")
    parsed = [_destination(value, formats) for value in outputs or [STDOUT]]
    _refuse_twice(outputs, [file for _, file in parsed])
    chosen = []
    for prefix, file in parsed:
        if prefix:
            name = prefix
        elif format_ and len(parsed) == 1:
            name = format_
        else:
            name = _by_ending(file, formats) or format_ or DEFAULT
        chosen.append((name, file))
    return chosen


def _refuse_twice(outputs: Sequence[str], files: Sequence[Path | StoredFile | None]) -> None:
    """Refuse outputs of which several are the same file; the message names the last of them."""
    resolved = [file and file.resolve() for file in files]
    for output, file in reversed(list(zip(outputs, resolved, strict=False))):
        if resolved.count(file) > 1:
            raise click.UsageError(f"-o {output} is given twice")


def _by_ending(file: Path | StoredFile | None, formats: Sequence[str]) -> str | None:
    """Return the format that the ending of a file names, if the command has it."""
    if file is None:
        return None
    name = _ENDINGS.get(file.suffix.lower())
    return name if name in formats else None


def _destination(value: str, formats: Sequence[str]) -> tuple[str | None, Path | StoredFile | None]:
    prefix = None
    name = value
    matched = re.fullmatch(_PREFIX, value)
    if matched:
        prefix, name = matched.groups()
    if prefix is not None and prefix not in formats:
        expected = f"; expected one of {', '.join(formats)}"
        suggestion = did_you_mean(prefix, formats) or expected
        raise click.UsageError(
            f"-o {value}: unknown format {prefix!r}{suggestion} (to write to a file of this name,"
            f" give ./{value})"
        )
    if not name:
        raise click.UsageError(f"-o {value}: no file name")
    if name == STDOUT:
        return prefix, None
    return prefix, StoredFile(name) if is_url(name) else Path(name)
