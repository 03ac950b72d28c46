"""A round under review, and the sections of its review."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.review.sides import Side, checked_side
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, SystemRow
from mlperf_pkg.submission.model import Submission

Cell = str | int | float | None
"""The content of a table; None is an empty cell."""


class Table(Struct, frozen=True):
    """A table. ``name`` is the stem of its file, after that of its section.

    ``marked`` are the cells that differ or are outliers, as (row, column), both from 0. ``note``
    explains marks and columns below the table. ``checks`` makes the table a list of checkboxes.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: frozenset[tuple[int, int]] = frozenset()
    note: str = ""
    checks: bool = False


class Section(Struct, frozen=True):
    """A part of a review. ``name`` is the stem of its files; ``text`` are paragraphs.

    ``summary`` are the lines that the command prints.
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    summary: tuple[str, ...] = ()


class Choices(Struct, frozen=True):
    """The options that the chair chooses for a review.

    ``joint`` are the joint submissions, as A+B or FOLDER=A+B. ``excluded`` submitters have no
    assignments. ``seed`` breaks ties. ``one_spelling`` counts spellings of a name that differ only
    in case, spaces and punctuation as one submitter.
    """

    joint: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    seed: int = 0
    one_spelling: bool = False


class Round(Struct, frozen=True, dict=True):
    """A checked round. ``problems`` are sentences about missing or unclear parts."""

    checked: Checked
    choices: Choices = Choices()
    problems: tuple[str, ...] = ()

    @property
    def report(self) -> Report:
        """The report of the check."""
        return self.checked.report

    @property
    def title(self) -> str:
        """The name of the round: ``MLPerf Training 5.1``."""
        return wording.edition(self.report.usage, self.report.round)

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """The submissions by name."""
        unsorted = (item for input_ in self.checked.inputs for item in input_.submissions)
        return tuple(sorted(unsorted, key=lambda submission: submission.name))

    @cached_property
    def sets(self) -> Mapping[str, tuple[ResultSetRow, ...]]:
        """The result sets of each submission, by its name, in the order of their paths."""
        by_name: dict[str, list[ResultSetRow]] = {item.name: [] for item in self.submissions}
        for row in sorted(self.report.results, key=lambda row: row.path):
            if row.submitter is not None:
                by_name[row.submitter].append(row)
        return {name: tuple(rows) for name, rows in by_name.items()}

    @cached_property
    def systems(self) -> Mapping[str, SystemRow]:
        """The system descriptions by path; ``description_path`` returns that of a result set."""
        return {system.path: system for system in self.report.systems}

    @cached_property
    def side(self) -> Side:
        """The result sets with the hashes of their logs, to compare with other rounds."""
        return checked_side(self.title, self.checked)
