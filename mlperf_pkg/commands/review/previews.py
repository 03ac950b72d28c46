"""``review compare previews``: the Previews of an earlier round and their successors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from datetime import date
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.copies import Performance
from mlperf_pkg.checks.descriptions import AVAILABLE, PREVIEW, category
from mlperf_pkg.checks.names import Likeness, likeness, words_of
from mlperf_pkg.commands.review.round import (
    ReviewedRound,
    ReviewSection,
    ReviewSide,
    RoundListing,
    SideEntry,
    data_column,
    matched,
)
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.render.table import Column
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.load import benchmarks_of, load_benchmark, submission_date
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import due_round, first_name
from mlperf_pkg.submission.submitters import are_same, is_same_submitter

_T = TypeVar("_T")

_SINCE = date(2025, 6, 12)  # of proofs on old benchmarks
_MANY = 100  # percent, from which on decimals are not shown
_LEGEND = (
    "On: the number of accelerators. Change: how much the performance changed. It is computed from"
    " the time; s: from time x accelerators, as the successor has fewer accelerators; e: from the"
    " energy. ~: the systems match by name only."
)
_BRIEF = (
    "outcome",
    "round",
    "submitter",
    "accelerator",
    "benchmark",
    "division",
    "role",
    "scale",
    "minutes",
    "due",
    "new_system",
    "new_scale",
    "new_minutes",
    "performance_percent",
    "match",
    "remark",
)
_PERFORMANCE = (
    "change of the performance (minutes of a Preview divided by minutes of its successor; also"
    " minutes times accelerators, or energy)"
)


def previews(old: ReviewSide, new: ReviewSide, proofs: Sequence[SideEntry] = ()) -> RoundListing:
    """Return the Previews of the old side with their successors on the new one.

    ``proofs`` are as in ``successions``.
    """
    order = tuple(PreviewOutcome)
    rows = sorted(successions(old, new, proofs), key=lambda row: order.index(row.outcome))
    sides = old.name if old is new else f"{old.name}, with successors in {new.name}"
    return RoundListing(
        name="previews",
        title=f"Previews of {sides}",
        summary=tuple(_summary(rows)),
        counts=Counter(row.outcome.value for row in rows),
        columns=COLUMNS,
        rows=rows,
        group_of=lambda row: row.outcome.value,
        is_open=lambda row: row.outcome.is_open,
        brief=_BRIEF,
        legend=_LEGEND,
        scores={"minutes": attrgetter("preview"), "new_minutes": attrgetter("successor")},
        derived=(_PERFORMANCE,) if any(row.percent is not None for row in rows) else (),
    )


def _summary(rows: Sequence[Succession]) -> Iterator[str]:
    if not rows:
        yield "no Previews"
        return
    counts = Counter(row.outcome for row in rows)
    totals = [f"{counts[PreviewOutcome.MET]} with their Available result"]
    details = []
    for title, is_open in (("missing or uncertain", True), ("not needed", False)):
        total = 0
        numbers = []
        for outcome, count in counts.items():
            if outcome is not PreviewOutcome.MET and outcome.is_open is is_open:
                total += count
                numbers.append(f"{count} {_REASONS[outcome]}")
        if numbers:
            totals.append(f"{total} where it is {title}")
            number = wording.counted(total, "Preview")
            details.append(f"{title}: a later result for {number} ({', '.join(numbers)})")
    yield f"{wording.counted(len(rows), 'Preview')}: {', '.join(totals)}"
    yield from details
    unsure = sum(map(_is_unsure, rows))
    if unsure:
        yield f"{wording.counted(unsure, 'Preview')} compared with systems that match by name only"


def _is_unsure(row: Succession) -> bool:
    return row.likeness is not None and not row.likeness.is_sure


def _name(row: Succession) -> str:
    preview = row.preview.row
    name = f"{preview.round} {preview.submitter} {preview.benchmark}"
    division = preview.division.lower()
    if division == "closed":
        return name
    return f"{name} ({division or 'no division'})"


def _available(row: Succession) -> str:
    """Return the score of the successor, or the reason why there is no successor."""
    if row.successor is None:
        if row.remark:
            return row.remark
        if row.outcome is PreviewOutcome.NOT_DUE:
            return f"due in {row.due or 'a later round'}"
        return wording.NOTHING
    mark = "~ " if _is_unsure(row) else ""
    remark = f"; {row.remark}" if row.remark else ""
    score = f"{row.successor.score} on {_scale(row.successor_scale)}"
    return f"{mark}{score} ({row.successor.row.round}){remark}"


def _scale(scale: Scale | None) -> str:
    if scale is None:
        return wording.NOTHING
    if scale.unit == "accelerator":
        return str(scale.number)
    return str(scale)


def _change(row: Succession) -> str:
    if row.percent is None:
        return wording.NOTHING
    mark = {"time x scale": " s", "energy": " e"}.get(row.by, "")
    decimals = 1 if abs(row.percent) < _MANY else 0
    return f"{row.percent:+.{decimals}f} %{mark}"


COLUMNS = (
    Column("Preview", of=_name),
    data_column("outcome", "outcome.value"),
    data_column("round", "preview.row.round"),
    data_column("submitter", "preview.row.submitter"),
    data_column("system", "preview.row.system"),
    data_column("accelerator", "preview.row.accelerator_model"),
    data_column("benchmark", "preview.row.benchmark"),
    data_column("division", "preview.row.division"),
    data_column("role", "role.value"),
    Column("On", 8, numbers=True, of=lambda row: _scale(row.scale)),
    data_column("scale", "scale.number"),
    data_column("unit", "scale.unit"),
    Column("Minutes", 9, numbers=True, of=attrgetter("preview.score")),
    data_column("minutes", "preview.row.score_minutes"),
    data_column("energy_joules", "preview.row.energy_joules"),
    Column("Available", 28, of=_available),
    Column("Change", 8, numbers=True, of=_change),
    data_column("due", "due"),
    data_column("new_round", "successor.row.round"),
    data_column("new_submitter", "successor.row.submitter"),
    data_column("new_system", "successor.row.system"),
    data_column("new_accelerator", "successor.row.accelerator_model"),
    data_column("new_benchmark", "successor.row.benchmark"),
    data_column("new_scale", "successor_scale.number"),
    data_column("new_minutes", "successor.row.score_minutes"),
    data_column("new_energy_joules", "successor.row.energy_joules"),
    Column(key="compared_by", of=lambda row: row.by or None),
    data_column("performance_percent", "percent"),
    data_column("match", "likeness.value"),
    Column(key="remark", of=lambda row: row.remark or None),
    data_column("path", "preview.row.path"),
    data_column("new_path", "successor.row.path"),
)


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the Previews whose successors are due in a round, and the Previews of the round."""
    old = reviewed.earlier
    new = reviewed.side
    rounds = {(entry.row.usage, entry.row.round) for entry in new.entries}
    entries = []
    for entry in old.entries:
        usage = entry.row.usage
        if (usage, due_round(usage, entry.row.round)) in rounds:
            entries.append(entry)
    entries += new.entries
    return previews(ReviewSide(old.name, tuple(entries)), new).section("Previews")


# ---- outcomes -----------------------------------------------------------------------------


class PreviewOutcome(StrEnum):
    """The outcome of a Preview, the worst first.

    NOT_MET: the performance of the successor is lower. OTHER_SCALE: all successors are larger, or
    smaller, than the Preview. OWN_LOGS: the only successors have the logs of a Preview. NONE: no
    successor exists. RETIRED: none of the benchmarks of the system is comparable, and no runs of
    the old ones are shown. LATE: the successor came after the round in which it was due.
    CHANGED: the benchmark was changed or removed. BETWEEN: a larger and a smaller scale were
    previewed too, so a successor is not required.
    """

    NOT_MET = "not met"
    OTHER_SCALE = "other scale only"
    OWN_LOGS = "own logs only"
    NONE = "no successor"
    RETIRED = "old benchmark not shown"
    LATE = "late"
    NOT_DUE = "not due yet"
    CHANGED = "not comparable"
    BETWEEN = "not required"
    MET = "met"

    @property
    def is_open(self) -> bool:
        """Whether a review asks the submitter about it."""
        return tuple(PreviewOutcome).index(self) <= tuple(PreviewOutcome).index(PreviewOutcome.LATE)


_REASONS = {
    PreviewOutcome.NOT_MET: "slower than the Preview",
    PreviewOutcome.OTHER_SCALE: "only at another scale",
    PreviewOutcome.OWN_LOGS: "with logs of a Preview only",
    PreviewOutcome.NONE: "not submitted",
    PreviewOutcome.RETIRED: "without runs of the old benchmarks",
    PreviewOutcome.LATE: "after the round in which they were due",
    PreviewOutcome.NOT_DUE: "due in a later round",
    PreviewOutcome.CHANGED: "whose benchmark was changed or removed",
    PreviewOutcome.BETWEEN: "whose scale lies between the scales of two other Previews",
}
"""Why the Available result that a Preview requires is in question, or not required."""


class Role(StrEnum):
    """The position of a Preview among the previewed scales."""

    ONLY = "only"
    SMALLEST = "smallest"
    LARGEST = "largest"
    BETWEEN = "between"


class Scale(NamedTuple):
    """The size of a system in accelerators or, if it has none, in nodes."""

    number: int
    unit: str

    def __str__(self) -> str:
        """Return the scale in words."""
        return wording.counted(self.number, self.unit)


class Succession(Struct, frozen=True):
    """A Preview, and the successor that proves it or comes nearest to it.

    ``due`` is the round in which the successor must be submitted, None if it is not known yet.
    ``percent`` is the change of the performance, compared ``by`` time, by time x scale or by
    energy: 0 for the performance of the Preview, -3 for 3 % less.
    """

    preview: SideEntry
    role: Role
    scale: Scale | None
    due: str | None
    outcome: PreviewOutcome
    successor: SideEntry | None = None
    likeness: Likeness | None = None
    by: str = ""
    percent: float | None = None
    remark: str = ""

    @property
    def successor_scale(self) -> Scale | None:
        """The scale of the successor."""
        if self.successor:
            return scale_of(self.successor.row)
        return None


class _Candidate(Struct, frozen=True):
    """An Available result that may succeed a Preview."""

    entry: SideEntry
    performance: Performance
    likeness: Likeness


def successions(
    old: ReviewSide, new: ReviewSide, proofs: Sequence[SideEntry] = ()
) -> list[Succession]:
    """Return the outcome of each Preview of the old side, by the results of the new side.

    ``proofs`` are results on benchmarks of the old side, which are shown but not published.
    """
    old, both = matched(old, ReviewSide(new.name, (*new.entries, *proofs)))
    new = ReviewSide(new.name, both.entries[: len(new.entries)])
    proofs = both.entries[len(new.entries) :]
    previews = [entry for entry in old.entries if category(entry.row.status) == PREVIEW]
    run_keys = frozenset[Hashable]().union(*(entry.all_keys for entry in previews))
    rows = []
    for group in _grouped((entry, _group(entry.row), entry) for entry in previews):
        for preview, role in _roles(group):
            rows.append(_succession(preview, role, run_keys, new))
    return list(_proved(rows, proofs, run_keys))


def scale_of(row: PublishedSet) -> Scale | None:
    """Return the scale of a system, None if its description lacks it."""
    if row.accelerators:
        return Scale(row.accelerators, "accelerator")
    if row.nodes and not words_of(row.accelerator_model):
        return Scale(row.nodes, "node")
    return None


# ---- the Previews -------------------------------------------------------------------------


def _grouped(items: Iterable[tuple[SideEntry, Hashable, _T]]) -> list[list[_T]]:
    """Return items in groups, in which they have one key and their entries one submitter."""
    groups: list[tuple[SideEntry, Hashable, list[_T]]] = []
    for entry, key, item in items:
        for first, group_key, group in groups:
            is_same = is_same_submitter(entry.submitter_names, first.submitter_names)
            if is_same and key == group_key:
                group.append(item)
                break
        else:
            groups.append((entry, key, [item]))
    return [group for *_, group in groups]


def _group(row: PublishedSet) -> Hashable:
    """Return what Previews of one accelerator, benchmark and division have in common."""
    accelerator = words_of(row.accelerator_model)
    division = known_division(row.division)
    return (row.usage, row.round, row.benchmark, accelerator, division, row.scaling)


def _roles(group: Sequence[SideEntry]) -> Iterator[tuple[SideEntry, Role]]:
    """Yield the Previews of a group by scale, each with its role."""
    scales = [scale_of(entry.row) for entry in group]
    numbers = [scale.number for scale in scales if scale]
    smallest = min(numbers, default=0)
    largest = max(numbers, default=0)
    for entry in sorted(group, key=lambda entry: (scale_of(entry.row) or (0, ""), entry.row.path)):
        scale = scale_of(entry.row)
        if scale is None or smallest == largest:
            yield entry, Role.ONLY
        elif scale.number == smallest:
            yield entry, Role.SMALLEST
        elif scale.number == largest:
            yield entry, Role.LARGEST
        else:
            yield entry, Role.BETWEEN


# ---- their successors ---------------------------------------------------------------------


def _succession(
    preview: SideEntry, role: Role, run_keys: Set[Hashable], new: ReviewSide
) -> Succession:
    """Return the outcome of a Preview; ``run_keys`` are those of the runs of all Previews."""
    row = preview.row
    scale = scale_of(row)
    due = due_round(row.usage, row.round)
    bare = Succession(preview, role, scale, due, PreviewOutcome.NONE)
    if role is Role.BETWEEN:
        return replace(bare, outcome=PreviewOutcome.BETWEEN)
    if scale is None or not row.score_minutes:
        remark = f"the Preview has no {'score' if scale else 'number of accelerators'}"
        return replace(bare, outcome=PreviewOutcome.NOT_MET, remark=remark)
    in_time, late = _later(preview, due, new)
    change = _change_in_all(row, in_time or late)
    if change:
        return replace(bare, outcome=PreviewOutcome.CHANGED, remark=change)
    candidates = list(_candidates(preview, scale, in_time))
    fresh = _fresh(candidates, run_keys)
    if not fresh:
        fresh = _of_first_round(_fresh(_candidates(preview, scale, late), run_keys))
    if fresh:
        return _judged(bare, scale, fresh)
    if candidates:
        judged = _judged(bare, scale, _of_its_logs(preview, candidates) or candidates)
        return replace(judged, outcome=PreviewOutcome.OWN_LOGS)
    return _without_successor(bare, in_time, new.newest)


def _later(
    preview: SideEntry, due: str | None, new: ReviewSide
) -> tuple[list[SideEntry], list[SideEntry]]:
    """Return the sets of rounds after a Preview: those in time, and those that are late."""
    in_time: list[SideEntry] = []
    late: list[SideEntry] = []
    for entry in new.entries:
        if entry.row.usage == preview.row.usage and entry.version > preview.version:
            entries = late if _is_late(entry, due) else in_time
            entries.append(entry)
    return in_time, late


def _change_in_all(row: PublishedSet, entries: Iterable[SideEntry]) -> str:
    """Return the change of a benchmark in the first of the rounds, if all have changed it."""
    rounds = sorted({entry.row.round for entry in entries}, key=version_of)
    changes = [_changed(row, round_) for round_ in rounds]
    if changes and all(changes):
        return changes[0]
    return ""


def _retired(rows: Iterable[Succession]) -> list[Succession]:
    """Return the Previews of systems none of whose benchmarks is comparable in the round due.

    Their proof is by the old benchmarks. (Preview Systems, 2025-06-12)
    """
    candidates: list[tuple[SideEntry, Hashable, Succession]] = []
    for row in rows:
        published = row.preview.row
        is_since = row.due and submission_date(published.usage, row.due) >= _SINCE
        if is_since and row.outcome is not PreviewOutcome.BETWEEN:
            candidates.append((row.preview, _group(replace(published, benchmark="")), row))
    retired = []
    for system_rows in _grouped(candidates):
        if all(row.outcome is PreviewOutcome.CHANGED for row in system_rows):
            retired += system_rows
    return retired


def _proved(
    rows: Sequence[Succession], proofs: Sequence[SideEntry], run_keys: Set[Hashable]
) -> Iterator[Succession]:
    """Yield the outcomes, of retired benchmarks by the results that are shown."""
    retired = _retired(rows)
    for row in rows:
        if row not in retired or row.scale is None:
            yield row
            continue
        shown = _fresh(_candidates(row.preview, row.scale, proofs), run_keys)
        if shown:
            yield _judged(row, row.scale, shown)
        else:
            yield replace(row, outcome=PreviewOutcome.RETIRED)


def _of_its_logs(preview: SideEntry, candidates: Iterable[_Candidate]) -> list[_Candidate]:
    """Return the candidates with logs of a Preview."""
    return [candidate for candidate in candidates if candidate.entry.shared(preview)]


def _of_first_round(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    first = min((candidate.entry.version for candidate in candidates), default=())
    return [candidate for candidate in candidates if candidate.entry.version == first]


def _changed(row: PublishedSet, round_: str) -> str:
    """Return the difference of a benchmark in another round in words, empty if there is none."""
    name = _benchmark_in(row, round_)
    if name is None:
        return f"the benchmark is not in round {round_}"
    old = load_benchmark(row.usage, row.round, row.benchmark)
    new = load_benchmark(row.usage, round_, name)
    if old and new and old.target == new.target:
        return ""
    return f"the benchmark has another target in round {round_}"


def _benchmark_in(row: PublishedSet, round_: str) -> str | None:
    """Return the name that the benchmark of a set has in another round."""
    first = first_name(row.usage, row.round, row.benchmark)
    for name in benchmarks_of(row.usage, round_):
        if first_name(row.usage, round_, name) == first:
            return name
    return None


def _candidates(
    preview: SideEntry, scale: Scale, entries: Iterable[SideEntry]
) -> Iterator[_Candidate]:
    """Yield the Available results of the submitter of a Preview on its accelerator."""
    row = preview.row
    for entry in entries:
        result = entry.row
        if category(result.status) not in AVAILABLE or not result.score_minutes:
            continue
        result_scale = scale_of(result)
        if result_scale is None or result_scale.unit != scale.unit:
            continue
        is_same = is_same_submitter(preview.submitter_names, entry.submitter_names)
        if is_same and _is_of(row, result):
            alike = likeness(row, result)
            if alike:
                yield _Candidate(entry, _performance(result, result_scale), alike)


def _is_of(row: PublishedSet, result: PublishedSet) -> bool:
    """Return whether a set is of the benchmark, the division and the scaling of another."""
    return (
        _benchmark_in(row, result.round) == result.benchmark
        and known_division(row.division) == known_division(result.division)
        and row.scaling == result.scaling
        and not _changed(row, result.round)
    )


def _performance(row: PublishedSet, scale: Scale) -> Performance:
    return Performance(scale.number, row.score_minutes or 0, row.energy_joules)


def _fresh(candidates: Iterable[_Candidate], run_keys: Set[Hashable]) -> list[_Candidate]:
    """Return the candidates without logs of a Preview, which do not count."""
    fresh = []
    for candidate in candidates:
        if run_keys.isdisjoint(candidate.entry.all_keys):
            fresh.append(candidate)
    return fresh


def _judged(bare: Succession, scale: Scale, candidates: Sequence[_Candidate]) -> Succession:
    """Return the succession by the best candidate, if possible of the required scale."""
    previewed = _performance(bare.preview.row, scale)
    compared = [item for item in candidates if item.likeness.is_sure] or candidates
    of_scale = [item for item in compared if _covers(item.performance, bare.role, scale)]
    best = min(of_scale or compared, key=lambda item: _rank(item.performance, previewed))
    costs = best.performance.costs(previewed)
    if not of_scale:
        outcome = PreviewOutcome.OTHER_SCALE
    elif not costs.is_matched:
        outcome = PreviewOutcome.NOT_MET
    elif _is_late(best.entry, bare.due):
        outcome = PreviewOutcome.LATE
    else:
        outcome = PreviewOutcome.MET
    remarks = _remarks(bare, best, is_matched=costs.is_matched)
    return replace(
        bare,
        outcome=outcome,
        successor=best.entry,
        likeness=best.likeness,
        by=costs.by,
        percent=costs.percent,
        remark="; ".join(remarks),
    )


def _covers(performance: Performance, role: Role, scale: Scale) -> bool:
    """Return whether a result is of the scale that a Preview of this role and scale requires."""
    if role is Role.ONLY:
        return True
    if role is Role.SMALLEST:
        return performance.scale <= scale.number
    return performance.scale >= scale.number


def _rank(performance: Performance, previewed: Performance) -> tuple[bool, int, float]:
    """Return the order of results that may prove the performance of a Preview."""
    is_missed = not performance.costs(previewed).is_matched
    return is_missed, abs(performance.scale - previewed.scale), performance.minutes


def _remarks(bare: Succession, best: _Candidate, *, is_matched: bool) -> Iterator[str]:
    row = bare.preview.row
    successor = best.entry.row
    if _is_late(best.entry, bare.due):
        yield f"late, as due in round {bare.due}"
    if not are_same(row.submitter, successor.submitter):
        yield f"submitted by {successor.submitter}"
    before = row.unscaled_minutes
    after = successor.unscaled_minutes
    if bare.scale and before and after and not best.performance.energy_joules:
        # Older rounds had no normalisation.
        unscaled = Performance(bare.scale.number, before)
        costs = Performance(best.performance.scale, after).costs(unscaled)
        if costs.is_matched is not is_matched:
            yield f"the change is {costs.percent:+.1f} % without normalisation"


def _is_late(entry: SideEntry, due: str | None) -> bool:
    return due is not None and entry.version > version_of(due)


def _without_successor(
    bare: Succession, in_time: Iterable[SideEntry], newest: tuple[int, ...]
) -> Succession:
    """Return the succession of a Preview for which there is no candidate until the newest round."""
    if bare.due is None or newest < version_of(bare.due):
        return replace(bare, outcome=PreviewOutcome.NOT_DUE)
    return replace(bare, remark=_why_none(bare.preview, in_time))


def _why_none(preview: SideEntry, entries: Iterable[SideEntry]) -> str:
    """Return the results of the submitter of a Preview other than successors, in words."""
    row = preview.row
    results = []
    for entry in entries:
        if is_same_submitter(preview.submitter_names, entry.submitter_names):
            results.append(entry.row)
    if not results:
        return f"{row.submitter} has no results"
    results = [result for result in results if likeness(row, result)]
    if not results:
        return "no results on this accelerator"
    statuses = set[str]()
    for result in results:
        if _is_of(row, result):
            statuses.add(category(result.status) or result.status)
    if statuses:
        return f"results only with the status {', '.join(sorted(statuses))}"
    benchmarks = {result.benchmark for result in results}
    return f"results on this accelerator only for {', '.join(sorted(benchmarks))}"
