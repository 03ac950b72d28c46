"""Which format goes where: what the values of ``--format`` and ``-o [FORMAT:]FILE`` mean."""

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
}
_PREFIX = re.compile(r"([a-z]+):(?!//)(.*)", re.DOTALL)


def destinations(
    outputs: Sequence[str], format_: str | None, formats: Sequence[str]
) -> list[tuple[str, Path | StoredFile | None]]:
    """Formats and files, None for standard output, which it is without ``outputs``.

    The format of an output is its prefix. Without one it is ``format_`` if there is but one
    output; else it follows from the file's ending, and only then from ``format_``.

    Raises:
        click.UsageError: a prefix is no format, a file has no name or is named twice.
    """
    found = [_destination(each, formats) for each in outputs or [STDOUT]]
    files = [file and file.resolve() for _, file in found]
    if again := [name for name, file in zip(outputs, files, strict=False) if files.count(file) > 1]:
        raise click.UsageError(f"-o {again[-1]} is given twice")
    alone = format_ if len(found) == 1 else None
    return [
        (prefix or alone or _by_ending(file, formats) or format_ or DEFAULT, file)
        for prefix, file in found
    ]


def _destination(value: str, formats: Sequence[str]) -> tuple[str | None, Path | StoredFile | None]:
    matched = _PREFIX.fullmatch(value)
    prefix, name = matched.groups() if matched else (None, value)
    if prefix is not None and prefix not in formats:
        meant = did_you_mean(prefix, formats) or f": there are {', '.join(formats)}"
        raise click.UsageError(
            f"-o {value}: no format {prefix!r}{meant} (./{value} is a file of that name)"
        )
    if not name:
        raise click.UsageError(f"-o {value}: no file is named")
    if name == STDOUT:
        return prefix, None
    return prefix, StoredFile(name) if is_url(name) else Path(name)


def _by_ending(file: Path | StoredFile | None, formats: Sequence[str]) -> str | None:
    named = _ENDINGS.get(file.suffix.lower()) if file else None
    return named if named in formats else None
