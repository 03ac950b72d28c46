"""``review compare resubmitted``: result sets with the logs of an earlier round."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec
from msgspec import Struct

from mlperf_pkg.checks.copies import different_fields
from mlperf_pkg.checks.descriptions import PREVIEW, category, published_differences
from mlperf_pkg.checks.names import is_same_submitter
from mlperf_pkg.commands.review.round import (
    ReviewedRound,
    ReviewSection,
    ReviewSide,
    RoundListing,
    SideEntry,
    data_column,
    matched,
)
from mlperf_pkg.findings import Verdict, in_words
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.render.table import Column
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.rounds import first_name

_BRIEF = (
    "outcome",
    "path",
    "old_round",
    "old_path",
    "problems",
    "runs",
    "shared_runs",
    "identical_files",
    "description",
)
_MOST = 100  # sets with the same run that are compared
ALLOWED = "allowed"
NOT_ALLOWED = "not allowed"
UNKNOWN = "not known from the record"
_COMPLETE = "same"
_PUBLISHED = "same as far as published"
_UNKNOWN = "not known"


class Resubmission(Struct, frozen=True):
    """A result set with runs of a result set of an earlier round.

    ``fields`` are the fields of the description that differ; ``description`` is how completely it
    was compared. ``problems`` are the violations of the rules.
    """

    old: SideEntry
    new: SideEntry
    runs: int
    identical: int
    description: str
    fields: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def outcome(self) -> str:
        """Whether the rules allow it; the record lacks most of a description, such as libraries."""
        if self.problems:
            return NOT_ALLOWED
        if self.description == _COMPLETE:
            return ALLOWED
        return UNKNOWN


def resubmissions(old: ReviewSide, new: ReviewSide) -> list[Resubmission]:
    """Return the sets of the new side with runs of the old one, one for each earlier round."""
    old, new = matched(old, new)
    places: dict[Hashable, list[int]] = {}  # of the old sets with a run, by its keys
    for place, entry in enumerate(old.entries):
        for key in entry.all_keys:
            places.setdefault(key, []).append(place)
    pairs = []
    for entry in new.entries:
        alike = set[int]()
        for key in entry.all_keys:
            alike.update(places.get(key, ())[:_MOST])
        candidates = [old.entries[place] for place in sorted(alike)]
        for of_round in _earlier_by_round(candidates, entry):
            pairs.append(_resubmission(of_round, entry))
    return pairs


def _earlier_by_round(candidates: Iterable[SideEntry], new: SideEntry) -> Iterable[list[SideEntry]]:
    """Return the candidates of earlier rounds than a new set, a list for each round."""
    by_round: dict[str, list[SideEntry]] = {}
    for entry in candidates:
        if entry.row.usage == new.row.usage and entry.version < new.version:
            by_round.setdefault(entry.row.round, []).append(entry)
    return by_round.values()


def resubmitted(old: ReviewSide, new: ReviewSide) -> RoundListing:
    """Return the sets of the new side that have logs of the old one."""
    rows = resubmissions(old, new)
    counts = Counter(row.outcome for row in rows)
    sides = old.name if old is new else f"{new.name}, from {old.name}"
    return RoundListing(
        name="resubmitted",
        title=f"Resubmitted logs in {sides}",
        summary=tuple(_summary(rows, old, new)),
        counts={outcome: counts[outcome] for outcome in (ALLOWED, NOT_ALLOWED, UNKNOWN)},
        columns=COLUMNS,
        rows=rows,
        group_of=_title,
        is_open=lambda row: row.outcome != ALLOWED,
        brief=_BRIEF,
    )


def _resubmission(candidates: Sequence[SideEntry], new: SideEntry) -> Resubmission:
    """Return the resubmission of the set of the same name, else of that with most of the runs."""
    old = max(candidates, key=lambda old: (old.row.name == new.row.name, new.shared(old)))
    hashes = set(old.logs)
    identical = sum(log in hashes for log in new.logs)
    description, fields = _description(old, new)
    problems = tuple(_problems(old, new, fields))
    return Resubmission(old, new, new.shared(old), identical, description, fields, problems)


def _description(old: SideEntry, new: SideEntry) -> tuple[str, tuple[str, ...]]:
    """Return how completely the descriptions were compared, and the fields that differ."""
    before = old.system
    after = new.system
    if before and after and before.contents is not None and after.contents is not None:
        return _COMPLETE, tuple(different_fields(before, after))
    if not (old.row.system_name and new.row.system_name):
        return _UNKNOWN, ()
    now = msgspec.structs.asdict(new.row)
    return _PUBLISHED, tuple(published_differences(now, old.row))


def _problems(old: SideEntry, new: SideEntry, fields: Sequence[str]) -> Iterator[str]:
    """Yield the violations of the rules on resubmission."""
    before = old.row
    after = new.row
    if not is_same_submitter(old.submitter_names, new.submitter_names):
        yield f"runs of {before.submitter}"
    old_benchmark = first_name(before.usage, before.round, before.benchmark)
    new_benchmark = first_name(after.usage, after.round, after.benchmark)
    if old_benchmark != new_benchmark:
        yield f"runs of {before.benchmark}"
    was_preview = category(before.status) == PREVIEW
    if was_preview and category(after.status) != PREVIEW:
        yield "runs of a Preview, which prove nothing"
    changed = list(fields)
    if was_preview:
        changed = [field for field in fields if field != "status"]
    if changed:
        yield f"the description differs in {in_words(changed, 's')}"
    if new.official is Verdict.FAIL:
        yield f"the logs fail the checker of {after.round}"


# ---- the list -----------------------------------------------------------------------------


def _summary(rows: Sequence[Resubmission], old: ReviewSide, new: ReviewSide) -> Iterator[str]:
    number = len({row.new.name for row in rows})
    total = wording.counted(len(new.entries), "result set")
    yield f"{number} of {total} {'has' if number == 1 else 'have'} logs of an earlier round"
    if rows:
        counts = Counter(row.outcome for row in rows)
        line = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        if old is new:
            line = f"{wording.counted(len(rows), 'pair')}: {line}"
        yield line
    kinds = Counter[str]()
    for row in rows:
        kinds.update(_kinds(row))
    for kind, count in kinds.most_common():
        yield f"{count} {kind}"


def _kinds(row: Resubmission) -> Iterator[str]:
    if not row.identical:
        yield "with rewritten logs: the same runs or mean, but different files"
    if row.fields:
        yield "with a different system description"
    if row.description == _UNKNOWN:
        yield "without a description to compare"
    if row.new.official is Verdict.FAIL:
        yield "with logs that fail the checker of their new round"


def _title(row: Resubmission) -> str:
    if row.problems:
        return f"{NOT_ALLOWED}: {'; '.join(row.problems)}"
    return f"{row.outcome}; description: {row.description}"


def _origin(old: PublishedSet, new: PublishedSet) -> str:
    """Return the round of the old set, with its name as far as it differs."""
    if old.name == new.name:
        return old.round
    is_renamed = (old.submitter, old.benchmark) == (new.submitter, new.benchmark)
    return f"{old.round} {old.system if is_renamed else old.name}"


def _files(row: Resubmission) -> str:
    if row.identical == row.new.row.runs:
        return "identical"
    if row.identical:
        return f"{row.identical} identical"
    return "rewritten"


COLUMNS = (
    Column("Result set", of=attrgetter("new.name")),
    Column("Runs", 7, numbers=True, of=lambda row: f"{row.runs}/{row.new.row.runs}"),
    Column("From", 34, of=lambda row: _origin(row.old.row, row.new.row)),
    Column("Files", 14, of=_files),
    data_column("outcome", "outcome"),
    data_column("round", "new.row.round"),
    data_column("path", "new.row.path"),
    data_column("old_round", "old.row.round"),
    data_column("old_path", "old.row.path"),
    data_column("runs", "new.row.runs"),
    data_column("shared_runs", "runs"),
    data_column("identical_files", "identical"),
    Column(key="description", of=lambda row: "different" if row.fields else row.description),
    Column(key="different_fields", of=lambda row: ", ".join(row.fields) or None),
    data_column("official", "new.official.value"),
    Column(key="problems", of=lambda row: "; ".join(row.problems) or None),
)


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the sets of a round that have published logs of an earlier one."""
    return resubmitted(reviewed.earlier, reviewed.side).section("Resubmitted logs")
