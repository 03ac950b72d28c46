"""The files and formats that ``--format`` and ``-o [FORMAT:]FILE`` name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from mlperf_pkg.infra.stores import StoredFile, is_url
from mlperf_pkg.infra.text import did_you_mean

STDOUT = "-"
DEFAULT = "text"
_ENDINGS = {
    ".json": "json",
    ".sarif": "sarif",
    ".xml": "junit",
    ".md": "markdown",
    ".csv": "csv",
    ".log": "log",
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
    parsed = [_destination(value, formats) for value in outputs or [STDOUT]]
    files = [file and file.resolve() for _, file in parsed]
    if twice := [name for name, file in zip(outputs, files, strict=False) if files.count(file) > 1]:
        raise click.UsageError(f"-o {twice[-1]} is given twice")
    alone = format_ if len(parsed) == 1 else None
    return [
        (prefix or alone or _by_ending(file, formats) or format_ or DEFAULT, file)
        for prefix, file in parsed
    ]


def _destination(value: str, formats: Sequence[str]) -> tuple[str | None, Path | StoredFile | None]:
    matched = re.fullmatch(_PREFIX, value)
    prefix, name = matched.groups() if matched else (None, value)
    if prefix is not None and prefix not in formats:
        suggestion = did_you_mean(prefix, formats) or f"; expected one of {', '.join(formats)}"
        raise click.UsageError(
            f"-o {value}: unknown format {prefix!r}{suggestion}"
            f" (for a file of this name, write ./{value})"
        )
    if not name:
        raise click.UsageError(f"-o {value}: no file name")
    if name == STDOUT:
        return prefix, None
    return prefix, StoredFile(name) if is_url(name) else Path(name)


def _by_ending(file: Path | StoredFile | None, formats: Sequence[str]) -> str | None:
    format_ = _ENDINGS.get(file.suffix.lower()) if file else None
    return format_ if format_ in formats else None
