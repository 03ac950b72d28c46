"""The content of a page, as values without markup: result sets, the cards of a round, findings.

A card has the best scores of a benchmark, and how they changed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked, Rank, Standing, scores
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, category
from mlperf_pkg.commands.charts.benchmarks import Looks
from mlperf_pkg.commands.charts.drawing import drawn_sets
from mlperf_pkg.commands.charts.sets import DrawnSet
from mlperf_pkg.commands.compare.published import with_standings
from mlperf_pkg.commands.compare.ratios import Prices, price_of
from mlperf_pkg.commands.notice import (
    GAP,
    PER_ACCELERATOR,
    ShownResult,
    embargo,
    marked,
    notice,
    score,
    shown_result,
    shown_results,
)
from mlperf_pkg.commands.page.template import parameter
from mlperf_pkg.config import Price
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.source import raw_lines
from mlperf_pkg.infra.text import unused
from mlperf_pkg.published.model import PublishedSet, known_division
from mlperf_pkg.published.results import PublishedResultsError
from mlperf_pkg.render.findings import BASES, verdict_in_words
from mlperf_pkg.render.table import Column, Span, Table, by_key
from mlperf_pkg.render.text import (
    CodeGroup,
    Submitters,
    by_heading,
    folded_kinds,
    subjects_in_words,
)
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.rulebook.rounds import comparable_rounds

MOST_SETTINGS = 60  # hyperparameters of a result set that are shown
_MOST_VALUES = 3  # of one hyperparameter
_UNUSUAL = ("preview", "research")
_MOST_TO_DO = 4  # kinds of findings at the top of the page of a submission
_MOST_FAILING = 6  # submitters that a verdict names
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")  # in the id of an element, which is in links
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

    Of a system without accelerators, ``accelerators`` is 0, and ``nodes`` count. ``models`` is the
    number that weak scaling trains, 0 for strong scaling. ``element`` is the id of its element in a
    page, empty for a published score; ``fails`` are the verdicts that fail.
    """

    round: str
    submitter: str
    accelerator: str
    accelerators: int
    minutes: float
    availability: str = ""
    element: str = ""
    fails: str = ""
    is_verified: bool = True
    nodes: int = 0
    models: int = 0

    @property
    def size(self) -> int:
        """The number of accelerators, or of nodes without any."""
        return self.accelerators or self.nodes

    @property
    def rate(self) -> float:
        """The models that weak scaling trains in a minute."""
        return self.models / self.minutes

    @property
    def cost(self) -> float:
        """The minutes that one accelerator would take if scaling were ideal."""
        return self.minutes * self.accelerators

    def hardware(self, accelerator: str) -> str:
        """Return the number of an accelerator, and the availability if it is unusual."""
        name = f"{self.size:,} \u00d7 {accelerator}"
        if not self.accelerators:
            name = f"{self.size:,} nodes \u00d7 {accelerator}"
        if self.availability in _UNUSUAL:
            return f"{name}, {self.availability}"
        return name


class ResultSection(Struct, frozen=True):
    """A result set of a page; ``id`` is that of its element.

    ``settings`` are its batch size and hyperparameters in words; ``system`` is None if there is no
    description, ``standing`` where it is unknown. ``result_id`` is that of MLCommons, if known.
    """

    drawn: DrawnSet
    system: SystemFile | None = None
    settings: Mapping[str, str] = {}
    price: Price | None = None
    standing: Standing | None = None
    id: str = ""
    findings: tuple[ShownFinding, ...] = ()
    result_id: str = ""

    @property
    def is_verified(self) -> bool:
        """Whether its score was published and its logs are those of the record."""
        return self.drawn.is_verified

    @property
    def result(self) -> ShownResult:
        """What must stand beside it."""
        shown = shown_result(self.row, self.system, is_verified=self.is_verified)
        return replace(shown, id=self.result_id)

    @property
    def score(self) -> str:
        """The score in minutes, with ``unverified`` where it must say so."""
        return score(self.row.score_minutes, is_verified=self.is_verified)

    @property
    def official(self) -> str:
        """The score of the official summarizer, as ``score``."""
        return score(self.row.official_minutes, is_verified=self.is_verified)

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
        if self.system is None:
            return None
        return self.system.accelerators

    @property
    def accelerator(self) -> str:
        """The model of the accelerator, of the processor if there is none, empty if unknown."""
        if self.accelerators == 0:
            return self._text("host_processor_model_name")
        return self._text("accelerator_model_name")

    @property
    def availability(self) -> str:
        """The availability: that of the rules for any spelling, else as described."""
        if self.system is None or not self.system.status:
            return ""
        return category(self.system.status) or self.system.status

    @property
    def description(self) -> Iterator[tuple[str, str]]:
        """The facts of the system description by title."""
        for name, title in _DESCRIPTION.items():
            text = self._text(name)
            if text:
                yield title, text

    @property
    def point(self) -> Point | None:
        """The score for charts; None if it or the size of the system is missing."""
        row = self.row
        minutes = to_finite(row.score_minutes)
        if (
            self.system is None
            or not minutes
            or (row.scaling == "weak" and not row.number_of_models)
        ):
            return None
        accelerators = self.accelerators or 0
        nodes = self.system.nodes or 0
        if not accelerators and not nodes:
            return None
        failing = [basis for basis in BASES if getattr(row.verdict, basis) == "fail"]
        return Point(
            round=row.round,
            submitter=row.submitter or "",
            accelerator=self.accelerator,
            accelerators=accelerators,
            minutes=minutes,
            availability=self.availability,
            element=self.id,
            fails=" and ".join(failing),
            is_verified=self.is_verified,
            nodes=nodes,
            models=row.number_of_models or 0,
        )

    @property
    def gap(self) -> str:
        """How it compares with the next faster published score, or the next slower one."""
        if self.standing is None or not (self.row.score_minutes and self.standing.next_minutes):
            return wording.NOTHING
        change = wording.change(self.standing.next_minutes, self.row.score_minutes)
        other = self.standing.next_submitter
        if change == wording.UNCHANGED:
            return f"as fast as {other}"
        word = "than"
        if " as " in change:
            word = "as"
        return f"{change} {word} {other}"

    @property
    def title(self) -> str:
        """The heading: benchmark, system and submitter."""
        names = (self.row.benchmark, self.row.system, self.row.submitter)
        return ", ".join(filter(None, names))

    @property
    def errors(self) -> list[ShownFinding]:
        """The errors that are not waived, which decide its verdicts."""
        return [shown for shown in self.findings if shown.finding.is_error]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts of the result set by title."""
        row = self.row
        seeds = "FAIL"
        if row.seeds.official_pass:
            seeds = "pass"
        facts = [
            ("Minutes", self.score),
            (
                wording.unscaled(row).capitalize(),
                score(row.unscaled_minutes, is_verified=self.is_verified),
            ),
            ("Scaling factor", f"{row.scaling_factor:.4f}"),
            ("Summarizer", self.official),
            ("Seeds", seeds),
        ]
        if self.standing:
            facts.append(("Published", in_words(self.standing)))
        if self.price:
            price = f"{self.price.usd:,.0f} US dollars ({self.price.source})"
            facts.append(("Price", price))
        facts.append(("Id", row.id))
        facts.append(("Path", row.path))
        if row.score_note:
            facts.append(("Note", row.score_note))
        if row.rcp:
            facts.append(("RCP", row.rcp.explanation))
        return facts

    def _text(self, name: str) -> str:
        """Return a field of the system description in words, empty if it is missing."""
        if self.system is None or not self.system.contents:
            return ""
        value = self.system.contents.get(name, "")
        if not isinstance(value, str | int):
            return ""
        return str(value).strip()


def sections(checked: Checked, prices: Prices) -> Iterator[ResultSection]:
    """Yield the result sets of a check with ``curves``, in the order of its report.

    Those of one submitter have their standing in the published record.
    """
    scored = scores(checked)
    shown = shown_results(checked)
    if Submitters(checked.report).number <= 1:
        with suppress(PublishedResultsError):
            scored = with_standings(scored, checked)
    for drawn, context, scored_set in zip(
        drawn_sets(checked, shown), checked.contexts, scored.sets, strict=True
    ):
        system_name = None
        if context.system:
            system_name = context.system.system_name
        price = price_of(prices, drawn.row.system, system_name)
        settings = _settings(context)
        yield ResultSection(
            drawn=drawn,
            system=context.system,
            settings=settings,
            price=price,
            standing=scored_set.published,
            result_id=shown[drawn.row.id].id,
        )


def _settings(context: SetContext) -> dict[str, str]:
    """Return the values of all runs by key: ``1e-05``, or ``1, 2 (of 3 values)``."""
    logged: list[tuple[str, str]] = []
    for run in context.runs:
        if run.batch_sizes:
            logged.append(("global_batch_size", run.batch_sizes[0]))
        logged += islice(run.hyperparameters.items(), MOST_SETTINGS)
    settings = islice(by_key(logged).items(), MOST_SETTINGS)
    return {key: _listed(values) for key, values in settings}


def _listed(texts: list[str]) -> str:
    values = list(dict.fromkeys(texts))
    text = ", ".join(values[:_MOST_VALUES])
    if len(values) > _MOST_VALUES:
        text += f" and {len(values) - _MOST_VALUES} more values"
    return text


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
_RATE = attrgetter("rate")


def cards(
    sections: Iterable[ResultSection],
    record: Sequence[PublishedSet],
    companies: Mapping[str, Collection[str]],
) -> Iterator[Card]:
    """Yield a card for each benchmark with a score, by name.

    ``record`` are the published sets, ``companies`` those that submit each section, by its id.
    Scores are those of the Closed division, or of the Open one if there is no other.
    """
    groups = by_key(_scored(sections))
    rounds = {group.round for group in groups}
    for group, scored in sorted(groups.items(), key=itemgetter(0)):
        division, points = _of_one_division(scored)
        title = group.benchmark
        state = f"Benchmark={parameter(group.benchmark)}"
        if len(rounds) > 1:
            title += f", round {group.round}"
            state += f"&Round={group.round}"
        before = _published_before(group, division, record)
        best = [*_best_by_category(points, before, companies), *_best_weak(points)]
        yield Card(title, state, _about(division, points, companies), tuple(best))


def _about(division: str, points: Sequence[Point], companies: Mapping[str, Collection[str]]) -> str:
    """Return what the scores of a card have in common: ``2 results, 1 submitter, cloud``."""
    about = wording.counted(len(points), "result")
    about += f", {wording.counted(_submitters(points, companies), 'submitter')}"
    if division != "closed":
        about += f", {division or 'no'} division"
    categories = {point.availability for point in points}
    if len(categories) == 1:
        about += f", {category_name(*categories)}"
    return about


class _CardGroup(NamedTuple):
    """What the scores of a card have in common."""

    benchmark: str
    round: str
    usage: str


def _scored(sections: Iterable[ResultSection]) -> Iterator[tuple[_CardGroup, tuple[str, Point]]]:
    """Yield the scores with their card and division."""
    for section in sections:
        point = section.point
        if point:
            row = section.row
            group = _CardGroup(row.benchmark, row.round, section.drawn.usage)
            yield group, (section.division, point)


def _of_one_division(scored: Iterable[tuple[str, Point]]) -> tuple[str, list[Point]]:
    """Return the division that a card shows, empty if it has neither Closed nor Open scores."""
    divisions = by_key(scored)
    for division in ("closed", "open"):
        if division in divisions:
            return division, divisions[division]
    return "", next(iter(divisions.values()))


def _submitters(points: Iterable[Point], companies: Mapping[str, Collection[str]]) -> int:
    """Return how many submit these points; companies of a joint entry are one submitter."""
    return len({frozenset(companies[point.element]) for point in points})


def _best_by_category(
    points: Sequence[Point], before: Sequence[Point], companies: Mapping[str, Collection[str]]
) -> Iterator[Best]:
    """Yield the best of each category, as only results of one category compete.

    Of all categories but the one with most results, they yield the winner alone.
    """
    by_category = by_key((point.availability, point) for point in points)
    before_by_category = by_key((point.availability, point) for point in before)
    ordered = sorted(by_category.items(), key=lambda item: (-len(item[1]), item[0]))
    for index, (name, members) in enumerate(ordered):
        best = list(_best(members, before_by_category.get(name, []), companies))
        if index > 0:
            best = best[:1]
        for entry in best:
            title = entry.title
            if len(ordered) > 1:
                title = f"{title}, {category_name(name)}"
            yield replace(entry, title=title)


def category_name(availability: str) -> str:
    """Return an availability as it is written beside a result: ``on-premise``."""
    return {"onprem": "on-premise", "": "no category"}.get(availability, availability)


def _best(
    points: Sequence[Point], before: Sequence[Point], companies: Mapping[str, Collection[str]]
) -> Iterator[Best]:
    """Yield the winner, the fastest of another submitter, and the fewest accelerator-minutes."""
    points = [point for point in points if not point.models]
    if not points:
        return
    winner = min(points, key=_MINUTES)
    since = _since(before, winner)
    yield Best("Winner", wording.minutes(winner.minutes), "min", winner, since)
    winners = set(companies[winner.element])
    others = [point for point in points if winners.isdisjoint(companies[point.element])]
    if others:
        second = min(others, key=_MINUTES)
        gap = wording.change(winner.minutes, second.minutes)
        if gap == wording.UNCHANGED:
            gap = "equally fast"
        yield Best("Runner-up", wording.minutes(second.minutes), "min", second, gap)
    with_accelerators = [point for point in points if point.accelerators]
    if with_accelerators:
        cheapest = min(with_accelerators, key=_COST)
        since = _since(before, cheapest, _COST)
        figure = f"{cheapest.cost:,.1f}"
        yield Best("Per accelerator", figure, "accelerator-minutes", cheapest, since)


def _best_weak(points: Iterable[Point]) -> Iterator[Best]:
    """Yield the most models a minute of weak scaling, if any."""
    weak = [point for point in points if point.models]
    if weak:
        most = max(weak, key=_RATE)
        yield Best("Weak scaling", f"{most.rate:.3g}", "models a minute", most, "")


def _since(before: Sequence[Point], best: Point, value: Callable[[Point], float] = _MINUTES) -> str:
    """Return how the best value changed: ``8 % slower than 5.0``, ``unchanged since 5.0``.

    It is compared with the best one on as many accelerators, if any.
    """
    alike = [value(point) for point in before if point.accelerators == best.accelerators]
    if not alike:
        return ""
    change = wording.change(min(alike), value(best))
    if change == wording.UNCHANGED:
        return f"{change} since {before[0].round}"
    if " as " in change:
        return f"{change} as in {before[0].round}"
    return f"{change} than {before[0].round}"


def _published_before(
    group: _CardGroup, division: str, record: Iterable[PublishedSet]
) -> Sequence[Point]:
    """Return the scores of the latest comparable round before that of a card which has some."""
    comparable = list(comparable_rounds(group.usage, group.round, group.benchmark))
    points: dict[tuple[str, str], list[Point]] = {}
    for row in record:
        if row.usage != group.usage or (row.round, row.benchmark) not in comparable:
            continue
        if known_division(row.division) != division:
            continue
        if row.score_minutes and row.accelerators and row.scaling != "weak":
            point = Point(
                round=row.round,
                submitter=row.submitter,
                accelerator=row.accelerator_model,
                accelerators=row.accelerators,
                minutes=row.score_minutes,
                availability=category(row.status) or row.status,
            )
            points.setdefault((row.round, row.benchmark), []).append(point)
    for name in comparable:
        if name in points:
            return points[name]
    return []


# ---- the page -----------------------------------------------------------------------------


class ShownFinding(Struct, frozen=True):
    """A finding of a page: the id of its element, and the raw line, None if it was not read."""

    id: str
    finding: Finding
    raw: str | None


class FindingGroup(Struct, frozen=True):
    """The findings of a code, and what follows from them; ``about`` says what they are about.

    ``title`` is that of all groups of the severity, or of causes.
    """

    title: str
    kind: CodeGroup
    about: str
    shown: tuple[ShownFinding, ...]


class BenchmarkSections(Struct, frozen=True):
    """The result sets of a benchmark; ``id`` is that of the element of their common chart."""

    id: str
    title: str
    sections: tuple[ResultSection, ...]


class PageContent:
    """The page of a report; ``cards`` are those of a round, none for one submitter."""

    def __init__(
        self,
        report: Report,
        sections: Sequence[ResultSection],
        lines: Mapping[tuple[str, int], str],
        record: Sequence[PublishedSet] = (),
    ) -> None:
        """Take the raw ``lines`` of findings by path and line, and the published sets."""
        self.report = report
        self.submitters = Submitters(report)
        self.name = marked(wording.edition(report.usage, report.round))
        self.is_round = self.submitters.number > 1
        if self.submitters.number == 1:
            owner = next(row.submitter for row in report.result_sets if row.submitter)
            self.name = f"{owner}: {self.name}"
        self.finding_groups = list(_finding_groups(report, lines))
        self.findings = [shown for group in self.finding_groups for shown in group.shown]
        by_set = by_key((shown.finding.set, shown) for shown in self.findings)
        self.sections: list[ResultSection] = []
        elements: set[str] = set()
        for section in sorted(sections, key=_sort_key):
            set_findings = tuple(by_set.get(section.row.id, ()))
            element = unused(f"s-{_UNSAFE.sub('-', section.row.id)}", elements)
            elements.add(element)
            self.sections.append(replace(section, id=element, findings=set_findings))
        self.benchmarks = list(self._benchmarks())
        self.cards: list[Card] = []
        if self.is_round:
            companies = {section.id: section.row.companies for section in self.sections}
            self.cards += cards(self.sections, record, companies)
        self.columns = columns(self.sections)
        self.constants = constants(self.columns, self.sections)
        self.choices = choices(self.columns, self.sections)
        self.looks = Looks(section.accelerator for section in sections)
        results = [section.result for section in self.sections]
        self.embargo = embargo(results)
        self.notice = notice(results, [PER_ACCELERATOR, GAP])

    def _benchmarks(self) -> Iterator[BenchmarkSections]:
        """Yield the result sets by benchmark; a report of several rounds names the round."""
        groups = by_key(
            ((section.row.round, section.row.benchmark), section) for section in self.sections
        )
        for (round_, benchmark), members in groups.items():
            title = benchmark
            if self.report.round is None:
                title += f", round {round_}"
            element = _UNSAFE.sub("-", f"g-{benchmark}-{round_}")
            yield BenchmarkSections(element, title, tuple(members))

    @property
    def verdicts(self) -> list[tuple[str, Verdict, str, list[tuple[str, str]]]]:
        """The two verdicts: the name, the verdict, its meaning in words, and what fails.

        That is in words too, with the state of the page that shows it: ``4 of Google``.
        """
        verdicts = []
        for basis in BASES:
            verdict = getattr(self.report.verdict, basis)
            words = verdict_in_words(self.report, basis)
            drift = self.report.drift
            if drift and basis is Basis.OFFICIAL and verdict is Verdict.NOT_CHECKED:
                words = f"{drift.verified}: {wording.VERDICTS[drift.official]}; {words}"
            verdicts.append((basis.value, verdict, words, list(self._failing(basis))))
        return verdicts

    def _failing(self, basis: Basis) -> Iterator[tuple[str, str]]:
        rows = [section.row for section in self.sections]
        failing = [row for row in rows if getattr(row.verdict, basis) is Verdict.FAIL]
        if not failing:
            return
        yield f"{len(failing)} of {wording.counted(len(rows), 'result set')}", f"FAIL={basis}"
        if not self.is_round:
            return
        owners = Counter(_text(row.submitter) for row in failing)
        for name, number in owners.most_common(_MOST_FAILING):
            yield f"{number} of {name}", f"Submitter={parameter(name)}&FAIL={basis}"

    @property
    def title(self) -> str:
        """The title of the window: the verdicts, except for a round."""
        if self.is_round:
            return f"{self.name}: results"
        verdicts = [wording.VERDICTS[verdict] for _, verdict, *_ in self.verdicts]
        return f"{self.name}: {' / '.join(verdicts)}"

    @property
    def to_do(self) -> list[FindingGroup]:
        """The most important groups of errors and warnings of a submission, none of a round."""
        if self.is_round:
            return []
        groups = []
        for group in self.finding_groups:
            first = group.kind.first
            if not first.waiver and first.severity is not Severity.NOTE:
                groups.append(group)
        return groups[:_MOST_TO_DO]

    def without_runs(self) -> Self:
        """Return the content without the runs of its report and sections, for an index."""
        content = copy(self)
        content.report = replace(self.report, runs=())
        content.sections = []
        for section in self.sections:
            content.sections.append(replace(section, drawn=replace(section.drawn, runs=())))
        content.benchmarks = list(content._benchmarks())
        return content

    def cells(self, section: ResultSection) -> list[tuple[ResultColumn, Span]]:
        """Return the cells of a result set in the table, by column."""
        return list(zip(self.columns, Table(self.columns).spans(section), strict=True))


def _finding_groups(report: Report, lines: Mapping[tuple[str, int], str]) -> Iterator[FindingGroup]:
    """Yield all findings of a report by code, as in the terminal; ``lines`` as in ``excerpts``."""
    submitters = Submitters(report)
    number = 0
    for titled_kinds in by_heading(folded_kinds(report.findings)):
        for kind in titled_kinds.rows:
            members = []
            for finding in kind.findings:
                members += [finding, *kind.followers.get(finding.id, ())]
            shown = []
            for finding in members:
                line = lines.get((finding.path, finding.line or 0))
                shown.append(ShownFinding(f"f{number}", finding, line))
                number += 1
            about = subjects_in_words(kind, submitters)
            yield FindingGroup(titled_kinds.title, kind, about, tuple(shown))


def _sort_key(section: ResultSection) -> tuple[str, str, str, float, tuple[str, ...]]:
    """Return what orders result sets: the fastest of each round, benchmark and division first."""
    row = section.row
    names = (row.submitter or "", row.system or "", row.id or "")
    score = math.inf
    if row.score_minutes is not None:
        score = row.score_minutes
    return row.round or "", row.benchmark, section.division, score, names


def amount(value: float | None) -> str:
    """Return a number of epochs or samples as text, however large."""
    if value is None:
        return wording.NOTHING
    try:
        return f"{value:,.10g}"
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
    """Return a standing: ``3 of 12 Preview in 2.0 on 16 accelerators, 1 of 2 with Bow IPU``."""
    count = wording.counted(standing.accelerators, "accelerator")
    rank = f"{_rank(standing.overall)} {standing.category}".rstrip()
    text = f"{rank} in {standing.round} on {count}"
    if standing.of_model is None:
        return text
    return f"{text}, {_rank(standing.of_model)} with {standing.accelerator_model}"


def _rank(rank: Rank) -> str:
    return f"{rank.rank} of {rank.of}"


def _text(value: str | None) -> str:
    return value or wording.NOTHING


def _whole(value: float | None) -> str:
    if value is None:
        return wording.NOTHING
    return f"{value:,.0f}"


def _kilo(value: float | None) -> str:
    if value is None:
        return wording.NOTHING
    return _whole(value / 1000)


def _part(name: str, show: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return how to show an attribute of a value that may be missing."""

    def part(whole: Any) -> str:
        if not whole:
            return wording.NOTHING
        return show(getattr(whole, name))

    return part


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
    _column("Minutes", "score", str, "n score"),
    _column("Round", "row.round", filters=True),
    _column("Official", "row.verdict.official", wording.VERDICTS.__getitem__),
    _column("Rules", "row.verdict.rules", wording.VERDICTS.__getitem__),
    _column("Published rank", "standing", _part("overall", _rank), may_lack=True),
    _column("To the next", "gap", may_lack=True),
    _column("Submitter", "row.submitter", kind="name", filters=True),
    _column("System", "row.system", kind="name"),
    _column("Accelerator", "accelerator", kind="name", may_lack=True, filters=True),
    _column("Availability", "availability", may_lack=True, filters=True),
    _column("Nodes", "system", _part("nodes", _whole), "n", may_lack=True),
    _column("Batch size", "settings", _batch_size, "n", may_lack=True),
    _column("Energy", "row.energy_joules", _kilo, "n", unit="kJ", may_lack=True),
    _column("Price", "price", _part("usd", _whole), "n", unit="USD", may_lack=True),
    _column("RCP margin", "row", wording.rcp, "one"),
    _column("Division", "row.division", filters=True),
    _column("Summarizer", "official", str, "n"),
    _column("Runs", "row", wording.runs, "n"),
)


_KEPT = ("Benchmark", "Accelerators", "Minutes", "Official", "Rules", "Runs")


def columns(sections: Sequence[ResultSection]) -> tuple[ResultColumn, ...]:
    """Return the columns of a table; results of one round do not have it in a column."""
    rounds = {section.row.round for section in sections}
    values = _values(COLUMNS, sections)
    used = []
    for column in COLUMNS:
        if column.may_lack and not values[column.heading]:
            continue
        if column.title == "Round" and len(rounds) <= 1:
            continue
        used.append(column)
    return tuple(used)


def constants(columns: Sequence[ResultColumn], sections: Sequence[ResultSection]) -> dict[str, str]:
    """Return the values that all of several results have in common, by column; not verdicts."""
    if len(sections) <= 1:
        return {}
    table = Table(columns)
    rows = [[text for text, _ in table.spans(section)] for section in sections]
    shared = {}
    for column, *texts in zip(columns, *rows, strict=True):
        if len(set(texts)) == 1 and column.title not in _KEPT:
            shared[column.heading] = texts[0]
    return shared


def choices(
    columns: Sequence[ResultColumn], sections: Sequence[ResultSection]
) -> dict[str, list[str]]:
    """Return the values by which results can be filtered, by column."""
    values = _values([column for column in columns if column.filters], sections)
    return {name: sorted(texts, key=_natural) for name, texts in values.items() if len(texts) > 1}


def _values(
    columns: Sequence[ResultColumn], sections: Sequence[ResultSection]
) -> dict[str, set[str]]:
    """Return the texts of the cells of each column, without those that are missing."""
    values: dict[str, set[str]] = {column.heading: set() for column in columns}
    table = Table(columns)
    for section in sections:
        for column, (text, _) in zip(columns, table.spans(section), strict=True):
            if text != wording.NOTHING:
                values[column.heading].add(text)
    return values


def _natural(text: str) -> tuple[int, str]:
    digits = text.replace(",", "")
    number = -1
    if digits.isdecimal() and len(digits) < 20:  # noqa: PLR2004
        number = int(digits)
    return (number, text)


# ---- the lines of findings ----------------------------------------------------------------


def excerpts(checked: Checked, findings: Iterable[Finding]) -> dict[tuple[str, int], str]:
    """Return the raw lines of findings by path and line, as far as they can be read.

    Raises:
        UserError: an input is in a store.
    """
    places = checked.places
    for place in places.values():
        if place.source.stored:
            raise UserError(f"{place.path}: is in an object store; expected a path on this machine")
    located = by_key(
        (finding.path, finding.line)
        for finding in findings
        if finding.line and finding.path in places
    )
    texts: dict[tuple[str, int], str] = {}
    for path, lines in located.items():
        with suppress(OSError):
            raw = raw_lines(places[path].source, set(lines), EXCERPT)
            for line, text in raw.items():
                texts[path, line] = text
    return texts
