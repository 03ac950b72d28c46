"""Write the objections of a check: one document, or a folder of files and their states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review.objection_file import NAME, read_entries, with_new
from mlperf_pkg.commands.review.objection_text import objection_text
from mlperf_pkg.commands.review.objections import (
    ALL,
    Examined,
    Objection,
    examine,
    find_objections,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.text import visible
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.explain.codes import known_prefix

_PRINTED = 5  # objections


def wanted_codes(text: str) -> tuple[str, ...]:
    """Return the prefixes of codes in a string, separated by commas.

    Raises:
        UserError: no code begins with one of them.
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(part if part == ALL else known_prefix(part) for part in parts)


def texts(path: str, options: Options, wanted: Sequence[str], by: str | None) -> str:
    """Return the text of the objections in a path, separated by lines.

    Raises:
        UserError: there are no objections, or too many to be shown.
    """
    examined, objections = _objections(path, options, wanted)
    if len(objections) > _PRINTED:
        raise UserError(
            f"{counted(len(objections), 'objection')}; expected at most {_PRINTED}, or -o FOLDER,"
            " which writes a file for each"
        )
    return "\n---\n\n".join(objection_text(item, examined, by) for item in objections)


def refuse_early(folder: Path, path: str) -> None:
    """Check before the work starts that a folder of objections can be written.

    Raises:
        UserError: the folder is in the input, or its objections.yaml cannot be read.
    """
    refuse_within(folder, [path])
    if (folder / NAME).exists():
        read_entries(folder / NAME)
    elif folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: not empty, but without {NAME}; choose another folder")


def write(
    folder: Path,
    path: str,
    options: Options,
    wanted: Sequence[str],
    by: str | None,
    *,
    force: bool = False,
) -> Iterator[str]:
    """Write the objections that ``objections.yaml`` does not list; yield the lines to print.

    ``force`` overwrites files that have their names.

    Raises:
        UserError: there are no objections, or a file cannot be written.
    """
    examined, objections = _objections(path, options, wanted)
    states = folder / NAME
    ids = {entry.id for entry in read_entries(states)} if states.exists() else set()
    new = [item for item in objections if item.id not in ids]
    files = {f"{item.id}.md": objection_text(item, examined, by) for item in new}
    taken = next((name for name in files if (folder / name).exists()), None)
    if taken and not force:
        raise UserError(f"{folder / taken}: exists, but is not in {NAME}; --force overwrites it")
    if new:
        write_together(folder, {**files, NAME: with_new(states, new, by)}, replace=True)
    for item in new:
        yield visible(f"{folder / item.id}.md: {item.against}, {item.code}: {item.title}")
    earlier = len(objections) - len(new)
    rest = f"; {earlier} already in {states}" if earlier else ""
    yield f"{counted(len(new), 'objection')} written{rest}"


def _objections(
    path: str, options: Options, wanted: Sequence[str]
) -> tuple[Examined, list[Objection]]:
    examined = examine(path, options)
    if objections := find_objections(examined, wanted):
        return examined, objections
    codes = sorted({finding.code for _, finding in examined.findings})
    others = f"; its findings have {', '.join(codes)}" if codes else ""
    raise UserError(f"{path}: nothing to object to for {', '.join(wanted)}{others}")
