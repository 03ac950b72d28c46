"""The content of a page, as values without markup: result sets, the cards of a round, findings.

A card has the best scores of a benchmark, and how they changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked, Rank, Standing, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, category
from mlperf_pkg.commands.charts.benchmarks import Looks
from mlperf_pkg.commands.charts.drawing import drawn_sets
from mlperf_pkg.commands.charts.sets import DrawnSet
from mlperf_pkg.commands.compare.published import comparable_rounds, with_standings
from mlperf_pkg.commands.compare.ratios import Prices, price_of
from mlperf_pkg.commands.page.template import parameter
from mlperf_pkg.config import Price
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.source import raw_lines
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import PublishedResultsError
from mlperf_pkg.render.findings import BASES, verdict_in_words
from mlperf_pkg.render.table import Column, Span, Table, by_key
from mlperf_pkg.render.text import Submitters
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow

MOST_SETTINGS = 60  # hyperparameters of a result set that are shown
_MOST_VALUES = 3  # of one hyperparameter
_UNUSUAL = ("preview", "research")
_MOST_FAILING = 6  # submitters that a verdict names
EXCERPT = 300  # characters of a line that are shown
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


class Section(Struct, frozen=True):
    """A result set of a page; ``id`` is that of its element.

    ``settings`` are its batch size and hyperparameters in words; ``system`` is None if there is no
    description, ``standing`` where it is unknown.
    """

    drawn: DrawnSet
    system: SystemFile | None = None
    settings: Mapping[str, str] = {}
    price: Price | None = None
    standing: Standing | None = None
    id: str = ""
    findings: tuple[ShownFinding, ...] = ()

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
            text = self._text(name)
            if text:
                yield title, text

    @property
    def point(self) -> Point | None:
        """The score for charts; None if it or the number of accelerators is missing."""
        row = self.row
        minutes = to_finite(self.row.score_minutes)
        if not minutes or not self.accelerators or row.scaling == "weak":
            return None
        fails = " and ".join(basis for basis in BASES if getattr(row.verdict, basis) == "fail")
        system = (row.submitter or "", self.accelerator, self.accelerators)
        return Point(row.round, *system, minutes, self.availability, self.id, fails)

    @property
    def title(self) -> str:
        """The heading: benchmark, system and submitter."""
        names = (self.row.benchmark, self.row.system, self.row.submitter)
        return ", ".join(name for name in names if name)

    @property
    def errors(self) -> list[ShownFinding]:
        """The errors that are not waived, which decide its verdicts."""
        return [shown for shown in self.findings if shown.finding.is_error]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts of the result set by title."""
        row = self.row
        price = self.price
        facts = [
            ("Minutes", wording.minutes(row.score_minutes)),
            ("Olympic mean", wording.minutes(row.unscaled_minutes)),
            ("Scaling factor", f"{row.scaling_factor:.4f}"),
            ("Summarizer", wording.minutes(row.official_minutes)),
            ("Seeds", "pass" if row.seeds.official_pass else "FAIL"),
        ]
        facts += [("Published", in_words(self.standing))] if self.standing else []
        facts += [("Price", f"{price.usd:,.0f} US dollars ({price.source})")] if price else []
        facts += [("Id", row.id), ("Path", row.path)]
        facts += [("Note", row.score_note)] if row.score_note else []
        facts += [("RCP", row.rcp.explanation)] if row.rcp else []
        return facts

    def _text(self, name: str) -> str:
        value = (self.system.contents or {}).get(name, "") if self.system else ""
        return str(value).strip() if isinstance(value, str | int) else ""


def sections(checked: Checked, prices: Prices) -> Iterator[Section]:
    """Yield the result sets of a check with ``curves``, in the order of its report.

    Those of one submitter have their standing in the published record.
    """
    scored = scores(checked)
    if Submitters(checked.report).number <= 1:
        with suppress(PublishedResultsError):
            scored = with_standings(scored, checked)
    for drawn, context, of_record in zip(
        drawn_sets(checked), checked.contexts, scored.sets, strict=True
    ):
        name = context.system.system_name if context.system else None
        price = price_of(prices, drawn.row.system, name)
        settings = _settings(context)
        yield Section(drawn, context.system, settings, price, of_record.published)


def _settings(context: SetContext) -> dict[str, str]:
    """Return the values of all runs by key: ``1e-05``, or ``1, 2 (of 3 values)``."""
    settings: list[tuple[str, str]] = []
    for run in context.runs:
        settings += (("global_batch_size", size) for size in run.batch_sizes[:1])
        settings += islice(run.hyperparameters.items(), MOST_SETTINGS)
    return {key: _listed(texts) for key, texts in islice(by_key(settings).items(), MOST_SETTINGS)}


def _listed(texts: list[str]) -> str:
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


_MINUTES = attrgetter("minutes")
_COST = attrgetter("cost")


def cards(
    sections: Iterable[Section],
    record: Sequence[PublishedSet],
    companies: Mapping[str, Sequence[str]],
) -> Iterator[Card]:
    """Yield a card for each benchmark with a score, by name.

    ``record`` are the published sets, ``companies`` the submitters with their submissions. Scores
    are those of the Closed division, or of the Open one if there is no other.
    """
    points = by_key(
        ((one.row.benchmark, one.row.round, one.drawn.usage), (one.division, point))
        for one in sections
        if (point := one.point)
    )
    named = len({round_ for _, round_, _ in points}) > 1
    for (benchmark, round_, usage), scored in sorted(points.items(), key=itemgetter(0)):
        divisions = by_key(scored)
        division = next((name for name in ("closed", "open") if name in divisions), "")
        own = divisions.get(division) or next(iter(divisions.values()))
        of_usage = (row for row in record if row.usage == usage)
        alike = (row for row in of_usage if known_division(row.division) == division)
        before = _earlier(alike, comparable_rounds(usage, round_, benchmark))
        owners = {point.submitter for point in own}
        by_name = {name: names for name, names in companies.items() if owners & {*names}}
        other = "" if division == "closed" else f", {division or 'no'} division"
        numbers = wording.counted(len(own), "result"), wording.counted(len(by_name), "submitter")
        yield Card(
            title=f"{benchmark}, round {round_}" if named else benchmark,
            state=f"Benchmark={parameter(benchmark)}" + (f"&Round={round_}" if named else ""),
            about=f"{', '.join(numbers)}{other}",
            best=tuple(_best(own, before, by_name)),
        )


def _best(
    points: Sequence[Point], before: Sequence[Point], by_name: Mapping[str, Sequence[str]]
) -> Iterator[Best]:
    """Yield the winner, the fastest of another submitter, and the fewest accelerator-minutes."""
    winner = min(points, key=_MINUTES)
    cheapest = min(points, key=_COST)
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


def _since(before: Sequence[Point], best: Point, value: Callable[[Point], float] = _MINUTES) -> str:
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


# ---- the page -----------------------------------------------------------------------------


class ShownFinding(Struct, frozen=True):
    """A finding of a page: the id of its element, and the raw line, None if it was not read."""

    id: str
    finding: Finding
    raw: str | None


class BenchmarkSections(Struct, frozen=True):
    """The result sets of a benchmark; ``id`` is that of the element of their common chart."""

    id: str
    title: str
    sections: tuple[Section, ...]


class Content:
    """The page of a report; ``cards`` are those of a round, none for one submitter."""

    def __init__(
        self,
        report: Report,
        sections: Sequence[Section],
        lines: Mapping[tuple[str, int], str],
        record: Sequence[PublishedSet] = (),
    ) -> None:
        """Take the raw ``lines`` of findings by path and line, and the published sets."""
        self.report = report
        self.submitters = Submitters(report)
        self.name = wording.edition(report.usage, report.round)
        self.is_round = self.submitters.number > 1
        self.findings = tuple(
            ShownFinding(f"f{index}", finding, lines.get((finding.path, finding.line or 0)))
            for index, finding in enumerate(shown_findings(report))
        )
        by_set = by_key((shown.finding.set, shown) for shown in self.findings)
        self.sections = [
            replace(section, id=f"s{index}", findings=tuple(by_set.get(section.row.id, ())))
            for index, section in enumerate(sorted(sections, key=_sort_key))
        ]
        groups = by_key(((one.row.round, one.row.benchmark), one) for one in self.sections)
        self.benchmarks = []
        for index, ((round_, benchmark), members) in enumerate(groups.items()):
            title = f"{benchmark}, round {round_}" if report.round is None else benchmark
            self.benchmarks.append(BenchmarkSections(f"g{index}", title, tuple(members)))
        made = cards(self.sections, record, report.submitters)
        self.cards = list(made) if self.is_round else []
        self.columns = columns(self.sections)
        self.choices = choices(self.columns, self.sections)
        self.looks = Looks(section.accelerator for section in sections)

    @property
    def verdicts(self) -> list[tuple[str, Verdict, str, list[tuple[str, str]]]]:
        """The two verdicts: the name, the verdict, its meaning in words, and what fails.

        That is in words too, with the state of the page that shows it: ``4 of Google``.
        """
        report = self.report
        words = verdict_in_words
        return [
            (b.value, getattr(report.verdict, b), words(report, b), list(self._failing(b)))
            for b in BASES
        ]

    def _failing(self, basis: Basis) -> Iterator[tuple[str, str]]:
        rows = [section.row for section in self.sections]
        failing = [row for row in rows if getattr(row.verdict, basis) is Verdict.FAIL]
        if not failing:
            return
        yield f"{len(failing)} of {wording.counted(len(rows), 'result set')}", f"FAIL={basis}"
        owners = Counter(_text(row.submitter) for row in failing) if self.is_round else Counter()
        for name, number in owners.most_common(_MOST_FAILING):
            yield f"{number} of {name}", f"Submitter={parameter(name)}&FAIL={basis}"

    @property
    def title(self) -> str:
        """The title of the window: the verdicts, except for a round."""
        words = " / ".join(wording.VERDICTS[verdict] for _, verdict, *_ in self.verdicts)
        return f"{self.name}: {'results' if self.is_round else words}"

    def cells(self, section: Section) -> list[tuple[ResultColumn, Span]]:
        """Return the cells of a result set in the table, by column."""
        return list(zip(self.columns, Table(self.columns).spans(section), strict=True))


def shown_findings(report: Report) -> list[Finding]:
    """Return the findings of a page: all, errors first, waived ones last."""
    order = tuple(Severity).index
    return sorted(report.findings, key=lambda one: (bool(one.waiver), order(one.severity)))


def _sort_key(section: Section) -> tuple[str, str, str, float, tuple[str, ...]]:
    """Return what orders result sets: the fastest of each round, benchmark and division first."""
    row = section.row
    names = tuple(name or "" for name in (row.submitter, row.system, row.id))
    score = math.inf if row.score_minutes is None else row.score_minutes
    return row.round or "", row.benchmark, section.division, score, names


def amount(value: float | None) -> str:
    """Return a number of epochs or samples as text, however large."""
    try:
        return wording.NOTHING if value is None else f"{value:,.10g}"
    except OverflowError:
        return "more than any number"


# ---- the table of results -----------------------------------------------------------------


class ResultColumn(Column, frozen=True):
    """A column of the table of results; the style of a cell is its class in the page.

    A column that ``may_lack`` values is shown only if there is one. ``filters`` says that results
    can be filtered by its values.
    """

    may_lack: bool = False
    filters: bool = False


def in_words(standing: Standing) -> str:
    """Return a standing: ``3 of 12 in 2.0 on 16 accelerators, 1 of 2 with Bow IPU``."""
    count = wording.counted(standing.accelerators, "accelerator")
    text = f"{_rank(standing.overall)} in {standing.round} on {count}"
    if standing.of_model is None:
        return text
    return f"{text}, {_rank(standing.of_model)} with {standing.accelerator_model}"


def _rank(rank: Rank) -> str:
    return f"{rank.rank} of {rank.of}"


def _text(value: str | None) -> str:
    return value or wording.NOTHING


def _whole(value: float | None) -> str:
    return wording.NOTHING if value is None else f"{value:,.0f}"


def _kilo(value: float | None) -> str:
    return _whole(None if value is None else value / 1000)


def _part(name: str, show: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return how to show an attribute of a value that may be missing."""
    return lambda whole: show(getattr(whole, name)) if whole else wording.NOTHING


def _batch_size(settings: Mapping[str, str]) -> str:
    return _text(settings.get("global_batch_size"))


def _column(
    title: str, value: str, show: Callable[[Any], str] = _text, kind: str = "", **more: Any
) -> ResultColumn:
    """Return the column of an attribute of sections; its cells have the class ``kind``.

    This is ``n`` for numbers, ``name`` for names, which wrap.
    """
    numbers = "n" in kind.split()
    return ResultColumn(
        title, of=attrgetter(value), show=show, numbers=numbers, style=lambda _: kind, **more
    )


COLUMNS = (
    _column("Benchmark", "row", wording.benchmark, filters=True),
    _column("Accelerators", "accelerators", _whole, "n", filters=True),
    _column("Minutes", "row.score_minutes", wording.minutes, "n score"),
    _column("Round", "row.round", filters=True),
    _column("Official", "row.verdict.official", wording.VERDICTS.__getitem__),
    _column("Rules", "row.verdict.rules", wording.VERDICTS.__getitem__),
    _column("Submitter", "row.submitter", kind="name", filters=True),
    _column("System", "row.system", kind="name"),
    _column("Accelerator", "accelerator", kind="name", may_lack=True, filters=True),
    _column("Availability", "availability", may_lack=True, filters=True),
    _column("Nodes", "system", _part("nodes", _whole), "n", may_lack=True),
    _column("Batch size", "settings", _batch_size, "n", may_lack=True),
    _column("Energy", "row.energy_joules", _kilo, "n", unit="kJ", may_lack=True),
    _column("Price", "price", _part("usd", _whole), "n", unit="USD", may_lack=True),
    _column("Published rank", "standing", _part("overall", _rank), may_lack=True),
    _column("RCP margin", "row", wording.rcp),
    _column("Division", "row.division", filters=True),
    _column("Summarizer", "row.official_minutes", wording.minutes, "n"),
    _column("Runs", "row", wording.runs, "n"),
)


def columns(sections: Sequence[Section]) -> tuple[ResultColumn, ...]:
    """Return the columns of a table; results of one round do not have it in a column."""
    rounds = {section.row.round for section in sections}
    values = _values(COLUMNS, sections)
    used = (column for column in COLUMNS if not column.may_lack or values[column.heading])
    return tuple(column for column in used if column.title != "Round" or len(rounds) > 1)


def choices(columns: Sequence[ResultColumn], sections: Sequence[Section]) -> dict[str, list[str]]:
    """Return the values by which results can be filtered, by column."""
    values = _values([column for column in columns if column.filters], sections)
    return {name: sorted(texts, key=_natural) for name, texts in values.items() if len(texts) > 1}


def _values(columns: Sequence[ResultColumn], sections: Sequence[Section]) -> dict[str, set[str]]:
    """Return the texts of the cells of each column, without those that are missing."""
    rows = [[text for text, _ in Table(columns).spans(section)] for section in sections]
    return {
        column.heading: {row[place] for row in rows} - {wording.NOTHING}
        for place, column in enumerate(columns)
    }


def _natural(text: str) -> tuple[int, str]:
    digits = text.replace(",", "")
    return (int(digits) if digits.isdecimal() and len(digits) < 20 else -1, text)  # noqa: PLR2004


# ---- the lines of findings ----------------------------------------------------------------


def excerpts(checked: Checked, findings: Iterable[Finding]) -> dict[tuple[str, int], str]:
    """Return the raw lines of findings by path and line, as far as they can be read.

    Raises:
        UserError: an input is in a store.
    """
    places = checked.places
    stored = next((place for place in places.values() if place.source.stored), None)
    if stored:
        raise UserError(f"{stored.path}: is in an object store; expected a path on this machine")
    located = by_key((f.path, f.line) for f in findings if f.line and f.path in places)
    texts: dict[tuple[str, int], str] = {}
    for path, lines in located.items():
        with suppress(OSError):
            raw = raw_lines(places[path].source, set(lines), EXCERPT)
            texts |= {(path, line): text for line, text in raw.items()}
    return texts
