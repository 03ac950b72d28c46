"""Published scores in a CSV file, for systems of which there are no logs."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mlperf_pkg.commands.compare.ratios import Entry
from mlperf_pkg.errors import UserError

SUFFIX = ".csv"
_MINUTES = ("minutes", "score_minutes")
_ROUND = re.compile(r"v?(\d{1,4}\.\d{1,4})")


def read_published(path: Path, argument: int) -> list[Entry]:
    """The scores in a CSV file, in order.

    Its first line names the columns: ``system``, ``benchmark`` and ``minutes`` (or
    ``score_minutes``) are required; ``round``, ``submitter``, ``division``, ``accelerators``,
    ``nodes`` and ``energy_joules`` are read where they are there, others are not. Lines without
    minutes are no scores.

    Raises:
        UserError: the file cannot be read or is no such table; the message names the line.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        raise UserError(f"{path}: cannot be read: {reason}") from error
    return list(_entries(path, text, argument))


def _entries(path: Path, text: str, argument: int) -> Iterator[Entry]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = reader.fieldnames or ()
        minutes = next((name for name in _MINUTES if name in names), _MINUTES[0])
        if lacking := [each for each in ("system", "benchmark", minutes) if each not in names]:
            raise UserError(f"{path}:1: no column {' and no column '.join(lacking)}")
        for row in reader:
            cells = {name: (row[name] or "").strip() for name in names}
            if cells[minutes]:
                yield _entry(f"{path}:{reader.line_num}", cells, minutes, argument)
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: {error}") from error


def _entry(place: str, cells: Mapping[str, str], minutes: str, argument: int) -> Entry:
    if not cells["benchmark"]:
        raise UserError(f"{place}: no benchmark")
    return Entry(
        argument=argument,
        round=_round(place, cells.get("round", "")),
        submitter=cells.get("submitter") or None,
        system=cells["system"] or "no system named",
        system_name=None,
        benchmark=cells["benchmark"],
        division=cells.get("division") or None,
        minutes=_number(place, minutes, cells[minutes]),
        path=place,
        note="a published score",
        accelerators=_count(place, "accelerators", cells),
        nodes=_count(place, "nodes", cells),
        energy_joules=_optional(place, "energy_joules", cells),
    )


def _round(place: str, text: str) -> str | None:
    if not text:
        return None
    match = _ROUND.fullmatch(text)
    if match is None:
        raise UserError(f"{place}: round is {text!r}, needed a round such as 2.0")
    return match[1]


def _number(place: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UserError(f"{place}: {name} is {text!r}, needed a number above 0")
    return value


def _optional(place: str, name: str, cells: Mapping[str, str]) -> float | None:
    return _number(place, name, cells[name]) if cells.get(name) else None


def _count(place: str, name: str, cells: Mapping[str, str]) -> int | None:
    value = _optional(place, name, cells)
    if value is not None and not value.is_integer():
        raise UserError(f"{place}: {name} is {cells[name]!r}, needed a whole number")
    return None if value is None else int(value)
