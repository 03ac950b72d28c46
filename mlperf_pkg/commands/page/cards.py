"""The cards of a round: of each benchmark the best scores, and how they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.commands.charts.benchmarks import ON_EIGHT, OVERALL, Looks, Point, scaling, trend
from mlperf_pkg.commands.charts.chart import Chart
from mlperf_pkg.commands.page.entries import Entry
from mlperf_pkg.commands.score.standing import comparable_rounds
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.results import wording
from mlperf_pkg.submission.membership import submitters

EIGHT = 8  # accelerators of one common node


class Best(Struct, frozen=True):
    """The best score of one kind; ``change`` compares it with that of the round before."""

    title: str
    figure: str
    unit: str
    point: Point
    change: str


class Card(Struct, frozen=True):
    """A benchmark of a round: ``id`` is that of its elements, after a letter for their kind."""

    id: str
    benchmark: str
    title: str
    about: str
    best: tuple[Best, ...]
    before: str
    points: tuple[Point, ...]
    best_by_round: Mapping[str, Mapping[str, float]]

    def trend(self) -> list[Chart | None]:
        """Return the chart of the best scores over rounds, if there are several."""
        return [trend(self.benchmark, self.best_by_round)]

    def scaling(self, looks: Looks) -> list[Chart]:
        """Return the chart of time against accelerators."""
        return [scaling(self.title, self.points, looks)]


class _Kind(Struct, frozen=True):
    """A kind of best score: what is smallest, among which scores, and how it is shown."""

    title: str
    value: Callable[[Point], float]
    shown: Callable[[float], str]
    unit: str
    accelerators: int | None = None

    def best(self, points: Iterable[Point]) -> Point | None:
        candidates = (point for point in points if self.accelerators in (None, point.accelerators))
        return min(candidates, key=self.value, default=None)


def _minutes(point: Point) -> float:
    return point.minutes


def _cost(point: Point) -> float:
    return point.cost


_KINDS = (
    _Kind("Fastest", _minutes, wording.minutes, "min"),
    _Kind("Fastest on 8 accelerators", _minutes, wording.minutes, "min", EIGHT),
    _Kind("Fastest per accelerator", _cost, "{:,.1f}".format, "accelerator-minutes"),
)


class _Group(Struct, frozen=True):
    """The scores of a benchmark that are compared: those of one round and division."""

    usage: str
    round: str
    benchmark: str
    division: str
    points: list[Point]


def cards(entries: Mapping[str, Entry], record: Sequence[PublishedSet]) -> tuple[Card, ...]:
    """Return a card for each benchmark with a score, by name; ``entries`` are by their element.

    ``record`` are the published sets. Scores are those of the Closed division, or of the Open one
    if there is no other.
    """
    groups = _groups(entries)
    named = len({group.round for group in groups}) > 1
    return tuple(
        _card(str(index), group, record, named=named) for index, group in enumerate(groups)
    )


def _groups(entries: Mapping[str, Entry]) -> list[_Group]:
    points: dict[tuple[str, str, str], dict[str, list[Point]]] = {}
    for element, entry in entries.items():
        if point := entry.point(element):
            key = (entry.row.benchmark, entry.row.round, entry.drawn.usage)
            points.setdefault(key, {}).setdefault(entry.division, []).append(point)
    groups = []
    for benchmark, round_, usage in sorted(points):
        divisions = points[benchmark, round_, usage]
        division = next((name for name in ("closed", "open") if name in divisions), "")
        members = divisions.get(division) or next(iter(divisions.values()))
        groups.append(_Group(usage, round_, benchmark, division, members))
    return groups


def _card(id_: str, group: _Group, record: Sequence[PublishedSet], *, named: bool) -> Card:
    earlier = _earlier(group, record)
    before = next(iter(earlier), "")
    names = submitters(point.submitter for point in group.points)
    about = (
        f"{wording.counted(len(group.points), 'result')} of"
        f" {wording.counted(len(names), 'submitter')}"
    )
    division = "" if group.division == "closed" else f", {group.division or 'no'} division"
    title = f"{group.benchmark}, round {group.round}" if named else group.benchmark
    return Card(
        id=id_,
        benchmark=group.benchmark,
        title=title,
        about=f"{about}{division}",
        best=tuple(
            Best(
                title=kind.title,
                figure=kind.shown(kind.value(best)),
                unit=kind.unit,
                point=best,
                change=_change(kind, best, earlier.get(before, [])),
            )
            for kind in _KINDS
            if (best := kind.best(group.points))
        ),
        before=before,
        points=tuple(group.points),
        best_by_round=_over_rounds(group, earlier),
    )


def _change(kind: _Kind, best: Point, before: Iterable[Point]) -> str:
    """Return how much faster the best score became: ``1.25 times faster``, ``1.1 times slower``."""
    old = kind.best(before)
    if old is None:
        return ""
    ratio = kind.value(old) / kind.value(best)
    if f"{max(ratio, 1 / ratio):.2f}" == "1.00":
        return "as fast"
    return f"{ratio:.2f} times faster" if ratio > 1 else f"{1 / ratio:.2f} times slower"


def _earlier(group: _Group, record: Sequence[PublishedSet]) -> dict[str, list[Point]]:
    """Return the published scores of earlier rounds with the same target, the latest first."""
    alike: dict[tuple[str, str], list[Point]] = {}
    for row in record:
        if row.usage == group.usage and known_division(row.division) == group.division:
            alike.setdefault((row.round, row.benchmark), []).extend(_published(row))
    names = comparable_rounds(group.usage, group.round, group.benchmark)
    return {name[0]: alike[name] for name in names if alike.get(name)}


def _published(row: PublishedSet) -> Iterable[Point]:
    if row.score_minutes and row.accelerators and row.scaling != "weak":
        yield Point(
            round=row.round,
            submitter=row.submitter,
            system=row.system,
            accelerator=row.accelerator_model,
            accelerators=row.accelerators,
            minutes=row.score_minutes,
        )


def _over_rounds(group: _Group, earlier: Mapping[str, list[Point]]) -> dict[str, dict[str, float]]:
    """Return the best minutes by round, overall and on eight accelerators."""
    by_round = {**dict(reversed([*earlier.items()])), group.round: group.points}
    trends: dict[str, dict[str, float]] = {}
    for name, kind in zip((OVERALL, ON_EIGHT), _KINDS, strict=False):
        bests = {round_: kind.best(points) for round_, points in by_round.items()}
        trends[name] = {round_: best.minutes for round_, best in bests.items() if best}
    return trends
