"""The submitters of a round, with the numbers of their results, verdicts and findings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import Literal

from msgspec import Struct

from mlperf_pkg.checks.system_values import whole_number
from mlperf_pkg.commands.review.round import Cell, Round, Section, Table
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Severity, Verdict
from mlperf_pkg.infra.text import did_you_mean, letters
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, description_path
from mlperf_pkg.submission.membership import submitters

_COLUMNS = (
    "Submitter",
    "Systems",
    "Results",
    "Largest",
    "Divisions",
    "Official FAIL",
    "Rules FAIL",
    "Errors",
    "Warnings",
)


def submitters_section(reviewed: Round) -> Section:
    """Return a table of all submitters, by name, also of those without a result set."""
    labels = {submission.name: submission.place.label for submission in reviewed.submissions}
    rows = tuple(
        _submitter_row(
            reviewed,
            name,
            [row for spelling in spellings for row in reviewed.sets[spelling]],
            [f for spelling in spellings for f in _findings_about(reviewed, labels[spelling])],
        )
        for name, spellings in submitters(reviewed.sets).items()
    )
    note = "Largest: accelerators of the largest system with results."
    table = Table("table", "Submitters", _COLUMNS, rows, note=note)
    return Section("submitters", "Submitters", (), (table,), tuple(_numbers_in_words(reviewed)))


def _findings_about(reviewed: Round, label: str) -> list[Finding]:
    """Return the findings about a submission; all of them if the only one has no label."""
    findings = reviewed.report.findings
    return [f for f in findings if not label or f"{f.about}/".startswith(f"{label}/")]


def _numbers_in_words(reviewed: Round) -> Iterator[str]:
    report = reviewed.report
    names = submitters(name for name, rows in reviewed.sets.items() if rows)
    systems = {(row.submitter, row.system) for row in report.results}
    counts = (
        wording.counted(len(names), "submitter"),
        wording.counted(len(systems), "system"),
        wording.counted(len(report.results), "result set"),
        wording.counted(len(report.runs), "run"),
    )
    yield ", ".join(counts)
    verdicts = [row.verdict for row in report.result_sets]
    official = sum(verdict.official is Verdict.FAIL for verdict in verdicts)
    rules = sum(verdict.rules is Verdict.FAIL for verdict in verdicts)
    yield f"result sets that fail: {official} by the official verdict, {rules} by the rules"


def _submitter_row(
    reviewed: Round, name: str, rows: list[ResultSetRow], findings: list[Finding]
) -> tuple[Cell, ...]:
    systems = [reviewed.systems.get(description_path(row)) for row in rows]
    sizes = [system.accelerators for system in systems if system and system.accelerators]
    return (
        name,
        len({(row.submitter, row.system) for row in rows}),
        len(rows),
        max(sizes, default=None),
        ", ".join(sorted({row.division or wording.NOTHING for row in rows})),
        sum(row.verdict.official is Verdict.FAIL for row in rows),
        sum(row.verdict.rules is Verdict.FAIL for row in rows),
        sum(finding.severity is Severity.ERROR for finding in findings),
        sum(finding.severity is Severity.WARNING for finding in findings),
    )


LARGE = 512
"""The number of accelerators (else processors) from which a submission is ranked by scale.

Source: submission_rules, Required reviews (large scale submission review assignment).
"""


_PLUS = "+"  # between the names of a joint submission


class Company(Struct, frozen=True):
    """A company that counts as a submitter: ``folders`` are the names of its submissions.

    ``results`` is the number of results on systems below ``LARGE``, ``large`` that on all others;
    ``scale`` is the number of accelerators of the largest system, or of processors if it has none.
    """

    name: str
    folders: tuple[str, ...]
    partners: frozenset[str] = frozenset()
    results: int = 0
    large: int = 0
    scale: int = 0


def companies(reviewed: Round) -> tuple[Company, ...]:
    """Return all companies that are not excluded, by name.

    Raises:
        UserError: a name of ``--joint`` or ``--exclude`` is not that of a submitter.
    """
    folders = _spelled(reviewed)
    partners: dict[str, set[str]] = {}
    for joint in joints(reviewed):
        own = () if joint.folder is None else folders.pop(joint.folder, ())
        for name in joint.companies:
            folders[name] = (*folders.get(name, ()), *own)
            partners.setdefault(name, set()).update({*joint.companies} - {name})
    excluded = {_known(name, folders, "--exclude") for name in reviewed.choices.excluded}
    scales = _scales(reviewed)
    return tuple(
        _company(reviewed, name, folders[name], frozenset(partners.get(name, ())), scales)
        for name in sorted(folders)
        if name not in excluded
    )


class Joint(Struct, frozen=True):
    """Companies that submit together: in a ``folder``, or each in its own."""

    folder: str | None
    companies: tuple[str, ...]

    @property
    def is_joint(self) -> bool:
        """Whether there are several companies."""
        return len(self.companies) > 1


def joints(reviewed: Round) -> list[Joint]:
    """Return the joint submissions: those of ``--joint``, and the folders named like A+B.

    Raises:
        UserError: as ``companies``.
    """
    folders = _spelled(reviewed)
    chosen = [_parsed(text, folders) for text in reviewed.choices.joint]
    named = {joint.folder for joint in chosen}
    others = (Joint(name, _companies(name, folders)) for name in folders if name not in named)
    return [*chosen, *(joint for joint in others if joint.is_joint)]


def by_results(members: Iterable[Company], seed: int) -> list[Company]:
    """Return the companies with results below ``LARGE``, most results first."""
    ranked = (company for company in members if company.results)
    return sorted(ranked, key=lambda company: (-company.results, tie_break(company.name, seed)))


def by_scale(members: Iterable[Company], seed: int) -> list[Company]:
    """Return the companies with a submission from ``LARGE`` on, the largest scale first."""
    ranked = (company for company in members if company.large)
    return sorted(ranked, key=lambda company: (-company.scale, tie_break(company.name, seed)))


def tie_break(name: str, seed: int) -> bytes:
    """Return the sort key of a company among equals: a digest of the seed and the name."""
    return hashlib.sha256(f"{seed} {name}".encode("utf-8", "backslashreplace")).digest()


# ---- names ----------------------------------------------------------------------------------


def spellings(reviewed: Round) -> Iterator[list[str]]:
    """Yield the names of submissions that differ only in case, spaces and punctuation."""
    names = submitters(submission.name for submission in reviewed.submissions)
    yield from (alike for alike in names.values() if len(alike) > 1)


def _spelled(reviewed: Round) -> dict[str, tuple[str, ...]]:
    """Return the folders by submitter: one folder, or those of all spellings of the name."""
    names = [submission.name for submission in reviewed.submissions]
    folders: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    if reviewed.choices.one_spelling:
        for alike in spellings(reviewed):
            folders[alike[0]] = tuple(alike)
            for name in alike[1:]:
                del folders[name]
    return folders


def _parsed(text: str, folders: Mapping[str, tuple[str, ...]]) -> Joint:
    """Return the joint submission that ``A+B`` or ``FOLDER=A+B`` names."""
    label, equals, after = text.partition("=")
    folder = _known(label.strip(), folders, "--joint") if equals else _alike(text, folders)
    joint = Joint(folder, _companies(after if equals else text, folders))
    if not joint.is_joint:
        raise UserError(
            f"--joint {text}: fewer than two companies; expected A+B, or FOLDER=A+B for a folder"
            " with another name"
        )
    if folder is None:
        for name in joint.companies:
            _known(name, folders, "--joint")
    return joint


def _companies(text: str, folders: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names between plus signs, spelt like their folders if they have any."""
    names = [name.strip() for name in text.split(_PLUS)]
    return tuple(dict.fromkeys(_alike(name, folders) or name for name in names if name))


def _alike(name: str, folders: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the folder of this name, or the only one in another spelling."""
    if name in folders:
        return name
    alike = [folder for folder in folders if letters(folder) == letters(name)]
    return alike[0] if len(alike) == 1 else None


def _known(name: str, folders: Mapping[str, tuple[str, ...]], option: str) -> str:
    if folder := _alike(name, folders):
        return folder
    suggestion = did_you_mean(name, folders) or f"; expected one of {', '.join(sorted(folders))}"
    raise UserError(f"{option}: {name!r} is not a submitter of the round{suggestion}")


# ---- results --------------------------------------------------------------------------------


def _company(
    reviewed: Round,
    name: str,
    folders: tuple[str, ...],
    partners: frozenset[str],
    scales: Mapping[str, int],
) -> Company:
    rows: list[ResultSetRow] = [row for folder in folders for row in reviewed.sets[folder]]
    sizes = [scales.get(description_path(row), 0) for row in rows]
    large = sum(size >= LARGE for size in sizes) if reviewed.report.usage != "hpc" else 0
    return Company(name, folders, partners, len(rows) - large, large, max(sizes, default=0))


def _scales(reviewed: Round) -> dict[str, int]:
    """Return the accelerators of each system, or its processors if it has none, by path."""
    scales = {path: system.accelerators or 0 for path, system in reviewed.systems.items()}
    for system in reviewed.checked.systems:
        if not scales.get(system.path):
            per_node = whole_number((system.contents or {}).get("host_processors_per_node"))
            scales[system.path] = (system.nodes or 0) * (per_node or 0)
    return scales


Group = list[int]
"""Two or three submitters who review each other, as indexes in a ranking."""

May = Callable[[int, int], bool]
"""Return whether two submitters may review each other."""

_THREE = 3


def groups(number: int, may: May) -> list[Group]:
    """Return pairs down a ranking; if the number is odd, the last three are one group.

    A submitter that may not review the next one is paired with the nearest one below that it may
    review. If the members of the last group cannot review each other, the group swaps a member
    with the nearest group above such that both can. If no swap helps, the group stays, and
    ``reviews`` leaves a member out.
    """
    rank, formed = list(range(number)), []
    while len(rank) > _THREE or len(rank) == 2:  # noqa: PLR2004 - a pair
        first = rank.pop(0)
        formed.append([first, rank.pop(_nearest(first, rank, may))])
    formed += [rank] if rank else []
    for index in reversed(range(len(formed))):
        if not is_covered(formed[index], may):
            _swap(formed, index, may)
    return formed


def reviews(group: Group, may: May) -> Iterator[tuple[int, int]]:
    """Yield the allowed pairs of a group, reviewer first, in both directions."""
    for first, second in combinations(group, 2):
        if may(first, second):
            yield first, second
            yield second, first


def is_covered(group: Group, may: May) -> bool:
    """Return whether each member of a group may review another member."""
    return {reviewer for reviewer, _ in reviews(group, may)} == {*group}


def _nearest(first: int, others: Sequence[int], may: May) -> int:
    """Return the index of the first of ``others`` that ``first`` may review, by default 0."""
    return next((index for index, second in enumerate(others) if may(first, second)), 0)


def _swap(formed: list[Group], index: int, may: May) -> None:
    """Swap a member of a group with one of the nearest other group, such that both are covered."""
    nearest_first = sorted(range(len(formed)), key=lambda near: (abs(near - index), -near))
    for near in nearest_first[1:]:
        first, second = formed[index], formed[near]
        for mine, theirs in product(first, reversed(second)):
            swapped = {mine: theirs, theirs: mine}
            pair = [sorted(swapped.get(item, item) for item in group) for group in (first, second)]
            if all(is_covered(group, may) for group in pair):
                formed[index], formed[near] = pair
                return


By = Literal["results", "scale"]

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
