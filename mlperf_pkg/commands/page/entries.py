"""The result sets of a page with all that it says of them, and the cards of a round.

A card has the best scores of a benchmark, and how they changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import isfinite
from operator import attrgetter, itemgetter

from msgspec import Struct, field

from mlperf_pkg.checker.values import Checked, Standing, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, category
from mlperf_pkg.commands.charts.benchmarks import ON_EIGHT, OVERALL, Point
from mlperf_pkg.commands.charts.drawing import drawn_sets
from mlperf_pkg.commands.charts.sets import DrawnSet
from mlperf_pkg.commands.compare.published import comparable_rounds, with_standings
from mlperf_pkg.commands.compare.ratios import Prices, price_of
from mlperf_pkg.config import Price
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import PublishedResultsError
from mlperf_pkg.render.table import by_key
from mlperf_pkg.render.text import Submitters
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.submission.membership import submitters

MOST_SETTINGS = 60  # hyperparameters of a result set that are shown
_MOST_VALUES = 3  # of one hyperparameter
_DESCRIPTION = {  # fields of a system description, and their titles
    "system_name": "System name",
    "status": "Status",
    "number_of_nodes": "Nodes",
    "accelerators_per_node": "Accelerators per node",
    "accelerator_model_name": "Accelerator",
    "accelerator_memory_capacity": "Accelerator memory",
    "accelerator_interconnect": "Interconnect",
    "host_processor_model_name": "Host processor",
    "host_processors_per_node": "Processors per node",
    "host_memory_capacity": "Host memory",
    "host_networking": "Network",
    "framework": "Framework",
    "operating_system": "Operating system",
}


class Entry(Struct, frozen=True):
    """A result set of a page.

    ``settings`` are its batch size and hyperparameters in words; ``system`` is None if there is no
    description, ``standing`` where it is unknown.
    """

    drawn: DrawnSet
    system: SystemFile | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    price: Price | None = None
    standing: Standing | None = None

    @property
    def row(self) -> ResultSetRow:
        """Its row in the report."""
        return self.drawn.row

    @property
    def division(self) -> str:
        """The division as the rules spell it."""
        return known_division(self.row.division)

    @property
    def accelerators(self) -> int | None:
        """The number of accelerators in the whole system."""
        return self.system.accelerators if self.system else None

    @property
    def accelerator(self) -> str:
        """The model of the accelerator, empty if unknown."""
        return self._text("accelerator_model_name")

    @property
    def availability(self) -> str:
        """The availability: that of the rules for any spelling, else as described."""
        status = (self.system.status if self.system else None) or ""
        return category(status) or status

    @property
    def description(self) -> Iterator[tuple[str, str]]:
        """The facts of the system description by title."""
        for name, title in _DESCRIPTION.items():
            if text := self._text(name):
                yield title, text

    def point(self, element: str) -> Point | None:
        """Return the score for charts; None if it or the number of accelerators is missing."""
        row = self.row
        minutes = row.score_minutes
        if not minutes or not isfinite(minutes) or not self.accelerators or row.scaling == "weak":
            return None
        failed = [name for name in ("official", "rules") if getattr(row.verdict, name) == "fail"]
        return Point(
            round=row.round,
            submitter=row.submitter or "",
            system=row.system or "",
            accelerator=self.accelerator,
            accelerators=self.accelerators,
            minutes=minutes,
            availability=self.availability,
            element=element,
            fails=" and ".join(failed),
        )

    def _text(self, name: str) -> str:
        value = (self.system.contents or {}).get(name, "") if self.system else ""
        return str(value).strip() if isinstance(value, str | int) else ""


def entries(checked: Checked, prices: Prices) -> tuple[Entry, ...]:
    """Return the result sets of a check with ``curves``, in the order of its report.

    Those of one submitter have their standing in the published record.
    """
    scored = scores(checked)
    if Submitters(checked.report).number <= 1:
        with suppress(PublishedResultsError):
            scored = with_standings(scored, checked)
    return tuple(
        Entry(
            drawn=drawn,
            system=context.system,
            settings=_settings(context),
            price=price_of(
                prices, drawn.row.system, context.system.system_name if context.system else None
            ),
            standing=of_record.published,
        )
        for drawn, context, of_record in zip(
            drawn_sets(checked), checked.contexts, scored.sets, strict=True
        )
    )


def _settings(context: SetContext) -> dict[str, str]:
    """Return the values of all runs by key: ``1e-05``, or ``1, 2 (of 3 values)``."""
    values: dict[str, dict[str, None]] = {}
    for run in context.runs:
        sizes = [("global_batch_size", size) for size in run.batch_sizes[:1]]
        for key, value in (*sizes, *islice(run.hyperparameters.items(), MOST_SETTINGS)):
            values.setdefault(key, {})[value] = None
    return {key: _in_words(list(texts)) for key, texts in islice(values.items(), MOST_SETTINGS)}


def _in_words(values: list[str]) -> str:
    text = ", ".join(values[:_MOST_VALUES])
    return text if len(values) <= _MOST_VALUES else f"{text} (of {len(values)} values)"


# ---- the cards of a round -----------------------------------------------------------------


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


_MINUTES, _COST = attrgetter("minutes"), attrgetter("cost")
_KINDS = (
    _Kind("Fastest", _MINUTES, wording.minutes, "min"),
    _Kind("Fastest on 8 accelerators", _MINUTES, wording.minutes, "min", EIGHT),
    _Kind("Fastest per accelerator", _COST, "{:,.1f}".format, "accelerator-minutes"),
)


def cards(entries: Mapping[str, Entry], record: Sequence[PublishedSet]) -> tuple[Card, ...]:
    """Return a card for each benchmark with a score, by name; ``entries`` are by their element.

    ``record`` are the published sets. Scores are those of the Closed division, or of the Open one
    if there is no other.
    """
    points: dict[tuple[str, str, str], dict[str, list[Point]]] = {}
    for element, entry in entries.items():
        if point := entry.point(element):
            key = (entry.row.benchmark, entry.row.round, entry.drawn.usage)
            points.setdefault(key, {}).setdefault(entry.division, []).append(point)
    named = len({round_ for _, round_, _ in points}) > 1
    return tuple(
        _card(str(index), key, divisions, record, named=named)
        for index, (key, divisions) in enumerate(sorted(points.items(), key=itemgetter(0)))
    )


def _card(
    id_: str,
    key: tuple[str, str, str],
    divisions: Mapping[str, list[Point]],
    record: Sequence[PublishedSet],
    *,
    named: bool,
) -> Card:
    benchmark, round_, usage = key
    division = next((name for name in ("closed", "open") if name in divisions), "")
    points = divisions.get(division) or next(iter(divisions.values()))
    alike = [
        row for row in record if row.usage == usage and known_division(row.division) == division
    ]
    earlier = _earlier(alike, comparable_rounds(usage, round_, benchmark))
    before = next(iter(earlier), "")
    results = wording.counted(len(points), "result")
    names = submitters(point.submitter for point in points)
    other = "" if division == "closed" else f", {division or 'no'} division"
    return Card(
        id=id_,
        benchmark=benchmark,
        title=f"{benchmark}, round {round_}" if named else benchmark,
        about=f"{results} of {wording.counted(len(names), 'submitter')}{other}",
        best=tuple(
            Best(
                title=kind.title,
                figure=kind.shown(kind.value(best)),
                unit=kind.unit,
                point=best,
                change=_change(kind, best, earlier.get(before, [])),
            )
            for kind in _KINDS
            if (best := kind.best(points))
        ),
        before=before,
        points=tuple(points),
        best_by_round=_over_rounds({**dict(reversed(earlier.items())), round_: points}),
    )


def _change(kind: _Kind, best: Point, before: Iterable[Point]) -> str:
    """Return how much faster the best score became: ``25 % faster``, ``unchanged``."""
    old = kind.best(before)
    if old is None:
        return ""
    return wording.change(kind.value(old), kind.value(best))


def _earlier(
    record: Iterable[PublishedSet], names: Iterable[tuple[str, str]]
) -> dict[str, list[Point]]:
    """Return the published scores of these rounds and benchmarks by round, in their order."""
    points = by_key(
        (
            (row.round, row.benchmark),
            Point(
                round=row.round,
                submitter=row.submitter,
                system=row.system,
                accelerator=row.accelerator_model,
                accelerators=row.accelerators,
                minutes=row.score_minutes,
            ),
        )
        for row in record
        if row.score_minutes and row.accelerators and row.scaling != "weak"
    )
    return {name[0]: points[name] for name in names if name in points}


def _over_rounds(by_round: Mapping[str, list[Point]]) -> dict[str, dict[str, float]]:
    """Return the best minutes by round, overall and on eight accelerators."""
    trends: dict[str, dict[str, float]] = {}
    for name, kind in zip((OVERALL, ON_EIGHT), _KINDS, strict=False):
        bests = {round_: kind.best(points) for round_, points in by_round.items()}
        trends[name] = {round_: best.minutes for round_, best in bests.items() if best}
    return trends
