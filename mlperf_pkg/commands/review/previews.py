"""``review compare previews``: the Previews of an earlier round and their successors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.copies import AVAILABLE, Performance
from mlperf_pkg.checks.descriptions import PREVIEW, category
from mlperf_pkg.checks.names import Likeness, are_related, are_same, likeness, words_of
from mlperf_pkg.commands.review.round import (
    ReviewedRound,
    ReviewSection,
    ReviewSide,
    RoundListing,
    SideEntry,
    matched,
)
from mlperf_pkg.infra.text import letters
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.render.table import Column, by_key
from mlperf_pkg.results import wording
from mlperf_pkg.rulebook.load import benchmarks_of, load_benchmark
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import due_round, first_name

_MANY = 100  # percent, from which on decimals are not shown
_LEGEND = (
    "On: accelerators. Change: of the performance by time; s: by time x scale, on fewer"
    " accelerators; e: by energy. ~: the systems match by name only."
)
_BRIEF = (
    *("outcome", "round", "submitter", "accelerator", "benchmark", "division", "role", "scale"),
    *("minutes", "due", "new_system", "new_scale", "new_minutes", "performance_percent"),
    *("match", "remark"),
)
_MINUTES = Column("Minutes", 9, numbers=True, key="minutes", show=wording.minutes)


def previews(old: ReviewSide, new: ReviewSide) -> RoundListing:
    """Return the Previews of the old side with their successors on the new one."""
    order = tuple(PreviewOutcome)
    rows = sorted(successions(old, new), key=lambda row: order.index(row.outcome))
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
    )


def _summary(rows: Sequence[Succession]) -> Iterator[str]:
    if not rows:
        yield "no Previews"
        return
    counts = Counter(row.outcome for row in rows)
    totals = [f"{counts[PreviewOutcome.MET]} met by a successor"]
    details = []
    for name, is_open in (("not settled", True), ("need no successor yet", False)):
        members = [o for o in counts if o is not PreviewOutcome.MET and o.is_open is is_open]
        if members:
            totals.append(f"{sum(counts[outcome] for outcome in members)} {name}")
            words = (f"{counts[outcome]} {outcome.value}" for outcome in members)
            details.append(f"{name}: {', '.join(words)}")
    yield f"{wording.counted(len(rows), 'Preview')}: {', '.join(totals)}"
    yield from details
    unsure = sum(map(_is_unsure, rows))
    if unsure:
        yield f"{unsure} compared with systems that match by name only"


def _is_unsure(row: Succession) -> bool:
    return row.likeness is not None and not row.likeness.is_sure


def _name(row: Succession) -> str:
    preview = row.preview.row
    division = row.preview.row.division.lower()
    name = f"{preview.round} {preview.submitter} {preview.benchmark}"
    return name if division == "closed" else f"{name} ({division or 'no division'})"


def _available(row: Succession) -> str:
    """Return the score of the successor, or the reason why there is no successor."""
    if row.successor is None:
        due = (
            f"due in {row.due or 'a later round'}" if row.outcome is PreviewOutcome.NOT_DUE else ""
        )
        return row.remark or due or wording.NOTHING
    successor = row.successor.row
    mark = "~ " if _is_unsure(row) else ""
    remark = f"; {row.remark}" if row.remark else ""
    score = f"{wording.minutes(successor.score_minutes)} on {_scale(row.successor_scale)}"
    return f"{mark}{score} ({successor.round}){remark}"


def _scale(scale: Scale | None) -> str:
    if scale is None:
        return wording.NOTHING
    return str(scale.number) if scale.unit == "accelerator" else str(scale)


def _change(row: Succession) -> str:
    if row.percent is None:
        return wording.NOTHING
    mark = {"time x scale": " s", "energy": " e"}.get(row.by, "")
    return f"{row.percent:+.{int(abs(row.percent) < _MANY)}f} %{mark}"


def _data(key: str, path: str) -> Column:
    """Return a column of data: the value at a path of attributes, None if one of them is None."""

    def value(row: Any) -> Any:
        for name in path.split("."):
            row = None if row is None else getattr(row, name)
        return row

    return Column(key=key, of=value)


COLUMNS = (
    Column("Preview", of=_name),
    _data("outcome", "outcome.value"),
    *(_data(name, f"preview.row.{name}") for name in ("round", "submitter", "system")),
    _data("accelerator", "preview.row.accelerator_model"),
    *(_data(name, f"preview.row.{name}") for name in ("benchmark", "division")),
    _data("role", "role.value"),
    Column("On", 8, numbers=True, of=lambda row: _scale(row.scale)),
    _data("scale", "scale.number"),
    _data("unit", "scale.unit"),
    replace(_MINUTES, of=attrgetter("preview.row.score_minutes")),
    _data("energy_joules", "preview.row.energy_joules"),
    Column("Available", 28, of=_available),
    Column("Change", 8, numbers=True, of=_change),
    _data("due", "due"),
    *(_data(f"new_{n}", f"successor.row.{n}") for n in ("round", "submitter", "system")),
    _data("new_accelerator", "successor.row.accelerator_model"),
    _data("new_benchmark", "successor.row.benchmark"),
    _data("new_scale", "successor_scale.number"),
    _data("new_minutes", "successor.row.score_minutes"),
    _data("new_energy_joules", "successor.row.energy_joules"),
    Column(key="compared_by", of=lambda row: row.by or None),
    _data("performance_percent", "percent"),
    _data("match", "likeness.value"),
    Column(key="remark", of=lambda row: row.remark or None),
    _data("path", "preview.row.path"),
    _data("new_path", "successor.row.path"),
)


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the Previews whose successors are due in a round, and the Previews of the round."""
    old = reviewed.earlier
    new = reviewed.side
    rounds = {(entry.row.usage, entry.row.round) for entry in new.entries}
    due = (e for e in old.entries if (e.row.usage, due_round(e.row.usage, e.row.round)) in rounds)
    return previews(ReviewSide(old.name, (*due, *new.entries)), new).section("Previews")


# ---- outcomes -----------------------------------------------------------------------------


class PreviewOutcome(StrEnum):
    """The outcome of a Preview, the worst first.

    NOT_MET: the performance of the successor is lower. OTHER_SCALE: all successors are larger, or
    smaller, than the Preview. OWN_LOGS: the only successors have the logs of a Preview. NONE: no
    successor exists. LATE: the successor came after the round in which it was due. CHANGED: the
    benchmark was changed or removed. BETWEEN: a larger and a smaller scale were previewed too, so
    a successor is not required.
    """

    NOT_MET = "not met"
    OTHER_SCALE = "other scale only"
    OWN_LOGS = "own logs only"
    NONE = "no successor"
    LATE = "late"
    NOT_DUE = "not due yet"
    CHANGED = "not comparable"
    BETWEEN = "not required"
    MET = "met"

    @property
    def is_open(self) -> bool:
        """Whether a review asks the submitter about it."""
        return tuple(PreviewOutcome).index(self) <= tuple(PreviewOutcome).index(PreviewOutcome.LATE)


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
        return scale_of(self.successor.row) if self.successor else None


_Candidate = tuple[SideEntry, Performance, Likeness]
"""An Available result that may succeed a Preview."""


def successions(old: ReviewSide, new: ReviewSide) -> list[Succession]:
    """Return the outcome of each Preview of the old side, by the results of the new side."""
    old, new = matched(old, new)
    previews = [entry for entry in old.entries if category(entry.row.status) == PREVIEW]
    keys = frozenset[Hashable]().union(*(entry.all_keys for entry in previews))
    groups = by_key((_group(entry.row), entry) for entry in previews).values()
    pairs = (pair for group in groups for pair in _roles(group))
    return [_succession(preview, role, keys, new) for preview, role in pairs]


def scale_of(row: PublishedSet) -> Scale | None:
    """Return the scale of a system, None if its description lacks it."""
    if row.accelerators:
        return Scale(row.accelerators, "accelerator")
    if row.nodes and not words_of(row.accelerator_model):
        return Scale(row.nodes, "node")
    return None


# ---- the Previews -------------------------------------------------------------------------


def _group(row: PublishedSet) -> Hashable:
    """Return the key of Previews of one submitter, accelerator, benchmark and division."""
    names = (row.usage, row.round, row.benchmark, letters(row.submitter))
    return (*names, words_of(row.accelerator_model), known_division(row.division), row.scaling)


def _roles(group: Sequence[SideEntry]) -> Iterator[tuple[SideEntry, Role]]:
    """Yield the Previews of a group by scale, each with its role."""
    scales = [scale.number for entry in group if (scale := scale_of(entry.row))]
    smallest = min(scales, default=0)
    largest = max(scales, default=0)
    least = Role.SMALLEST if smallest < largest else Role.ONLY
    roles = {largest: Role.LARGEST, smallest: least}
    for entry in sorted(group, key=lambda entry: (scale_of(entry.row) or (0, ""), entry.row.path)):
        scale = scale_of(entry.row)
        yield entry, roles.get(scale.number, Role.BETWEEN) if scale else Role.ONLY


# ---- their successors ---------------------------------------------------------------------


def _succession(
    preview: SideEntry, role: Role, of_previews: frozenset[Hashable], new: ReviewSide
) -> Succession:
    row = preview.row
    scale = scale_of(preview.row)
    bare = Succession(preview, role, scale, due_round(row.usage, row.round), PreviewOutcome.NONE)
    if role is Role.BETWEEN:
        return replace(bare, outcome=PreviewOutcome.BETWEEN)
    if scale is None or not row.score_minutes:
        missing = "number of accelerators" if scale is None else "score"
        return replace(bare, outcome=PreviewOutcome.NOT_MET, remark=f"the Preview has no {missing}")
    later = [e for e in new.entries if e.row.usage == row.usage and e.version > preview.version]
    in_time = [entry for entry in later if not _is_late(entry, bare.due)]
    after = [entry for entry in later if _is_late(entry, bare.due)]
    rounds = sorted({entry.row.round for entry in in_time or after}, key=version_of)
    reasons = [_changed(row, name) for name in rounds]
    if reasons and all(reasons):  # in none of the rounds can it be compared
        return replace(bare, outcome=PreviewOutcome.CHANGED, remark=reasons[0])
    candidates = list(_candidates(preview, scale, in_time))
    late = _fresh(_candidates(preview, scale, after), of_previews)
    first = min((entry.version for entry, *_ in late), default=())
    late = [candidate for candidate in late if candidate[0].version == first]
    fresh = _fresh(candidates, of_previews) or late
    stale = [c for c in candidates if c[0].shared(preview)] or candidates  # logs of a Preview
    if fresh or stale:
        judged = _judged(bare, scale, fresh or stale)
        return judged if fresh else replace(judged, outcome=PreviewOutcome.OWN_LOGS)
    if bare.due is None or new.newest < version_of(bare.due):
        return replace(bare, outcome=PreviewOutcome.NOT_DUE)
    return replace(bare, remark=_why_none(row, in_time))


def _changed(row: PublishedSet, round_: str) -> str:
    """Return the difference of a benchmark in another round in words, empty if there is none."""
    name = _benchmark_in(row, round_)
    if name is None:
        return f"not in {round_}"
    old = load_benchmark(row.usage, row.round, row.benchmark)
    new = load_benchmark(row.usage, round_, name)
    return "" if old and new and old.target == new.target else f"another target in {round_}"


def _benchmark_in(row: PublishedSet, round_: str) -> str | None:
    """Return the name that the benchmark of a set has in another round."""
    first = first_name(row.usage, row.round, row.benchmark)
    names = benchmarks_of(row.usage, round_)
    return next((n for n in names if first_name(row.usage, round_, n) == first), None)


def _candidates(
    preview: SideEntry, scale: Scale, entries: Sequence[SideEntry]
) -> Iterator[_Candidate]:
    """Yield the Available results of the submitter of a Preview on its accelerator."""
    row = preview.row
    for entry in entries:
        result = entry.row
        other = scale_of(entry.row)
        is_available = category(result.status) in AVAILABLE and result.score_minutes
        if not (is_available and other and other.unit == scale.unit):
            continue
        is_of = are_related(row.submitter, result.submitter) and _is_of(row, result)
        if is_of and (alike := likeness(row, result)):
            yield entry, _performance(result, other), alike


def _is_of(row: PublishedSet, result: PublishedSet) -> bool:
    """Return whether a set is of the benchmark, the division and the scaling of another."""
    names = [(known_division(one.division), one.scaling) for one in (row, result)]
    is_named = _benchmark_in(row, result.round) == result.benchmark and names[0] == names[1]
    return is_named and not _changed(row, result.round)


def _performance(row: PublishedSet, scale: Scale) -> Performance:
    return Performance(scale.number, row.score_minutes or 0, row.energy_joules)


def _fresh(candidates: Iterable[_Candidate], of_previews: frozenset[Hashable]) -> list[_Candidate]:
    """Return the candidates without logs of a Preview, which do not count."""
    return [c for c in candidates if of_previews.isdisjoint(c[0].all_keys)]


def _judged(bare: Succession, scale: Scale, candidates: Sequence[_Candidate]) -> Succession:
    """Return the succession by the best candidate, if possible of the required scale."""
    previewed = _performance(bare.preview.row, scale)
    candidates = [c for c in candidates if c[2].is_sure] or candidates
    of_scale = candidates  # those that cover the smallest or the largest previewed one
    if bare.role is Role.SMALLEST:
        of_scale = [c for c in candidates if c[1].scale <= scale.number]
    elif bare.role is not Role.ONLY:
        of_scale = [c for c in candidates if c[1].scale >= scale.number]

    def rank(candidate: _Candidate) -> tuple[bool, int, float]:
        own = candidate[1]
        is_matched = own.costs(previewed).is_matched
        return not is_matched, abs(own.scale - scale.number), own.minutes

    entry, performance, likeness = min(of_scale or candidates, key=rank)
    costs = performance.costs(previewed)
    outcome = PreviewOutcome.LATE if _is_late(entry, bare.due) else PreviewOutcome.MET
    if not (costs.is_matched and of_scale):
        outcome = PreviewOutcome.NOT_MET if of_scale else PreviewOutcome.OTHER_SCALE
    remark = "; ".join(_remarks(bare, entry, performance, is_matched=costs.is_matched))
    fields = {"outcome": outcome, "successor": entry, "likeness": likeness, "remark": remark}
    return replace(bare, by=costs.by, percent=costs.percent, **fields)


def _remarks(
    bare: Succession, best: SideEntry, performance: Performance, *, is_matched: bool
) -> Iterator[str]:
    row = bare.preview.row
    successor = best.row
    if _is_late(best, bare.due):
        yield f"due in {bare.due}"
    if not are_same(row.submitter, successor.submitter):
        yield f"submitted by {successor.submitter}"
    before = row.unscaled_minutes
    after = successor.unscaled_minutes
    if bare.scale and before and after and not performance.energy_joules:
        # Older rounds had no normalisation.
        unscaled = Performance(bare.scale.number, before)
        costs = Performance(performance.scale, after).costs(unscaled)
        if costs.is_matched is not is_matched:
            yield f"{costs.percent:+.1f} % without normalisation"


def _is_late(entry: SideEntry, due: str | None) -> bool:
    return due is not None and entry.version > version_of(due)


def _why_none(row: PublishedSet, entries: Sequence[SideEntry]) -> str:
    """Return the results of the submitter of a Preview other than successors, in words."""
    rows = [entry.row for entry in entries if are_related(row.submitter, entry.row.submitter)]
    if not rows:
        return f"{row.submitter} has no results"
    rows = [result for result in rows if likeness(row, result)]
    if not rows:
        return "no results on this accelerator"
    alike = [result for result in rows if _is_of(row, result)]
    if alike:
        return f"only as {', '.join(sorted({category(o.status) or o.status for o in alike}))}"
    names = sorted({result.benchmark for result in rows})
    return f"on this accelerator only {', '.join(names)}"
