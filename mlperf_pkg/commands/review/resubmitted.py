"""``review compare resubmitted``: result sets with the logs of an earlier round."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from msgspec import Struct

from mlperf_pkg.checks.resubmission import Outcome, Resubmission, judge, published_set
from mlperf_pkg.commands.review.round import (
    ReviewedRound,
    ReviewSection,
    ReviewSide,
    RoundListing,
    SideEntry,
    data_column,
    matched,
    sure_keys,
)
from mlperf_pkg.findings import Verdict
from mlperf_pkg.published.model import PublishedSet
from mlperf_pkg.render.table import Column
from mlperf_pkg.results import wording

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


_NOT_DESCRIBED = "not known"


class ResubmittedSet(Struct, frozen=True):
    """A result set with ``runs`` of a result set of an earlier round, and the judgement on them.

    ``identical`` of their logs have the same bytes.
    """

    old: SideEntry
    new: SideEntry
    runs: int
    identical: int
    judgement: Resubmission

    @property
    def of_runs(self) -> int:
        """The number of runs of the set, with those of weak scaling that do not count."""
        return len(self.new.keys)

    @property
    def outcome(self) -> Outcome:
        """Whether the rules allow it."""
        return self.judgement.outcome

    @property
    def description(self) -> str:
        """Whether the system descriptions are the same."""
        if self.judgement.fields:
            return "different"
        sides = (self.old, self.new)
        if all(entry.system and entry.system.contents is not None for entry in sides):
            return "same"
        if all(entry.row.system_name for entry in sides):
            return "same in all published fields"
        return _NOT_DESCRIBED


def resubmissions(old: ReviewSide, new: ReviewSide) -> list[ResubmittedSet]:
    """Return the sets of the new side with runs of the old one, one for each set of origin."""
    old, new = matched(old, new)
    places: dict[Hashable, list[int]] = {}  # of the old sets with a run, by its keys
    for place, entry in enumerate(old.entries):
        for key in entry.all_keys:
            places.setdefault(key, []).append(place)
    sets = []
    for entry in new.entries:
        runs_by_origin: dict[int, list[frozenset[Hashable]]] = {}
        for run_keys in entry.keys:
            alike = set[int]()
            for key in run_keys:
                alike.update(places.get(key, ())[:_MOST])
            origin = _origin_of(entry, sorted(alike), old.entries)
            if origin is not None:
                runs_by_origin.setdefault(origin, []).append(run_keys)
        for origin, runs in runs_by_origin.items():
            sets.append(_resubmitted(old.entries[origin], entry, runs))
    return sets


def _origin_of(new: SideEntry, places: Sequence[int], entries: Sequence[SideEntry]) -> int | None:
    """Return the place of the earlier set of the same name, else of the first; None if none is."""
    earlier = []
    for place in places:
        old = entries[place]
        if old.row.usage == new.row.usage and old.version < new.version:
            earlier.append(place)
    namesakes = [place for place in earlier if entries[place].row.name == new.row.name]
    return next(iter(namesakes or earlier), None)


def _resubmitted(
    old: SideEntry, new: SideEntry, runs: Sequence[frozenset[Hashable]]
) -> ResubmittedSet:
    """Judge the runs of a set that are from an old one, by their keys."""
    hashes = set(old.logs)
    identical = sum(not hashes.isdisjoint(run_keys) for run_keys in runs)
    unsure = sum(not sure_keys(run_keys & old.all_keys) for run_keys in runs)
    judgement = judge(
        published_set(old.row, old.system, old.official),
        published_set(new.row, new.system, new.official),
        runs=len(runs),
        rewritten=len(runs) - identical - unsure,
        unsure=unsure,
    )
    return ResubmittedSet(old, new, len(runs), identical, judgement)


def resubmitted(old: ReviewSide, new: ReviewSide) -> RoundListing:
    """Return the sets of the new side that have logs of the old one."""
    rows = resubmissions(old, new)
    counts = Counter(_outcomes(rows).values())
    sides = old.name if old is new else f"{new.name}, from {old.name}"
    return RoundListing(
        name="resubmitted",
        title=f"Resubmitted logs in {sides}",
        summary=tuple(_summary(rows, new)),
        counts={outcome: counts[outcome] for outcome in Outcome},
        columns=COLUMNS,
        rows=rows,
        group_of=lambda row: row.judgement.text,
        is_open=lambda row: row.outcome is not Outcome.ALLOWED,
        brief=_BRIEF,
    )


def _outcomes(rows: Sequence[ResubmittedSet]) -> dict[str, Outcome]:
    """Return the outcome of each set; if its runs are from several sets, the worst."""
    outcomes: dict[str, Outcome] = {}
    worst = tuple(Outcome).index
    for row in rows:
        outcome = outcomes.get(row.new.name, row.outcome)
        outcomes[row.new.name] = max(outcome, row.outcome, key=worst)
    return outcomes


# ---- the list -----------------------------------------------------------------------------


def _summary(rows: Sequence[ResubmittedSet], new: ReviewSide) -> Iterator[str]:
    outcomes = _outcomes(rows)
    number = len(outcomes)
    total = wording.counted(len(new.entries), "result set")
    yield f"{number} of {total} {'has' if number == 1 else 'have'} logs of an earlier round"
    if rows:
        counts = Counter(outcomes.values())
        yield ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
    kinds = Counter[str]()
    for name in outcomes:
        of_set = [row for row in rows if row.new.name == name]
        kinds.update(dict.fromkeys(chain.from_iterable(map(_kinds, of_set)), 1))
    for kind, count in kinds.most_common():
        yield f"{count} {kind}"


def _kinds(row: ResubmittedSet) -> Iterator[str]:
    if row.identical < row.runs:
        yield "with rewritten logs (the runs or their mean are the same, but the files differ)"
    if row.judgement.fields:
        yield "with a different system description"
    if row.description == _NOT_DESCRIBED:
        yield "without a description to compare"
    if row.new.official is Verdict.FAIL:
        yield "with logs that fail the checker of their new round"


def _origin(old: PublishedSet, new: PublishedSet) -> str:
    """Return the round of the old set, with its name as far as it differs."""
    if old.name == new.name:
        return old.round
    is_renamed = (old.submitter, old.benchmark) == (new.submitter, new.benchmark)
    return f"{old.round} {old.system if is_renamed else old.name}"


def _files(row: ResubmittedSet) -> str:
    if row.identical == row.of_runs:
        return "identical"
    if row.identical:
        return f"{row.identical} identical"
    return "rewritten"


COLUMNS = (
    Column("Result set", of=attrgetter("new.name")),
    Column("Runs", 7, numbers=True, of=lambda row: f"{row.runs}/{row.of_runs}"),
    Column("From", 34, of=lambda row: _origin(row.old.row, row.new.row)),
    Column("Files", 14, of=_files),
    data_column("outcome", "outcome"),
    data_column("round", "new.row.round"),
    data_column("path", "new.row.path"),
    data_column("old_round", "old.row.round"),
    data_column("old_path", "old.row.path"),
    data_column("runs", "of_runs"),
    data_column("shared_runs", "runs"),
    data_column("identical_files", "identical"),
    data_column("description", "description"),
    Column(key="different_fields", of=lambda row: ", ".join(row.judgement.fields) or None),
    data_column("official", "new.official.value"),
    Column(key="problems", of=lambda row: "; ".join(row.judgement.problems) or None),
    Column(key="unknown", of=lambda row: "; ".join(row.judgement.unknown) or None),
)


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the sets of a round that have published logs of an earlier one."""
    return resubmitted(reviewed.earlier, reviewed.side).section("Resubmitted logs")
