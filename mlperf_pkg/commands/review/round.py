"""A round under review, and the sections of its review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.review.sides import Side, checked_side
from mlperf_pkg.commands.review.submitters import spellings
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, SystemRow, description_path
from mlperf_pkg.rulebook.codes import codes
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


_NAMED = 3
_UNREAD = (
    "CHECK",
    "LOG11",
    "SYS001",
    "SYS004",
    "TREE108",
    "TREE109",
    "TREE111",
    "TREE112",
    "TREE114",
)


def read_round(path: str, options: Options, choices: Choices) -> Round:
    """Check a round, or any folder of submissions, for its review.

    Raises:
        UserError: as ``check``, or there is no submission.
    """
    reviewed = Round(check([path], options), choices)
    if not reviewed.submissions:
        raise UserError(
            f"{path}: no submission; expected the folder of one round, with a folder for each"
            " submitter that has systems/ and results/"
        )
    return replace(reviewed, problems=tuple(_problems(reviewed)))


def _problems(reviewed: Round) -> Iterator[str]:
    if reviewed.report.round is None:
        yield f"{reviewed.report.round_reason}; review each round by itself"
    yield from _spellings(reviewed)
    if len(reviewed.submissions) == 1:
        yield f"only one submission: {reviewed.submissions[0].name}; nobody can review it"
    for name, rows in reviewed.sets.items():
        if not rows:
            yield f"{name}: no result set"
        without = [row for row in rows if description_path(row) not in reviewed.systems]
        if without:
            names = wording.shortened(
                list(dict.fromkeys(f"{row.system}" for row in without)), _NAMED
            )
            yield (
                f"{name}: {wording.counted(len(without), 'result set')} without a system"
                f" description ({names}): division and accelerators are unknown"
            )
    outside = [row.path for row in reviewed.report.result_sets if row.submitter is None]
    if outside:
        number = wording.counted(len(outside), "result set")
        yield f"{number} outside of all submissions: {wording.shortened(outside, _NAMED)}"
    yield from _unread(reviewed)


def _spellings(reviewed: Round) -> Iterator[str]:
    if not reviewed.choices.one_spelling:
        for names in spellings(reviewed):
            alike = wording.enumerated(names)
            yield f"{alike} may be one submitter; --one-spelling counts them as one"


def _unread(reviewed: Round) -> Iterator[str]:
    """Yield the files that could not be read or checked, by code."""
    paths: dict[str, list[str]] = {}
    for finding in reviewed.report.findings:
        if isinstance(finding, Unchecked) or finding.code.startswith(_UNREAD):
            paths.setdefault(finding.code, []).extend(place.path for place in finding.occurrences)
    for code, labels in paths.items():
        files = list(dict.fromkeys(labels))
        number = wording.counted(len(files), "file")
        names = wording.shortened(files, _NAMED)
        yield f"{number} not read or checked ({code}, {codes()[code].title}): {names}"
