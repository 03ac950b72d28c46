"""Published scores in a CSV file, for systems whose logs are not at hand."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from mlperf_pkg.commands.compare.model import Result
from mlperf_pkg.errors import UserError

SUFFIX = ".csv"
_MINUTES = ("minutes", "score_minutes")
_ROUND = re.compile(r"v?(\d{1,4}\.\d{1,4})")


def read_published(path: Path, argument: int) -> list[Result]:
    """Return the scores in a CSV file, in their order; ``argument`` is its index among the paths.

    Its first line names the columns: ``system``, ``benchmark`` and ``minutes`` (or
    ``score_minutes``) are required; ``round``, ``submitter``, ``division``, ``accelerators``,
    ``nodes``, ``energy_joules`` and ``availability`` are optional, others are ignored. Lines
    without minutes are skipped.

    Raises:
        UserError: the file cannot be read or is not such a table; the message names the line.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise UserError(f"{path}: cannot be read: {reason}") from error
    return list(_results(path, text, argument))


def _results(path: Path, text: str, argument: int) -> Iterator[Result]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = reader.fieldnames or ()
        minutes = next((name for name in _MINUTES if name in names), _MINUTES[0])
        required = ("system", "benchmark", minutes)
        if missing := [name for name in required if name not in names]:
            raise UserError(
                f"{path}:1: no column {' or '.join(missing)}; expected {', '.join(required)}"
            )
        for row in reader:
            cells = {name: (row[name] or "").strip() for name in names}
            if cells[minutes]:
                line = _Line(f"{path}:{reader.line_num}", cells)
                yield line.result(minutes, argument)
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}: {error}") from error


class _Line(Struct, frozen=True):
    """A line of the table: where it is, and its cells by column."""

    location: str
    cells: Mapping[str, str]

    def result(self, minutes: str, argument: int) -> Result:
        """Return the score; ``minutes`` is the column that holds it.

        Raises:
            UserError: a cell is not as it should be.
        """
        cells = self.cells
        if not cells["benchmark"]:
            raise UserError(f"{self.location}: benchmark is empty; expected a name")
        return Result(
            argument=argument,
            round=self._round(),
            submitter=cells.get("submitter") or None,
            system=cells["system"] or "unnamed system",
            system_name=None,
            benchmark=cells["benchmark"],
            division=cells.get("division") or None,
            minutes=self._number(minutes),
            path=self.location,
            note="a published score",
            accelerators=self._count("accelerators"),
            nodes=self._count("nodes"),
            energy_joules=self._number("energy_joules"),
            availability=cells.get("availability") or None,
        )

    def _round(self) -> str | None:
        text = self.cells.get("round")
        if not text:
            return None
        match = _ROUND.fullmatch(text)
        if match is None:
            raise UserError(f"{self.location}: round is {text!r}; expected a round such as 2.0")
        return match[1]

    def _number(self, name: str) -> float | None:
        text = self.cells.get(name)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise UserError(f"{self.location}: {name} is {text!r}; expected a number above 0")
        return value

    def _count(self, name: str) -> int | None:
        value = self._number(name)
        if value is not None and not value.is_integer():
            raise UserError(
                f"{self.location}: {name} is {self.cells[name]!r}; expected a whole number"
            )
        return None if value is None else int(value)
