"""The result sets of a page with all that it says of them, and the cards of a round.

A card has the best scores of a benchmark, and how they changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import isfinite
from operator import attrgetter

from msgspec import Struct, field

from mlperf_pkg.checker.values import Checked, Standing, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, category
from mlperf_pkg.commands.charts.drawing import drawn_sets
from mlperf_pkg.commands.charts.sets import DrawnSet
from mlperf_pkg.commands.compare.published import comparable_rounds, with_standings
from mlperf_pkg.commands.compare.ratios import Prices, price_of
from mlperf_pkg.commands.page.template import parameter
from mlperf_pkg.config import Price
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import PublishedResultsError
from mlperf_pkg.render.table import by_key
from mlperf_pkg.render.text import Submitters
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow

MOST_SETTINGS = 60  # hyperparameters of a result set that are shown
_MOST_VALUES = 3  # of one hyperparameter
_UNUSUAL = ("preview", "research")
_DESCRIPTION = {  # fields of a system description, and their titles
    "system_name": "System name",
    "status": "Availability",
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


class Point(Struct, frozen=True):
    """A score in a benchmark, in minutes, on a number of accelerators of one model.

    ``element`` is the id of its element in a page, empty for a published score; ``fails`` are the
    verdicts that fail.
    """

    round: str
    submitter: str
    accelerator: str
    accelerators: int
    minutes: float
    availability: str = ""
    element: str = ""
    fails: str = ""

    @property
    def cost(self) -> float:
        """The minutes that one accelerator would take if scaling were ideal."""
        return self.minutes * self.accelerators

    def hardware(self, accelerator: str) -> str:
        """Return the number of an accelerator, and the availability if it is unusual."""
        name = f"{self.accelerators:,} \u00d7 {accelerator}"
        return f"{name}, {self.availability}" if self.availability in _UNUSUAL else name


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
        system = (row.submitter or "", self.accelerator, self.accelerators)
        fails = " and ".join(failed)
        return Point(row.round, *system, minutes, self.availability, element, fails)

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
    made = []
    for drawn, context, of_record in zip(
        drawn_sets(checked), checked.contexts, scored.sets, strict=True
    ):
        name = context.system.system_name if context.system else None
        price = price_of(prices, drawn.row.system, name)
        settings = _settings(context)
        made.append(Entry(drawn, context.system, settings, price, of_record.published))
    return tuple(made)


def _settings(context: SetContext) -> dict[str, str]:
    """Return the values of all runs by key: ``1e-05``, or ``1, 2 (of 3 values)``."""
    settings: list[tuple[str, str]] = []
    for run in context.runs:
        settings += (("global_batch_size", size) for size in run.batch_sizes[:1])
        settings += islice(run.hyperparameters.items(), MOST_SETTINGS)
    return {key: _in_words(texts) for key, texts in islice(by_key(settings).items(), MOST_SETTINGS)}


def _in_words(texts: list[str]) -> str:
    values = list(dict.fromkeys(texts))
    text = ", ".join(values[:_MOST_VALUES])
    return text if len(values) <= _MOST_VALUES else f"{text} (of {len(values)} values)"


# ---- the cards of a round -----------------------------------------------------------------


class Best(Struct, frozen=True):
    """A score of a card, and what it is compared with, in words."""

    title: str
    figure: str
    unit: str
    point: Point
    change: str


class Card(Struct, frozen=True):
    """A benchmark of a round, and its best scores; ``state`` is that of a page that shows it."""

    title: str
    state: str
    about: str
    best: tuple[Best, ...]


_Value = Callable[[Point], float]
_MINUTES, _COST = attrgetter("minutes"), attrgetter("cost")


def cards(
    entries: Mapping[str, Entry],
    record: Sequence[PublishedSet],
    companies: Mapping[str, Sequence[str]],
) -> tuple[Card, ...]:
    """Return a card for each benchmark with a score, by name; ``entries`` are by their element.

    ``record`` are the published sets, ``companies`` the submitters with their submissions. Scores
    are those of the Closed division, or of the Open one if there is no other.
    """
    points = by_key(
        ((entry.row.benchmark, entry.row.round, entry.drawn.usage), (entry.division, point))
        for element, entry in entries.items()
        if (point := entry.point(element))
    )
    named = len({round_ for _, round_, _ in points}) > 1
    return tuple(
        _card(key, by_key(points[key]), record, companies, named=named) for key in sorted(points)
    )


def _card(
    key: tuple[str, str, str],
    divisions: Mapping[str, list[Point]],
    record: Sequence[PublishedSet],
    companies: Mapping[str, Sequence[str]],
    *,
    named: bool,
) -> Card:
    benchmark, round_, usage = key
    division = next((name for name in ("closed", "open") if name in divisions), "")
    points = divisions.get(division) or next(iter(divisions.values()))
    alike = [
        row for row in record if row.usage == usage and known_division(row.division) == division
    ]
    before = _earlier(alike, comparable_rounds(usage, round_, benchmark))
    owners = {point.submitter for point in points}
    by_name = {name: own for name, own in companies.items() if not owners.isdisjoint(own)}
    other = "" if division == "closed" else f", {division or 'no'} division"
    return Card(
        title=f"{benchmark}, round {round_}" if named else benchmark,
        state=f"Benchmark={parameter(benchmark)}" + (f"&Round={round_}" if named else ""),
        about=f"{wording.counted(len(points), 'result')}, "
        f"{wording.counted(len(by_name), 'submitter')}{other}",
        best=tuple(_best(points, before, by_name)),
    )


def _best(
    points: Sequence[Point], before: Sequence[Point], by_name: Mapping[str, Sequence[str]]
) -> Iterator[Best]:
    """Yield the winner, the fastest of another submitter, and the fewest accelerator-minutes."""
    winner, cheapest = min(points, key=_MINUTES), min(points, key=_COST)
    winners = {winner.submitter}.union(*(n for n in by_name.values() if winner.submitter in n))
    others = [point for point in points if point.submitter not in winners]
    yield Best("Winner", wording.minutes(winner.minutes), "min", winner, _since(before, winner))
    if others:
        second = min(others, key=_MINUTES)
        gap = wording.change(winner.minutes, second.minutes)
        gap = "equally fast" if gap == wording.UNCHANGED else gap
        yield Best("Runner-up", wording.minutes(second.minutes), "min", second, gap)
    change = _since(before, cheapest, _COST)
    unit = "accelerator-minutes"
    yield Best("Per accelerator", f"{cheapest.cost:,.1f}", unit, cheapest, change)


def _since(before: Sequence[Point], best: Point, value: _Value = _MINUTES) -> str:
    """Return how the best value changed: ``8 % slower than 5.0``, ``unchanged since 5.0``."""
    if not before:
        return ""
    change = wording.change(min(map(value, before)), value(best))
    word = "since" if change == wording.UNCHANGED else "as in" if " as " in change else "than"
    return f"{change} {word} {before[0].round}"


def _earlier(record: Iterable[PublishedSet], names: Iterable[tuple[str, str]]) -> Sequence[Point]:
    """Return the published scores of the latest of these rounds and benchmarks that has some."""
    points: dict[tuple[str, str], list[Point]] = {}
    for row in record:
        if row.score_minutes and row.accelerators and row.scaling != "weak":
            system = (row.submitter, row.accelerator_model, row.accelerators)
            point = Point(row.round, *system, row.score_minutes)
            points.setdefault((row.round, row.benchmark), []).append(point)
    return next((points[name] for name in names if name in points), [])
