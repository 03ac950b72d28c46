"""Check a round once, and collect its problems."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.review.companies import spellings
from mlperf_pkg.commands.review.model import Choices, Round
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import description_path
from mlperf_pkg.rulebook.load import codes

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
