"""The submitters of a round: their results, verdicts and findings, and who reviews whom.

Source: submission_rules, Required reviews.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, permutations, product
from operator import attrgetter
from typing import Any, Literal, get_args

from msgspec import Struct

from mlperf_pkg.checks.descriptions import whole_number
from mlperf_pkg.commands.review.examined import Examined
from mlperf_pkg.commands.review.round import (
    FINDING_COLUMNS,
    FindingRow,
    ReviewedRound,
    ReviewSection,
    column,
    finding_rows,
    known_name,
    table_of_cells,
)
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.render.findings import counts
from mlperf_pkg.render.table import table_of
from mlperf_pkg.render.text import CodeGroup, Submitters, by_code
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, SystemRow, description_path
from mlperf_pkg.rulebook.load import codes

CHAIRS = "volunteers or the chairs"
LARGE = 512
"""The number of accelerators (else processors) from which a submission is ranked by scale.

Source: submission_rules, Required reviews (large scale submission review assignment).
"""

By = Literal["results", "scale"]
"""The rankings: "scale" for results on systems with ``LARGE`` or more accelerators."""

_THREE = 3
_LONGEST = 120  # characters of a finding in the summary
_RULES = (
    "Submitters are ranked by their number of results, and paired from the top of the ranking"
    " down. The two of a pair review each other. If the number of submitters is odd, the last"
    " three review each other.",
    f"In Training, results on systems with {LARGE} or more accelerators do not count in this"
    " ranking. The submitters of such results are also ranked by their largest system, and paired"
    " in that ranking to review these results.",
    "For a joint entry, each of the companies counts as a submitter, and never reviews its"
    " partner. Folders whose system descriptions name the same company count as one submitter.",
)


_SUBMITTERS = (
    column("Submitter"),
    column("Systems", numbers=True),
    column("Results", numbers=True),
    column("Largest", numbers=True),
    column("Divisions"),
    column("Official FAIL", numbers=True),
    column("Rules FAIL", numbers=True),
    column("Errors", numbers=True),
    column("Warnings", numbers=True),
    column("With errors", numbers=True),
)


def submitters_section(reviewed: ReviewedRound) -> ReviewSection:
    """Return a table of all submitters, by name, also of those without a result set."""
    report = reviewed.report
    note = (
        "Largest: the number of accelerators of the largest system with results. With errors: the"
        " number of result sets with errors."
    )
    table = table_of(_SUBMITTERS, _submitters(reviewed), title="Submitters", note=note)
    numbers = {
        "submitter": reviewed.number,
        "system": _number_of_systems(report.result_sets),
        "result set": len(report.result_sets),
        "run": len(report.runs),
    }
    totals = ", ".join(wording.counted(number, noun) for noun, number in numbers.items())
    official, rules = failing(report.result_sets)
    verdicts = f"result sets that fail: {official} by the official verdict, {rules} by the rules"
    return ReviewSection("submitters", "Submitters", (), {"table": table}, (totals, verdicts))


def failing(rows: Iterable[ResultSetRow]) -> tuple[int, int]:
    """Return how many result sets fail officially, and how many by the rules."""
    verdicts = [row.verdict for row in rows]
    official = sum(verdict.official is Verdict.FAIL for verdict in verdicts)
    return official, sum(verdict.rules is Verdict.FAIL for verdict in verdicts)


def by_folder(values: Iterable[Any], path_of: Callable[[Any], str]) -> dict[str, list[Any]]:
    """Return values by their paths and all folders above these: "", ``a`` and ``a/b``."""
    by_path: dict[str, list[Any]] = {}
    for value in values:
        folders = accumulate(path_of(value).split("/"), "{}/{}".format)
        for folder in {"", *folders}:
            by_path.setdefault(folder, []).append(value)
    return by_path


def _submitters(reviewed: ReviewedRound) -> Iterator[tuple[str | int | None, ...]]:
    """Yield the results of each submitter in all spellings of its name, and the findings on it."""
    labels = {submission.name: submission.place.label for submission in reviewed.submissions}
    # The only submission of a round may have no label: all findings are about it.
    findings_by_label = by_folder(reviewed.report.findings, attrgetter("about"))
    for name, folders in reviewed.submitters.items():
        rows = reviewed.results[name]
        places = set[str]()
        for folder in folders:
            if folder in reviewed.parts[name]:
                places |= _places_of(rows, folder)
            else:
                places.add(labels[folder])
        severities = _severities(findings_by_label, places)
        yield (
            name,
            _number_of_systems(rows),
            len(rows),
            _largest_system(rows, reviewed.systems),
            ", ".join(sorted({row.division or wording.NOTHING for row in rows})),
            *failing(rows),
            severities[Severity.ERROR],
            severities[Severity.WARNING],
            sum(row.id in reviewed.with_errors for row in rows),
        )


def _severities(
    findings: Mapping[str, Sequence[Finding]], places: Iterable[str]
) -> Counter[Severity]:
    """Count the findings at these places by severity."""
    severities = Counter[Severity]()
    for place in places:
        severities.update(counts(findings.get(place, ())))
    return severities


def _places_of(rows: Iterable[ResultSetRow], folder: str) -> set[str]:
    """Return the paths of the result sets of a company in a submission, and of their systems."""
    own = [row for row in rows if row.submitter == folder]
    return {row.path for row in own} | set(map(description_path, own))


def _number_of_systems(rows: Iterable[ResultSetRow]) -> int:
    return len({(row.submitter, row.system) for row in rows})


def _largest_system(rows: Iterable[ResultSetRow], systems: Mapping[str, SystemRow]) -> int | None:
    """Return the accelerators of the largest system of result sets, if any is known."""
    sizes = []
    for row in rows:
        system = systems.get(description_path(row))
        if system and system.accelerators:
            sizes.append(system.accelerators)
    return max(sizes, default=None)


NOTED = (
    "RUN130",
    "SET111",
    "SET113",
    "SET120",
    "SET123",
    "SET124",
    "SET127",
    "SET140",
    "SET15",
    "SET160",
    "SET161",
    "SET163",
    "SET164",
    "SEED106",
    "SEED107",
)
"""Prefixes of the notes that need a look; those of SET162 are listed as outliers."""

_KINDS = {
    "findings": ("Findings", "Errors and warnings by weight"),
    "noted": ("Notes to look at", "Notes by weight"),
    "others": ("Other notes", "Other notes by weight"),
}


def findings_section(name: str, reviewed: ReviewedRound) -> ReviewSection:
    """Return the findings of a kind by weight: errors by the rules first, then by code."""
    findings = [finding for finding in reviewed.report.findings if _kind(finding) == name]
    submitters = Submitters(reviewed.report)
    rows: list[FindingRow] = []
    lines = []
    for group in sorted(by_code(findings), key=_weight):
        rows += finding_rows(group.findings, reviewed.examined)
        whose = f"{submitters.things_in_words(group)}{submitters.whose(group)}"
        lines.append(finding_line(group, reviewed.examined, whose))
    title, title_of_table = _KINDS[name]
    if not rows:
        text = "no errors or warnings" if name == "findings" else "none"
        return ReviewSection(name, title, (text,), summary=() if name == "others" else (text,))
    table = table_of(FINDING_COLUMNS, rows, title=title_of_table)
    summary = () if name == "others" else tuple(lines)
    return ReviewSection(name, title, tables={"table": table}, summary=summary)


def finding_line(group: CodeGroup, examined: Examined, whose: str = "") -> str:
    """Return the findings of a code in a line: ``error RCP101 (ACME, dgx, bert): a title``.

    Of several, it says ``whose`` they are, and where the first is.
    """
    where = examined.name_of(group.first).place
    number = len(group.subjects)
    if number > 1:
        path = where.replace(", ", "/")
        where = f"{whose or wording.counted(number, 'place')}; first in {path}"
    return f"{group.first.severity} {group.first.code} ({where}): {_title(group)}"


def _weight(group: CodeGroup) -> tuple[int, bool, int, str]:
    """Return the order of the findings of a code."""
    first = group.first
    severity = list(Severity).index(first.severity)
    is_kept = not first.fails(Basis.RULES)
    return severity, is_kept, -len(group.subjects), first.code


def _kind(finding: Finding) -> str | None:
    """Return the name of the section of a finding, None if it is waived."""
    if finding.waiver is not None:
        return None
    if finding.severity is not Severity.NOTE:
        return "findings"
    if finding.code.startswith(NOTED):
        return "noted"
    return "others"


def _title(group: CodeGroup) -> str:
    code = codes().get(group.first.code)
    text = group.text
    is_long = len(group.subjects) > 1 or len(text) > _LONGEST
    if code and is_long:
        return code.title
    return text


# ---- companies ----------------------------------------------------------------------------


class Company(Struct, frozen=True):
    """A company that counts as a submitter, with its ``results`` by the rank in which they count.

    ``scale`` is the number of accelerators of its largest system, or of processors if it has none.
    ``parts`` are its systems in submissions of which it has only a part, by name.
    """

    name: str
    partners: frozenset[str]
    results: Mapping[By, Sequence[ResultSetRow]]
    scale: int
    parts: Mapping[str, Sequence[str]]


def companies(reviewed: ReviewedRound) -> tuple[Company, ...]:
    """Return all companies that are not excluded, by name.

    Raises:
        UserError: a name of ``--joint`` or ``--exclude`` is not that of a submitter.
    """
    names = reviewed.submitters
    excluded = {known_name(name, names, "--exclude") for name in reviewed.choices.excluded}
    scales = _scales(reviewed)
    has_large = reviewed.report.usage != "hpc"
    members = []
    for name in sorted(names.keys() - excluded):
        results: dict[By, list[ResultSetRow]] = {"results": [], "scale": []}
        largest = 0
        for row in reviewed.results[name]:
            if not row.runs_found:
                continue
            size = scales.get(description_path(row), 0)
            largest = max(largest, size)
            results["scale" if has_large and size >= LARGE else "results"].append(row)
        partners = _partners(name, joints(reviewed))
        members.append(Company(name, partners, results, largest, reviewed.parts[name]))
    return tuple(members)


def _partners(name: str, joint_submissions: Iterable[tuple[str, ...]]) -> frozenset[str]:
    """Return the other companies with which a company submits."""
    partners = set[str]()
    for names in joint_submissions:
        if name in names:
            partners.update(names)
    return frozenset(partners - {name})


def _scales(reviewed: ReviewedRound) -> dict[str, int]:
    """Return the accelerators of each system, or its processors if it has none, by path."""
    scales = {path: system.accelerators or 0 for path, system in reviewed.systems.items()}
    for system in reviewed.checked.systems:
        if not scales.get(system.path):
            per_node = whole_number((system.contents or {}).get("host_processors_per_node"))
            scales[system.path] = (system.nodes or 0) * (per_node or 0)
    return scales


def joints(reviewed: ReviewedRound) -> list[tuple[str, ...]]:
    """Return the companies that submit together: an entry, in one folder, or by ``--joint``.

    Raises:
        UserError: as ``companies``.
    """
    joint = [names for names in reviewed.entries.values() if len(names) > 1]
    alone: dict[str, set[str]] = {}  # the companies with entries of their own, by folder
    for entry, names in reviewed.entries.items():
        if len(names) == 1:
            alone.setdefault(entry.folder, set()).update(names)
    joint += [tuple(sorted(names)) for names in alone.values() if len(names) > 1]
    for text in reviewed.choices.joint:
        parts = text.rpartition("=")[2].split("+")
        joint.append(tuple(known_name(part, reviewed.submitters, "--joint") for part in parts))
    return list(dict.fromkeys(joint))


# ---- pairs down a ranking -----------------------------------------------------------------


ReviewGroup = list[int]
"""Two or three submitters who review each other, as indexes in a ranking."""

May = Callable[[int, int], bool]
"""Return whether two submitters may review each other."""


def groups(number: int, may: May) -> list[ReviewGroup]:
    """Return pairs down a ranking; if the number is odd, the last three are one group.

    A submitter that may not review the next one is paired with the nearest one below that it may
    review. If the members of the last group cannot review each other, the group swaps a member
    with the nearest group above such that both can. If no swap helps, the group stays, and
    ``reviews`` leaves a member out.
    """
    unpaired = list(range(number))
    formed = []
    while len(unpaired) > _THREE or len(unpaired) == 2:  # noqa: PLR2004 - a pair
        first = unpaired.pop(0)
        allowed = (place for place, second in enumerate(unpaired) if may(first, second))
        second = unpaired.pop(next(allowed, 0))
        formed.append([first, second])
    if unpaired:
        formed.append(unpaired)
    for index in reversed(range(len(formed))):
        if not is_covered(formed[index], may):
            _swap(formed, index, may)
    return formed


def reviews(group: ReviewGroup, may: May) -> Iterator[tuple[int, int]]:
    """Yield the allowed pairs of a group, reviewer first, in both directions."""
    return (pair for pair in permutations(group, 2) if may(*pair))


def is_covered(group: ReviewGroup, may: May) -> bool:
    """Return whether each member of a group may review another member."""
    return {reviewer for reviewer, _ in reviews(group, may)} == {*group}


def _swap(formed: list[ReviewGroup], index: int, may: May) -> None:
    """Swap a member of a group with one of the nearest other group, such that both are covered."""
    nearest_first = sorted(range(len(formed)), key=lambda near: (abs(near - index), -near))
    for near in nearest_first[1:]:
        first = formed[index]
        second = formed[near]
        for mine, theirs in product(first, reversed(second)):
            new_first = _replaced(first, mine, theirs)
            new_second = _replaced(second, theirs, mine)
            if is_covered(new_first, may) and is_covered(new_second, may):
                formed[index] = new_first
                formed[near] = new_second
                return


def _replaced(group: ReviewGroup, old: int, new: int) -> ReviewGroup:
    return sorted(new if member == old else member for member in group)


# ---- assignments --------------------------------------------------------------------------


class Assignment(Struct, frozen=True):
    """``reviewer`` reviews the submissions ``folders`` of ``submitter``.

    ``by`` is the ranking that paired them. Without a ``reviewer``, volunteers or the chairs review
    them.
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
        if self.by == "results":
            return len(company.results["results"])
        return company.scale

    def key(self, company: Company) -> tuple[int, bytes]:
        text = f"{self.seed} {company.name}".encode("utf-8", "backslashreplace")
        return -self.value(company), hashlib.sha256(text).digest()

    @property
    def unit(self) -> str:
        if self.by == "results":
            return "number of results"
        return "scale"

    def names(self, indexes: Iterable[int]) -> list[str]:
        return [self.members[index].name for index in indexes]

    def partners(self, group: ReviewGroup) -> list[str]:
        """Return the members of a group that may not review all others of it."""
        apart = []
        for first in group:
            if not all(self.may(first, second) for second in group):
                apart.append(first)
        return self.names(apart)


_ASSIGNMENTS = ("Reviewer", "Reviews", "Folders", "By", "Why")
_RANKS = (
    column("By"),
    column("Rank", numbers=True),
    column("Submitter"),
    column("Results", numbers=True),
    column("Large results", numbers=True),
    column("Largest", numbers=True),
)
_RANKS_NOTE = (
    f"Large results: the number of results on systems with {LARGE} or more accelerators, or"
    " processors if a system has no accelerators. Largest: the number of accelerators of the"
    " largest system."
)


def assignments(reviewed: ReviewedRound) -> tuple[Assignment, ...]:
    """Return all assignments: first those by number of results, then those by scale.

    Raises:
        UserError: as ``companies``.
    """
    return tuple(chain.from_iterable(map(_assigned, _ranks(reviewed))))


def reviewers(assigned: Iterable[Assignment], folder: str) -> str:
    """Return the reviewers of a submission: ``A, B (by results); C (by scale)``."""
    by_rank: dict[By, set[str]] = {}
    for assignment in assigned:
        if folder in assignment.folders:
            by_rank.setdefault(assignment.by, set()).add(assignment.reviewer or CHAIRS)
    ranks = [f"{', '.join(sorted(names))} (by {by})" for by, names in by_rank.items()]
    return "; ".join(ranks) or "nobody"


def assignments_section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the assignments, with their reasons."""
    pairs = []
    for assignment in assignments(reviewed):
        reviewer = assignment.reviewer or CHAIRS
        folders = ", ".join(assignment.folders)
        pairs.append((reviewer, assignment.submitter, folders, assignment.by, assignment.why))
    members: list[tuple[str | int | None, ...]] = []
    summary: list[str] = []
    for rank in _ranks(reviewed):
        members += _members(rank)
        summary += _summary(rank)
    note = "By: the ranking that paired reviewer and submitter."
    tables = {
        "pairs": table_of_cells(_ASSIGNMENTS, pairs, title="Assignments", note=note),
        "rank": table_of(_RANKS, members, title="Ranks", note=_RANKS_NOTE),
    }
    texts = (*_RULES, *_chosen(reviewed))
    return ReviewSection("assignments", "Assignments", texts, tables, tuple(summary))


def _members(rank: _Rank) -> Iterator[tuple[str | int | None, ...]]:
    for place, company in enumerate(rank.members, 1):
        results = len(company.results["results"])
        large_results = len(company.results["scale"])
        largest = company.scale or None
        yield rank.by, place, company.name, results, large_results, largest


def _ranks(reviewed: ReviewedRound) -> list[_Rank]:
    members = companies(reviewed)
    ranks = []
    for by in get_args(By):
        ranked = [company for company in members if company.results[by]]
        rank = _Rank(by, ranked, reviewed.choices.seed)
        ranked.sort(key=rank.key)
        ranks.append(rank)
    return ranks


def _assigned(rank: _Rank) -> Iterator[Assignment]:
    for group in groups(len(rank.members), rank.may):
        for reviewer, submitter in _reviewed_by(rank, group):
            company = rank.members[submitter]
            folders = dict.fromkeys(row.submitter or "" for row in company.results[rank.by])
            why = _why(rank, group, reviewer)
            for folder in folders:
                if folder in company.parts:
                    systems = wording.enumerated(company.parts[folder])
                    why += f"; in the submission {folder}, only the systems {systems}"
            yield Assignment(reviewer, company.name, tuple(folders), rank.by, why)


def _reviewed_by(rank: _Rank, group: ReviewGroup) -> Iterator[tuple[str | None, int]]:
    """Yield the reviewers of each member of a group; None if no other member may review it."""
    reviewed = set[int]()
    for first, second in reviews(group, rank.may):
        reviewed.add(second)
        yield rank.members[first].name, second
    for member in group:
        if member not in reviewed:
            yield None, member


def _why(rank: _Rank, group: ReviewGroup, reviewer: str | None) -> str:
    if reviewer is None:
        is_only = len(rank.members) == 1
        alone = (
            ("the only submitter ranked")
            if is_only
            else "a partner of all other submitters left in the ranking"
        )
        return f"{alone} by {rank.unit}"
    numbers = [str(index + 1) for index in group]
    values = [rank.value(company) for company in rank.members]
    values_of_group = wording.enumerated([str(values[index]) for index in group])
    reason = f"ranks {wording.enumerated(numbers)} by {rank.unit} ({values_of_group})"
    if group != list(range(group[0], group[0] + len(group))):
        reason += ", as partners may not review each other"
    if len(group) == _THREE:
        reason += "; the last three review each other, as the number of submitters is odd"
    partners = rank.partners(group)
    if partners:
        reason += f"; {wording.enumerated(partners)} are partners and do not review each other"
    if any(values.count(values[index]) > 1 for index in group):
        reason += f"; ties broken by seed {rank.seed}"
    return reason


def _chosen(reviewed: ReviewedRound) -> Iterator[str]:
    choices = reviewed.choices
    for joint in joints(reviewed):
        yield f"{wording.enumerated(joint)} submit together."
    if choices.excluded:
        yield f"Excluded from the assignments: {', '.join(choices.excluded)}."
    idle = [company.name for company in companies(reviewed) if not any(company.results.values())]
    if idle:
        yield f"Without results and therefore without assignments: {', '.join(idle)}."
    yield f"Ties are broken by seed {choices.seed}."


def _summary(rank: _Rank) -> Iterator[str]:
    texts = []
    alone: list[str] = []
    for group in groups(len(rank.members), rank.may):
        members = set(chain.from_iterable(reviews(group, rank.may)))
        if members:
            text = wording.enumerated(rank.names(index for index in group if index in members))
            partners = rank.partners(group)
            if partners:
                text += f" (but {wording.enumerated(partners)} do not review each other)"
            texts.append(text)
        alone += rank.names(index for index in group if index not in members)
    if texts:
        yield f"paired by {rank.unit}: {'; '.join(texts)}"
    if alone:
        names = wording.enumerated(sorted(alone))
        whom = "it" if len(alone) == 1 else "them"
        yield (
            f"no submitter with a similar {rank.unit} is left to review {names}; {CHAIRS} review"
            f" {whom}"
        )
    if rank.by == "results" and not (texts or alone):
        yield f"paired by {rank.unit}: {wording.NOTHING}"
