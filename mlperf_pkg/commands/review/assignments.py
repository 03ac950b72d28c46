"""Who reviews whom.

Source: submission_rules, Required reviews.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal

from msgspec import Struct

from mlperf_pkg.commands.review.companies import (
    LARGE,
    Company,
    by_results,
    by_scale,
    companies,
    joints,
    spellings,
)
from mlperf_pkg.commands.review.model import Round, Section, Table
from mlperf_pkg.commands.review.pairing import Group, groups, reviews
from mlperf_pkg.results import wording

By = Literal["results", "scale"]

_THREE = 3
CHAIRS = "volunteers or the chairs"
_RULES = (
    "Submitters are ranked by their number of results and paired down the ranking; the two of a"
    " pair review each other. If the number is odd, the last three review each other.",
    f"Results on systems with {LARGE} or more accelerators do not count in this ranking (Training"
    " only): their submitters are ranked by their largest system, and review these results of each"
    " other.",
    "Each company of a joint submission counts as a submitter, and never reviews its partner.",
)


class Assignment(Struct, frozen=True):
    """``reviewer`` reviews the submissions ``folders`` of ``submitter``.

    ``by`` is the ranking that paired them: "scale" for the results on systems with ``LARGE`` or
    more accelerators, "results" for all others. Without a ``reviewer``, volunteers or the chairs
    review them.
    """

    reviewer: str | None
    submitter: str
    folders: tuple[str, ...]
    by: By
    why: str


class _Rank(Struct, frozen=True):
    by: By
    members: list[Company]
    seed: int

    def may(self, first: int, second: int) -> bool:
        return self.members[second].name not in self.members[first].partners

    def value(self, company: Company) -> int:
        return company.results if self.by == "results" else company.scale

    @property
    def unit(self) -> str:
        return "number of results" if self.by == "results" else "scale"


def assignments(reviewed: Round) -> tuple[Assignment, ...]:
    """Return all assignments: first those by number of results, then those by scale.

    Raises:
        UserError: as ``companies``.
    """
    return tuple(chain.from_iterable(map(_assigned, _ranks(reviewed))))


def assignments_section(reviewed: Round) -> Section:
    """Return the assignments, with their reasons."""
    rows = tuple(
        (item.reviewer or CHAIRS, item.submitter, ", ".join(item.folders), item.by, item.why)
        for item in assignments(reviewed)
    )
    columns = ("Reviewer", "Reviews", "Folders", "By", "Why")
    tables = (
        Table("pairs", "Assignments", columns, rows, note="By: the ranking that paired them."),
        _rank_table(reviewed),
    )
    return Section(
        "assignments",
        "Assignments",
        (*_RULES, *_chosen(reviewed)),
        tables,
        tuple(chain.from_iterable(map(_summary, _ranks(reviewed)))),
    )


def _ranks(reviewed: Round) -> list[_Rank]:
    members, seed = companies(reviewed), reviewed.choices.seed
    return [
        _Rank("results", by_results(members, seed), seed),
        _Rank("scale", by_scale(members, seed), seed),
    ]


def _assigned(rank: _Rank) -> Iterator[Assignment]:
    for group in groups(len(rank.members), rank.may):
        pairs = sorted(reviews(group, rank.may))
        for reviewer, submitter in pairs:
            yield _assignment(rank, rank.members[reviewer].name, submitter, _why(rank, group))
        for submitter in sorted({*group} - {submitter for _, submitter in pairs}):
            yield _assignment(rank, None, submitter, _why_nobody(rank))


def _assignment(rank: _Rank, reviewer: str | None, index: int, why: str) -> Assignment:
    company = rank.members[index]
    return Assignment(reviewer, company.name, company.folders, rank.by, why)


# ---- why ------------------------------------------------------------------------------------


def _why(rank: _Rank, group: Group) -> str:
    numbers = [str(index + 1) for index in group]
    values = [str(rank.value(rank.members[index])) for index in group]
    reason = f"ranks {wording.enumerated(numbers)} by {rank.unit} ({wording.enumerated(values)})"
    if len(group) == _THREE:
        reason += ", the last three of an odd number"
    if group != list(range(group[0], group[0] + len(group))):
        reason += ", as partners may not review each other"
    partners = [rank.members[index].name for index in group if _has_partner(rank, group, index)]
    if partners:
        reason += f"; {wording.enumerated(partners)} are partners and do not review each other"
    equal = [rank.value(company) for company in rank.members]
    if any(equal.count(rank.value(rank.members[index])) > 1 for index in group):
        reason += f"; ties broken by seed {rank.seed}"
    return reason


def _has_partner(rank: _Rank, group: Group, index: int) -> bool:
    return any(not rank.may(index, member) for member in group if member != index)


def _why_nobody(rank: _Rank) -> str:
    if len(rank.members) == 1:
        return f"the only one ranked by {rank.unit}"
    return f"a partner of all others left in the ranking by {rank.unit}"


# ---- the section ----------------------------------------------------------------------------


def _chosen(reviewed: Round) -> Iterator[str]:
    choices = reviewed.choices
    if choices.one_spelling:
        yield from (f"Counted as one: {wording.enumerated(n)}." for n in spellings(reviewed))
    for joint in joints(reviewed):
        where = "" if joint.folder is None else f" in {joint.folder}"
        yield f"{wording.enumerated(joint.companies)} submit together{where}."
    if choices.excluded:
        yield f"Excluded: {', '.join(choices.excluded)}."
    if idle := [item.name for item in companies(reviewed) if not item.results + item.large]:
        yield f"Without results and therefore without assignments: {', '.join(idle)}."
    yield f"Ties are broken by seed {choices.seed}."


def _rank_table(reviewed: Round) -> Table:
    rows = tuple(
        (rank.by, number, company.name, company.results, company.large, company.scale or None)
        for rank in _ranks(reviewed)
        for number, company in enumerate(rank.members, 1)
    )
    columns = ("By", "Rank", "Submitter", "Results", "Large results", "Largest")
    note = (
        f"Large results: on systems with {LARGE} or more accelerators (processors in systems"
        " without accelerators). Largest: accelerators of the largest system."
    )
    return Table("rank", "Ranks", columns, rows, note=note)


def _summary(rank: _Rank) -> Iterator[str]:
    names, texts, alone = [company.name for company in rank.members], [], []
    for group in groups(len(names), rank.may):
        members = {*chain.from_iterable(reviews(group, rank.may))}
        partners = [names[index] for index in group if _has_partner(rank, group, index)]
        note = f" ({wording.enumerated(partners)} not each other)" if members and partners else ""
        present = [names[index] for index in group if index in members]
        texts.append(f"{wording.enumerated(present)}{note}")
        alone += [names[index] for index in group if index not in members]
    texts.append(f"{wording.enumerated(sorted(alone))} by {CHAIRS}" if alone else "")
    texts = [text for text in texts if text]
    if texts or rank.by == "results":
        yield f"by {rank.unit}: {'; '.join(texts) or wording.NOTHING}"
