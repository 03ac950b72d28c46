"""The files of a review, and the folder that holds them."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlperf_pkg.commands.review import formats
from mlperf_pkg.commands.review.model import Round, Section
from mlperf_pkg.commands.review.page import page
from mlperf_pkg.errors import UserError, reason_of
from mlperf_pkg.infra.files import new_folder, refuse_within
from mlperf_pkg.infra.paths import walk
from mlperf_pkg.infra.text import escape_markdown

DATA, PAGE, README = "review.json", "review.html", "README.md"
_LONGEST = 80  # characters of the stem of a file


def files_of(reviewed: Round, sections: Sequence[Section]) -> dict[str, str]:
    """Return the files of a review by name."""
    names = _names(sections)
    files = {
        README: _readme(reviewed, sections),
        PAGE: page(reviewed, sections, names),
        DATA: formats.json(reviewed, sections, names),
    }
    for section in sections:
        files[f"{section.name}.md"] = formats.markdown(section)
        for table in section.tables:
            files[names[f"{section.name}/{table.name}"]] = formats.csv(table)
    return dict(sorted(files.items()))


def _names(sections: Sequence[Section]) -> dict[str, str]:
    """Return the names of the CSV files by section and table, safe for every file system."""
    names: dict[str, str] = {}
    for section in sections:
        for table in section.tables:
            stem = re.sub(r"[^a-z0-9_.]+", "-", f"{section.name}-{table.name}".lower())[:_LONGEST]
            taken, number = set(names.values()), 1
            name = f"{stem}.csv"
            while name in taken:
                number += 1
                name = f"{stem}-{number}.csv"
            names[f"{section.name}/{table.name}"] = name
    return names


def _readme(reviewed: Round, sections: Sequence[Section]) -> str:
    lines = [f"# {escape_markdown(reviewed.title)}: review", ""]
    lines += [
        f"- [{escape_markdown(s.title)}]({s.name}.md)"
        + (f": {escape_markdown(s.summary[0])}" if s.summary else "")
        for s in sections
    ]
    lines += ["", f"All sections: [one page]({PAGE}), [JSON]({DATA})."]
    if reviewed.problems:
        lines += ["", "## Missing or unclear", ""]
        lines += [f"- {escape_markdown(text)}" for text in reviewed.problems]
    return "\n".join(lines) + "\n"


def refuse_early(folder: Path, inputs: Sequence[str], *, force: bool) -> None:
    """Check before the work starts that the folder can be written.

    Raises:
        UserError: the folder is in an input, or exists and must not be replaced.
    """
    refuse_within(folder, inputs)
    if not (folder.exists() or folder.is_symlink()):
        return
    written = _written(folder)
    if written is None:
        raise UserError(f"{folder}: exists, but is not a review; choose another --output")
    if not force:
        raise UserError(f"{folder}: exists already; --force replaces it")
    if foreign := _foreign(folder, written):
        raise UserError(
            f"{folder}: not replaced, as {foreign[0]} is not part of the review; move it away or"
            " choose another --output"
        )


def write_review(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Write a review as a whole, or leave everything as it is.

    Raises:
        UserError: the folder exists and must not be replaced, or it cannot be written.
    """

    def replaces(old: Path) -> bool:
        written = _written(old)
        return force and written is not None and not _foreign(old, written)

    try:
        with new_folder(folder, replaces) as new:
            for name, text in files.items():
                (new / name).write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {reason_of(error)}") from error


def _written(folder: Path) -> set[str] | None:
    """Return the files that an earlier review lists; None if the folder is not a review."""
    try:
        document = jsonlib.loads((folder / DATA).read_bytes())
        if document["format"] != formats.FORMAT or folder.is_symlink():
            return None
        sections = document["sections"]
        tables = {table["file"] for section in sections for table in section["tables"]}
        return {README, PAGE, DATA, *tables, *(f"{section['name']}.md" for section in sections)}
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None


def _foreign(folder: Path, written: set[str]) -> list[str]:
    """Return the paths in a review that are not its own files."""
    return [
        entry.path
        for entry in walk(folder)
        if entry.folder or entry.link is not None or entry.path not in written
    ]
