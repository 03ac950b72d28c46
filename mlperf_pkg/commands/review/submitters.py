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
from mlperf_pkg.commands.review.round import (
    ReviewedRound,
    ReviewSection,
    column,
    known_name,
    table_of_cells,
)
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.render.table import by_key, table_of
from mlperf_pkg.render.text import CodeGroup, Submitters, by_code
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow, description_path
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
    "Submitters are ranked by their number of results and paired down the ranking; the two of a"
    " pair review each other. If the number is odd, the last three review each other.",
    f"Results on systems with {LARGE} or more accelerators do not count in this ranking (Training"
    " only): their submitters are ranked by their largest system, and review these results of each"
    " other.",
    "Each company of a joint submission counts as a submitter, and never reviews its partner.",
)


_SUBMITTERS = tuple(
    column(title, numbers=title not in ("Submitter", "Divisions"))
    for title in (
        *("Submitter", "Systems", "Results", "Largest", "Divisions", "Official FAIL"),
        *("Rules FAIL", "Errors", "Warnings", "With errors"),
    )
)


def submitters_section(reviewed: ReviewedRound) -> ReviewSection:
    """Return a table of all submitters, by name, also of those without a result set."""
    report = reviewed.report
    note = "Largest: accelerators of the largest system with results. With errors: result sets."
    table = table_of(_SUBMITTERS, _submitters(reviewed), title="Submitters", note=note)
    systems = {(row.submitter, row.system) for row in report.results}
    numbers = {"submitter": reviewed.number, "system": len(systems)}
    numbers |= {"result set": len(report.results), "run": len(report.runs)}
    counts = ", ".join(wording.counted(number, noun) for noun, number in numbers.items())
    official, rules = failing(report.result_sets)
    verdicts = f"result sets that fail: {official} by the official verdict, {rules} by the rules"
    return ReviewSection("submitters", "Submitters", (), {"table": table}, (counts, verdicts))


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
    by_label = by_folder(reviewed.report.findings, attrgetter("about"))
    for name, folders in reviewed.submitters.items():
        rows = [row for folder in folders for row in reviewed.sets[folder]]
        findings = [finding for folder in folders for finding in by_label.get(labels[folder], ())]
        systems = [reviewed.systems.get(description_path(row)) for row in rows]
        sizes = [system.accelerators for system in systems if system and system.accelerators]
        severities = Counter(finding.severity for finding in findings)
        numbers = (len({(row.submitter, row.system) for row in rows}), len(rows))
        divisions = ", ".join(sorted({row.division or wording.NOTHING for row in rows}))
        weights = (severities[Severity.ERROR], severities[Severity.WARNING])
        with_errors = sum(row.id in reviewed.with_errors for row in rows)
        largest = max(sizes, default=None)
        yield name, *numbers, largest, divisions, *failing(rows), *weights, with_errors


_FINDINGS = ("Severity", "Code", "By", "Places", "Submitters", "Found")
NOTED = (
    *("RUN130", "SET111", "SET113", "SET120", "SET123", "SET124", "SET127", "SET140", "SET15"),
    *("SET160", "SET163", "SET164", "SEED106"),
)
"""Prefixes of the notes that need a look; those of SET162 are listed as outliers."""

_KINDS = {
    "findings": ("Findings", "Errors and warnings by weight"),
    "noted": ("Notes to look at", "Notes by weight"),
    "others": ("Other notes", "Other notes by weight"),
}


def findings_section(name: str, reviewed: ReviewedRound) -> ReviewSection:
    """Return the findings of a kind, of each code, by weight: errors by the rules first."""
    report = reviewed.report
    ranks = list(Severity)
    every = (f for f in report.findings if f.waiver is None and _kind(f) == name)

    def weight(group: CodeGroup) -> tuple[int, bool, int, str]:
        first = group.first
        severity = ranks.index(first.severity)
        is_kept = not first.fails(Basis.RULES)
        return severity, is_kept, -len(group.subjects), first.code

    of_group = Submitters(report).of_group
    rows = [(group, of_group(group)) for group in sorted(by_code(every), key=weight)]
    title, of_table = _KINDS[name]
    cells = [
        (g.first.severity.value, g.first.code, g.first.basis.value, len(g.subjects), whose, g.text)
        for g, whose in rows
    ]
    tables = {"table": table_of_cells(_FINDINGS, cells, title=of_table)} if rows else {}
    lines = tuple(f"{g.first.severity} {g.first.code} ({whose}): {_title(g)}" for g, whose in rows)
    text = () if rows else ("no errors or warnings",) if name == "findings" else ("none",)
    return ReviewSection(name, title, text, tables, () if name == "others" else lines or text)


def _kind(finding: Finding) -> str:
    if finding.severity is not Severity.NOTE:
        return "findings"
    return "noted" if finding.code.startswith(NOTED) else "others"


def _title(group: CodeGroup) -> str:
    code = codes().get(group.first.code)
    text = group.text
    return code.title if code and (len(group.subjects) > 1 or len(text) > _LONGEST) else text


# ---- companies ----------------------------------------------------------------------------


class Company(Struct, frozen=True):
    """A company that counts as a submitter, with its ``results`` by the rank in which they count.

    ``scale`` is the number of accelerators of its largest system, or of processors if it has none.
    """

    name: str
    partners: frozenset[str]
    results: Mapping[By, Sequence[ResultSetRow]]
    scale: int


def companies(reviewed: ReviewedRound) -> tuple[Company, ...]:
    """Return all companies that are not excluded, by name.

    Raises:
        UserError: a name of ``--joint`` or ``--exclude`` is not that of a submitter.
    """
    folders = reviewed.submitters
    excluded = {known_name(name, folders, "--exclude") for name in reviewed.choices.excluded}
    scales = _scales(reviewed)
    has_large = reviewed.report.usage != "hpc"
    members = []
    for name in sorted(folders.keys() - excluded):
        rows = [row for folder in folders[name] for row in reviewed.sets[folder]]
        sizes = [scales.get(description_path(row), 0) for row in rows]
        ranked: list[By] = ["scale" if has_large and n >= LARGE else "results" for n in sizes]
        results: Any = {"results": [], "scale": [], **by_key(zip(ranked, rows, strict=True))}
        partners = (joint for joint in joints(reviewed) if name in joint)
        others = frozenset(chain.from_iterable(partners)) - {name}
        members.append(Company(name, others, results, max(sizes, default=0)))
    return tuple(members)


def _scales(reviewed: ReviewedRound) -> dict[str, int]:
    """Return the accelerators of each system, or its processors if it has none, by path."""
    scales = {path: system.accelerators or 0 for path, system in reviewed.systems.items()}
    for system in reviewed.checked.systems:
        if not scales.get(system.path):
            per_node = whole_number((system.contents or {}).get("host_processors_per_node"))
            scales[system.path] = (system.nodes or 0) * (per_node or 0)
    return scales


def joints(reviewed: ReviewedRound) -> list[tuple[str, ...]]:
    """Return the companies that submit together: in one folder, or by ``--joint``.

    Raises:
        UserError: as ``companies``.
    """
    companies = reviewed.submitters
    of_folder = by_key((folder, name) for name in companies for folder in companies[name])
    joint = [tuple(names) for names in of_folder.values() if len(names) > 1]
    for text in reviewed.choices.joint:
        parts = text.rpartition("=")[2].split("+")
        names = tuple(known_name(name, companies, "--joint") for name in parts)
        joint += [names] if names not in joint else []
    return joint


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
    rank = list(range(number))
    formed = []
    while len(rank) > _THREE or len(rank) == 2:  # noqa: PLR2004 - a pair
        first = rank.pop(0)
        nearest = next((index for index, second in enumerate(rank) if may(first, second)), 0)
        formed.append([first, rank.pop(nearest)])
    formed += [rank] if rank else []
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
            swapped = {mine: theirs, theirs: mine}
            pair = [sorted(swapped.get(item, item) for item in group) for group in (first, second)]
            if all(is_covered(group, may) for group in pair):
                formed[index], formed[near] = pair
                return


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
        return len(company.results["results"]) if self.by == "results" else company.scale

    def key(self, company: Company) -> tuple[int, bytes]:
        text = f"{self.seed} {company.name}".encode("utf-8", "backslashreplace")
        return -self.value(company), hashlib.sha256(text).digest()

    @property
    def unit(self) -> str:
        return "number of results" if self.by == "results" else "scale"

    def partners(self, group: ReviewGroup) -> list[str]:
        apart = (one for one in group if not all(self.may(one, other) for other in group))
        return [self.members[index].name for index in apart]


_ASSIGNMENTS = ("Reviewer", "Reviews", "Folders", "By", "Why")
_RANKS = (
    column("By", lambda row: row[0]),
    column("Rank", lambda row: row[1], numbers=True),
    column("Submitter", lambda row: row[2].name),
    column("Results", lambda row: len(row[2].results["results"]), numbers=True),
    column("Large results", lambda row: len(row[2].results["scale"]), numbers=True),
    column("Largest", lambda row: row[2].scale or None, numbers=True),
)
_RANKS_NOTE = (
    f"Large results: on systems with {LARGE} or more accelerators (processors in systems without"
    " accelerators). Largest: accelerators of the largest system."
)


def assignments(reviewed: ReviewedRound) -> tuple[Assignment, ...]:
    """Return all assignments: first those by number of results, then those by scale.

    Raises:
        UserError: as ``companies``.
    """
    return tuple(chain.from_iterable(map(_assigned, _ranks(reviewed))))


def reviewers(assigned: Iterable[Assignment], folder: str) -> str:
    """Return the reviewers of a submission: ``A, B (by results); C (by scale)``."""
    of_folder = (item for item in assigned if folder in item.folders)
    by_rank = by_key((item.by, item.reviewer or CHAIRS) for item in of_folder)
    ranks = (f"{', '.join(sorted({*names}))} (by {by})" for by, names in by_rank.items())
    return "; ".join(ranks) or "nobody"


def assignments_section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the assignments, with their reasons."""
    ranks = _ranks(reviewed)
    note = "By: the ranking that paired them."
    made = assignments(reviewed)
    cells = [(a.reviewer or CHAIRS, a.submitter, ", ".join(a.folders), a.by, a.why) for a in made]
    pairs = table_of_cells(_ASSIGNMENTS, cells, title="Assignments", note=note)
    members = [(rank.by, *pair) for rank in ranks for pair in enumerate(rank.members, 1)]
    texts = (*_RULES, *_chosen(reviewed))
    summary = tuple(chain.from_iterable(map(_summary, ranks)))
    rank = table_of(_RANKS, members, title="Ranks", note=_RANKS_NOTE)
    return ReviewSection(
        "assignments", "Assignments", texts, {"pairs": pairs, "rank": rank}, summary
    )


def _ranks(reviewed: ReviewedRound) -> list[_Rank]:
    members = companies(reviewed)
    seed = reviewed.choices.seed
    ranks = [_Rank(by, [c for c in members if c.results[by]], seed) for by in get_args(By)]
    for rank in ranks:
        rank.members.sort(key=rank.key)
    return ranks


def _assigned(rank: _Rank) -> Iterator[Assignment]:
    for group in groups(len(rank.members), rank.may):
        pairs = [(rank.members[one].name, other) for one, other in reviews(group, rank.may)]
        met = {submitter for _, submitter in pairs}
        for name, submitter in [*pairs, *((None, one) for one in group if one not in met)]:
            company = rank.members[submitter]
            why = _why(rank, group, name)
            folders = dict.fromkeys(row.submitter or "" for row in company.results[rank.by])
            yield Assignment(name, company.name, tuple(folders), rank.by, why)


def _why(rank: _Rank, group: ReviewGroup, reviewer: str | None) -> str:
    if reviewer is None:
        alone = ("a partner of all others left in the ranking", "the only one ranked")
        return f"{alone[len(rank.members) == 1]} by {rank.unit}"
    numbers = [str(index + 1) for index in group]
    values = [rank.value(company) for company in rank.members]
    own = wording.enumerated([str(values[index]) for index in group])
    reason = f"ranks {wording.enumerated(numbers)} by {rank.unit} ({own})"
    if len(group) == _THREE:
        reason += ", the last three of an odd number"
    if group != list(range(group[0], group[0] + len(group))):
        reason += ", as partners may not review each other"
    partners = rank.partners(group)
    if partners:
        reason += f"; {wording.enumerated(partners)} are partners and do not review each other"
    if any(values.count(values[index]) > 1 for index in group):
        reason += f"; ties broken by seed {rank.seed}"
    return reason


def _chosen(reviewed: ReviewedRound) -> Iterator[str]:
    choices = reviewed.choices
    yield from (f"{wording.enumerated(joint)} submit together." for joint in joints(reviewed))
    if choices.excluded:
        yield f"Excluded: {', '.join(choices.excluded)}."
    idle = [item.name for item in companies(reviewed) if not any(item.results.values())]
    if idle:
        yield f"Without results and therefore without assignments: {', '.join(idle)}."
    yield f"Ties are broken by seed {choices.seed}."


def _summary(rank: _Rank) -> Iterator[str]:
    names = [company.name for company in rank.members]
    texts = []
    alone = []
    for group in groups(len(names), rank.may):
        members = {*chain.from_iterable(reviews(group, rank.may))}
        if members:
            partners = wording.enumerated(rank.partners(group))
            present = wording.enumerated([names[index] for index in group if index in members])
            texts.append(f"{present} ({partners} not each other)" if partners else present)
        alone += [names[index] for index in group if index not in members]
    if alone:
        texts.append(f"{wording.enumerated(sorted(alone))} by {CHAIRS}")
    if texts or rank.by == "results":
        yield f"by {rank.unit}: {'; '.join(texts) or wording.NOTHING}"
