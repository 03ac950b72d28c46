"""The results of all rounds, published and one's own, by benchmark, and the HTML of their page.

The page is made in the same way as that of a report (``html``). What can be read without
scripts is plain HTML: the benchmarks, the fastest results of each round, and the gains of the same
accelerators. The table of all results is data: it would be 2 MB as HTML, and its rows are made when
they come into view.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from math import isfinite, log
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import as_published, batch_size_of, category
from mlperf_pkg.checks.names import plain_name, words_of
from mlperf_pkg.commands.charts.chart import rounded
from mlperf_pkg.commands.notice import (
    PER_ACCELERATOR,
    ShownResult,
    embargo,
    marked,
    notice,
    published_result,
    score,
)
from mlperf_pkg.commands.page.content import category_name
from mlperf_pkg.commands.page.html import columns, compact
from mlperf_pkg.commands.page.template import file, filled, packed, raw
from mlperf_pkg.published.model import PublishedSet, comparable, known_division
from mlperf_pkg.published.results import PublishedResults
from mlperf_pkg.render.table import by_key
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import submission_date
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING, first_name, version_since

MAX_BYTES = 300_000

_TITLE = "MLPerf Training and HPC: all rounds"
_WIDTH = 160  # of a small chart, in pixels
_HEIGHT = 44
_NO_ACCELERATOR = "processors alone"
_POWER_LIMIT = re.compile(r" ?\(\d+ ?W\)")
_FAMILY = re.compile(r"(\S+) .+\((.+)\)")
EIGHT = 8  # accelerators: a usual node, on which systems are compared
_FIELDS = (
    "usage",
    "round",
    "submitter",
    "system",
    "system_name",
    "benchmark",
    "accelerators",
    "nodes",
    "framework",
    "runs",
    "path",
)
"""Fields of a published set that the table shows as they are."""
_DAYS = 365.25
_GAIN = "times as fast (minutes of the first result divided by minutes of the later result)"
_DOUBLING = 2.0  # years, in which Moore's law doubles speed


class HistoryEntry(Struct, frozen=True):
    """A result set of the page: its ``index`` in the table, and its ``accelerator`` as shown.

    Spellings of one accelerator are shown as the most frequent one. ``own`` is a result set of the
    user, and ``is_new`` if it is not among the others too. A set that ``is_public`` has a link to
    its results repository.
    """

    index: int
    row: PublishedSet
    accelerator: str
    own: bool = False
    is_new: bool = False
    is_public: bool = True

    @property
    def link(self) -> str:
        """The permalink within the page: by the path below the folder of the round's results."""
        folder = f"{self.row.usage}_results_v{self.row.round}"
        if self.is_new:
            folder = "own"
        path = f"{folder}/{self.row.path}"
        # As the JSON of the table spells names of folders that are not UTF-8.
        return f"#r={quote(path, errors='backslashreplace')}"

    @property
    def minutes(self) -> float:
        """The score, which must exist."""
        return self.row.score_minutes or 0.0

    @property
    def score(self) -> str:
        """The score in minutes, with ``unverified`` where it must say so."""
        return score(self.row.score_minutes, is_verified=self.is_public)

    @property
    def result(self) -> ShownResult:
        """What must stand beside it: public results are those of the record."""
        return replace(published_result(self.row), is_verified=self.is_public)

    @property
    def hardware(self) -> str:
        """The number and the name of the accelerators."""
        number = self.row.accelerators
        if not number:
            return self.accelerator
        return f"{number:,} \u00d7 {self.accelerator}"

    @property
    def category(self) -> str:
        """The category, in short; as described if it is none of the rules."""
        return category(self.row.status) or self.row.status

    @property
    def year(self) -> float:
        """The day of submission of its round, in years."""
        return year_of(self.row.usage, self.row.round)

    @property
    def is_ranked(self) -> bool:
        """Whether it takes part in trends: Closed, scored, not of weak scaling, with rules."""
        row = self.row
        if row.usage not in usages() or row.round not in rounds(row.usage):
            return False
        if known_division(row.division) != "closed" or row.scaling == "weak":
            return False
        minutes = row.score_minutes
        return minutes is not None and isfinite(minutes) and minutes > 0


class Series(Struct, frozen=True):
    """The fastest entry of each round, by round, of what ``name`` says."""

    name: str
    entries: tuple[HistoryEntry, ...]

    @property
    def best(self) -> HistoryEntry:
        """The fastest of all rounds, the first of equals."""
        return min(self.entries, key=lambda entry: entry.minutes)

    @property
    def is_line(self) -> bool:
        """Whether it has several rounds."""
        return len(self.entries) > 1

    @property
    def gain(self) -> float:
        """How many times as fast the last entry is as the first."""
        return self.entries[0].minutes / self.entries[-1].minutes

    @property
    def record_gain(self) -> float:
        """How many times as fast the fastest entry is as the first."""
        return self.entries[0].minutes / self.best.minutes

    @property
    def record_moore(self) -> float:
        """The gain in the time from the first entry to the fastest by Moore's law."""
        years = self.best.year - self.entries[0].year
        return float(2 ** (years / _DOUBLING))


class TargetSpan(Struct, frozen=True):
    """The entries of a benchmark in rounds whose results compare: one target, and no change.

    The ``version`` is the first of these rounds, empty if it is the first of all. The ``new`` ones
    of the user compete with nobody.
    """

    version: str
    entries: tuple[HistoryEntry, ...]
    new: tuple[HistoryEntry, ...] = ()

    @property
    def rounds(self) -> list[str]:
        """Its rounds, the oldest first."""
        return list(dict.fromkeys(entry.row.round for entry in self.entries))

    @property
    def categories(self) -> list[str]:
        """The categories of its entries, that with most of them first."""
        return [name for name, _ in Counter(one.category for one in self.entries).most_common()]

    def of(self, name: str) -> "TargetSpan":
        """Return the entries of a category: only these compete."""
        entries = tuple(entry for entry in self.entries if entry.category == name)
        return replace(self, entries=entries)

    @property
    def overall(self) -> Series:
        """The fastest of each round."""
        return _fastest("overall", self.entries)

    @property
    def on_eight(self) -> Series:
        """The fastest of each round on eight accelerators."""
        eight = (entry for entry in self.entries if entry.row.accelerators == EIGHT)
        return _fastest(f"on {EIGHT} accelerators", eight)

    @property
    def gains(self) -> list[Series]:
        """The same number of the same accelerators in several rounds, most rounds first.

        Each is of one category.
        """
        counted = [entry for entry in self.entries if entry.row.accelerators]
        groups = by_key(((entry.hardware, entry.category), entry) for entry in counted)
        lines = []
        for (hardware, name), entries in groups.items():
            series = _fastest(f"{hardware}, {category_name(name)}", entries)
            if series.is_line:
                lines.append(series)

        def key(series: Series) -> tuple[int, bool, str]:
            first = series.entries[0].row
            return -len(series.entries), first.accelerators != EIGHT, series.name

        return sorted(lines, key=key)


class Trend(Struct, frozen=True):
    """A benchmark over all rounds; ``names`` are those that it had, the latest last."""

    id: str
    usage: str
    names: tuple[str, ...]
    spans: tuple[TargetSpan, ...]

    @property
    def title(self) -> str:
        """The benchmark as shown, with its earlier names."""
        *earlier, title = self.names
        if earlier:
            title += f" ({', '.join(earlier)})"
        if self.usage != TRAINING:
            title += ", HPC"
        return title

    @property
    def rounds(self) -> list[str]:
        """The rounds that have a result of it, the oldest first."""
        return [name for span in self.spans for name in span.rounds]

    @property
    def categories(self) -> list[str]:
        """The categories of its results, those of the latest target first."""
        names: dict[str, None] = {}
        for span in reversed(self.spans):
            names |= dict.fromkeys(span.categories)
        return list(names)

    def of(self, name: str) -> "Trend":
        """Return the trend of a category."""
        return replace(self, spans=tuple(span.of(name) for span in self.spans))

    @property
    def latest(self) -> TargetSpan:
        """The rounds with the latest target."""
        return self.spans[-1]

    @property
    def newest(self) -> int:
        """The number of results in its last round."""
        last = self.rounds[-1]
        return sum(entry.row.round == last for entry in self.latest.entries)


class ResultHistory(Struct, frozen=True):
    """All entries in the order of the table, and the trends of all benchmarks."""

    entries: tuple[HistoryEntry, ...]
    trends: tuple[Trend, ...]
    source: str

    @property
    def rounds(self) -> Mapping[str, list[str]]:
        """The published rounds of each usage, the oldest first."""
        published = {
            (entry.row.usage, entry.row.round) for entry in self.entries if not entry.is_new
        }
        # Training comes first.
        ordered = sorted(published, key=lambda pair: (pair[0] != TRAINING, *version_of(pair[1])))
        return by_key(ordered)

    @property
    def own(self) -> list[HistoryEntry]:
        """The result sets of the user."""
        return [entry for entry in self.entries if entry.own]

    @property
    def groups(self) -> Iterator[tuple[str, list[Trend]]]:
        """The trends for the overview, with a heading for each group."""
        newest = {usage: names[-1] for usage, names in self.rounds.items()}

        def kind(trend: Trend) -> tuple[bool, bool]:
            return trend.usage != TRAINING, trend.rounds[-1] != newest[trend.usage]

        trends = sorted(self.trends, key=lambda trend: (kind(trend), -trend.newest))
        for (is_hpc, is_earlier), members in groupby(trends, key=kind):
            if is_hpc and is_earlier:
                heading = "HPC, earlier rounds"
            elif is_hpc:
                heading = f"HPC, latest round {newest['hpc']}"
            elif is_earlier:
                heading = "Benchmarks of earlier rounds"
            else:
                heading = f"In Training {newest[TRAINING]}"
            yield heading, list(members)


def year_of(usage: str, round_: str) -> float:
    """Return the day of submission of a round in years, such as 2021.37."""
    day = submission_date(usage, round_)
    since_new_year = day - date(day.year, 1, 1)
    return day.year + since_new_year.days / _DAYS


def _fastest(name: str, entries: Iterable[HistoryEntry]) -> Series:
    """Return the fastest of the entries of each round, which are in the order of rounds."""
    by_round = by_key((entry.row.round, entry) for entry in entries)
    best = []
    for round_entries in by_round.values():
        best.append(min(round_entries, key=lambda entry: (entry.minutes, entry.row.path)))
    return Series(name, tuple(best))


# ---- from the published results -----------------------------------------------------------


def published_history(results: PublishedResults, own: Iterable[PublishedSet] = ()) -> ResultHistory:
    """Return the history of the published results, with result sets of a user."""
    provenance = results.provenance
    source = f"collected on {provenance.made} from {provenance.source}"
    return history(results.sets, source, own)


def history(
    sets: Iterable[PublishedSet],
    source: str,
    own: Iterable[PublishedSet] = (),
    published: Iterable[PublishedSet] | None = None,
) -> ResultHistory:
    """Return the history of result sets, with those of a user; ``source`` says where they are from.

    Sets that are ``published`` (None: all) are shown as they were, with a link to their source.
    """
    rows = [row for row in sets if row.runs]
    if published is None:
        published = rows
    public = {_identity(row): row for row in published}
    shown = [public.get(_identity(row), row) for row in rows]
    others = {_identity(row) for row in shown}
    of_user = {_identity(row): row for row in own if row.runs}
    shown += [row for identity, row in of_user.items() if identity not in others]
    names = _accelerator_names(shown)
    entries = []
    for index, row in enumerate(shown):
        identity = _identity(row)
        entry = HistoryEntry(
            index=index,
            row=row,
            accelerator=names[_hardware_key(row)],
            own=identity in of_user,
            is_new=index >= len(rows),
            is_public=identity in public,
        )
        entries.append(entry)
    return ResultHistory(tuple(entries), tuple(_trends(entries)), source)


def own_sets(checked: Checked) -> Iterator[PublishedSet]:
    """Yield the result sets of a check as if they were published."""
    for result, context in zip(checked.sets, checked.contexts, strict=True):
        size = batch_size_of(context.runs)
        row = as_published(result.row, context.runs, context.system, size)
        # Logs without a description have a division too.
        division = row.division or result.row.division or ""
        yield replace(row, division=division)


def _identity(row: PublishedSet) -> tuple[str | float | None, ...]:
    """Return what a set has in common with itself, checked again in a round or a submission.

    The path depends on what was checked, and the score on whether it is published.
    """
    minutes = row.unscaled_minutes
    if minutes is not None:
        minutes = comparable(minutes)
    return row.usage, row.round, row.submitter, row.system, row.benchmark, row.scaling, minutes


def _hardware_key(row: PublishedSet) -> frozenset[str]:
    words = words_of(row.accelerator_model)
    if words:
        return words
    return frozenset({f"cpu {plain_name(row.host_processor)}"})


def _accelerator_names(rows: Iterable[PublishedSet]) -> Mapping[frozenset[str], str]:
    """Return the most frequent spelling of each accelerator, or of processors without one."""
    spellings: dict[frozenset[str], Counter[str]] = {}
    for row in rows:
        names = spellings.setdefault(_hardware_key(row), Counter())
        names[_plain_hardware(row)] += 1
    most_frequent = {}
    for key, names in spellings.items():
        by_frequency = sorted(names, key=lambda name: (-names[name], name))
        most_frequent[key] = by_frequency[0]
    return most_frequent


def _plain_hardware(row: PublishedSet) -> str:
    """Return the name of the accelerator or processor of a set, without its power limit."""
    name = row.accelerator_model
    if not words_of(name):
        name = row.host_processor or _NO_ACCELERATOR
    name = _POWER_LIMIT.sub("", name)
    family = _FAMILY.fullmatch(name)  # NVIDIA Blackwell GPU (GB200) is NVIDIA GB200
    if family and words_of(family[2]) == words_of(name):
        name = f"{family[1]} {family[2]}"
    return name


def _trends(entries: Sequence[HistoryEntry]) -> Iterator[Trend]:
    by_name: dict[tuple[str, str], list[HistoryEntry]] = {}
    for entry in entries:
        if entry.is_ranked:
            row = entry.row
            first = first_name(row.usage, row.round, row.benchmark)
            by_name.setdefault((row.usage, first), []).append(entry)
    for (usage, first), benchmark_entries in by_name.items():
        spans = tuple(_spans(benchmark_entries))
        names: dict[str, None] = {}
        for span in spans:
            names |= dict.fromkeys(entry.row.benchmark for entry in span.entries)
        identifier = first
        if usage != TRAINING:
            identifier = f"{usage}-{first}"
        if spans:
            yield Trend(identifier, usage, tuple(names), spans)


def _spans(entries: Iterable[HistoryEntry]) -> Iterator[TargetSpan]:
    """Yield the spans of a benchmark; those without a published entry are left out."""
    ordered = sorted(entries, key=lambda entry: version_of(entry.row.round))
    for version, members in groupby(ordered, key=_version):
        published = []
        new = []
        for entry in members:
            if entry.is_new:
                new.append(entry)
            else:
                published.append(entry)
        if published:
            yield TargetSpan(version, tuple(published), tuple(new))


def _version(entry: HistoryEntry) -> str:
    return version_since(entry.row.usage, entry.row.round, entry.row.benchmark)


# ---- as HTML ------------------------------------------------------------------------------


def history_html(history: ResultHistory, home: str = "") -> str:
    """Return the page; ``home`` is as in ``html``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    results = [entry.result for entry in history.entries]
    values = {
        "history": history,
        "title": marked(_TITLE),
        "embargo": embargo(results),
        "notice": notice(results, [PER_ACCELERATOR, _GAIN]),
        "category_name": category_name,
        "fastest": fastest,
        "small_chart": small_chart,
        "table": raw(packed([_table(history).encode()])),
        "home": home,
    }
    style = file("page.css") + file("history.css")
    scripts = ("charts.js", "plot.js", "history.js")
    return "".join(filled("history.html", values, title=_TITLE, style=style, scripts=scripts))


def fastest(
    trend: Trend, rounds: list[str], *, eight: bool
) -> Iterator[tuple[str, HistoryEntry | None]]:
    """Yield a cell for each round: its class, ``new`` where the target is new, and the entry.

    The ``trend`` is that of a category.
    """
    cells: dict[str, tuple[str, HistoryEntry | None]] = {}
    for number, span in enumerate(trend.spans):
        series = span.overall
        if eight:
            series = span.on_eight
        for index, entry in enumerate(series.entries):
            kind = ""
            if number > 0 and index == 0:
                kind = "new"
            cells[entry.row.round] = (kind, entry)
    for round_ in rounds:
        yield cells.get(round_, ("", None))


def small_chart(trend: Trend) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return the lines of a small chart of minutes over time: the class and the points of each.

    It is logarithmic in minutes. The ``trend`` is that of a category.
    """
    lines: list[tuple[str, Series]] = []
    for span in trend.spans:
        lines.append(("eight", span.on_eight))
        lines.append(("overall", span.overall))
    minutes = []
    years = []
    for _, series in lines:
        minutes += [log(entry.minutes) for entry in series.entries]
        years += [entry.year for entry in series.entries]

    def place(entry: HistoryEntry) -> tuple[float, float]:
        x = _share(entry.year, min(years), max(years))
        y = _share(log(entry.minutes), max(minutes), min(minutes))
        return round(5 + x * (_WIDTH - 10), 1), round(5 + y * (_HEIGHT - 10), 1)

    return [(kind, list(map(place, series.entries))) for kind, series in lines if series.entries]


def _share(value: float, least: float, most: float) -> float:
    if least == most:
        return 0.5
    return (value - least) / (most - least)


def _table(history: ResultHistory) -> str:
    """Return the rows of all entries, and what draws the benchmarks that have trends, as JSON.

    The rows of a trend have its id and the number of their span: only they can be compared.
    """
    benchmarks = {}
    for _, trends in history.groups:
        for trend in trends:
            benchmarks[trend.id] = {
                "title": trend.title,
                "usage": trend.usage,
                "names": trend.names,
            }
    ranked = [entry.row for entry in history.entries if entry.is_ranked]
    years = {}
    for usage, round_ in sorted({(row.usage, row.round) for row in ranked}):
        years[f"{usage} {round_}"] = rounded(year_of(usage, round_), 7)
    rows = columns(_rows(history))
    return compact({"rows": rows, "benchmarks": benchmarks, "years": years})


def _rows(history: ResultHistory) -> list[Mapping[str, Any]]:
    spans: dict[int, tuple[str, int]] = {}  # by the index of an entry
    for trend in history.trends:
        for number, span in enumerate(trend.spans):
            for entry in (*span.entries, *span.new):
                spans[entry.index] = (trend.id, number)
    rows = []
    for entry in history.entries:
        trend_id, number = spans.get(entry.index, ("", 0))
        rows.append(_row(entry, trend_id, number))
    return rows


def _row(entry: HistoryEntry, trend: str, span: int) -> Mapping[str, Any]:
    row = entry.row
    return {
        "trend": trend,
        "span": span,
        **{name: getattr(row, name) for name in _FIELDS},
        "scaling": row.scaling or "",
        "division": known_division(row.division),
        "status": entry.category,
        "accelerator": entry.accelerator,
        "processor": row.host_processor,
        "batch": row.global_batch_size,
        "minutes": _number(row.score_minutes),
        "unscaled": _number(row.unscaled_minutes),
        "official": _number(row.official_minutes),
        "energy": _number(row.energy_joules),
        "own": "yours" if entry.own else "others",
        "new": entry.is_new,
        "public": entry.is_public,
    }


def _number(value: float | None) -> float | None:
    if value is None:
        return None
    return rounded(value, 8)
