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
from itertools import groupby, starmap
from math import isfinite, log
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import as_published, batch_size_of, category
from mlperf_pkg.checks.names import plain_name, words_of
from mlperf_pkg.commands.charts.chart import rounded
from mlperf_pkg.commands.page.html import columns, compact
from mlperf_pkg.commands.page.template import file, filled, packed, raw
from mlperf_pkg.published.model import PublishedSet, comparable, known_division
from mlperf_pkg.published.results import PublishedResults
from mlperf_pkg.render.table import by_key
from mlperf_pkg.rulebook import explain
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import load_benchmark, submission_date
from mlperf_pkg.rulebook.model import version_of
from mlperf_pkg.rulebook.rounds import TRAINING, first_name

MAX_BYTES = 300_000

_TITLE = "MLPerf Training and HPC: all rounds"
_WIDTH, _HEIGHT = 160, 44  # of a small chart, in pixels
_NO_ACCELERATOR = "processors alone"
_POWER_LIMIT = re.compile(r" ?\(\d+ ?W\)")
_FAMILY = re.compile(r"(\S+) .+\((.+)\)")
EIGHT = 8  # accelerators: a usual node, on which systems are compared
_DAYS = 365.25
_DOUBLING = 2.0  # years, in which Moore's law doubles speed


class Entry(Struct, frozen=True):
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
        folder = "own" if self.is_new else f"{self.row.usage}_results_v{self.row.round}"
        return f"#r={quote(f'{folder}/{self.row.path}')}"

    @property
    def minutes(self) -> float:
        """The score, which must exist."""
        return self.row.score_minutes or 0.0

    @property
    def hardware(self) -> str:
        """The number and the name of the accelerators."""
        number = self.row.accelerators
        return f"{number:,} \u00d7 {self.accelerator}" if number else self.accelerator

    @property
    def year(self) -> float:
        """The day of submission of its round, in years."""
        return year_of(self.row.usage, self.row.round)

    @property
    def is_ranked(self) -> bool:
        """Whether it takes part in trends: Closed, scored, not of weak scaling, with rules."""
        minutes = self.row.score_minutes
        return (
            self.row.usage in usages()
            and self.row.round in rounds(self.row.usage)
            and known_division(self.row.division) == "closed"
            and minutes is not None
            and isfinite(minutes)
            and minutes > 0
            and self.row.scaling != "weak"
        )


class Series(Struct, frozen=True):
    """The fastest entry of each round, by round, of what ``name`` says."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def best(self) -> Entry:
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
        return float(2 ** ((self.best.year - self.entries[0].year) / _DOUBLING))


class Span(Struct, frozen=True):
    """The entries of a benchmark in rounds with the same target, which are comparable.

    The ``new`` ones of the user compete with nobody.
    """

    target: str
    entries: tuple[Entry, ...]
    new: tuple[Entry, ...] = ()

    @property
    def rounds(self) -> list[str]:
        """Its rounds, the oldest first."""
        return list(dict.fromkeys(entry.row.round for entry in self.entries))

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
        """The same number of the same accelerators in several rounds, most rounds first."""
        groups = by_key((one.hardware, one) for one in self.entries if one.row.accelerators)

        def key(series: Series) -> tuple[int, bool, str]:
            first = series.entries[0].row
            return -len(series.entries), first.accelerators != EIGHT, series.name

        return sorted(filter(attrgetter("is_line"), starmap(_fastest, groups.items())), key=key)


class Trend(Struct, frozen=True):
    """A benchmark over all rounds; ``names`` are those that it had, the latest last."""

    id: str
    usage: str
    names: tuple[str, ...]
    spans: tuple[Span, ...]

    @property
    def title(self) -> str:
        """The benchmark as shown, with its earlier names."""
        earlier = f" ({', '.join(self.names[:-1])})" if len(self.names) > 1 else ""
        return f"{self.names[-1]}{earlier}{'' if self.usage == TRAINING else ', HPC'}"

    @property
    def rounds(self) -> list[str]:
        """The rounds that have a result of it, the oldest first."""
        return [name for span in self.spans for name in span.rounds]

    @property
    def latest(self) -> Span:
        """The rounds with the latest target."""
        return self.spans[-1]

    @property
    def newest(self) -> int:
        """The number of results in its last round."""
        return sum(entry.row.round == self.rounds[-1] for entry in self.latest.entries)


class History(Struct, frozen=True):
    """All entries in the order of the table, and the trends of all benchmarks."""

    entries: tuple[Entry, ...]
    trends: tuple[Trend, ...]
    source: str

    @property
    def rounds(self) -> Mapping[str, list[str]]:
        """The published rounds of each usage, the oldest first."""
        published = {(e.row.usage, e.row.round) for e in self.entries if not e.is_new}
        return by_key(
            sorted(published, key=lambda pair: (pair[0] != TRAINING, *version_of(pair[1])))
        )

    @property
    def own(self) -> list[Entry]:
        """The result sets of the user."""
        return [entry for entry in self.entries if entry.own]

    @property
    def groups(self) -> Iterator[tuple[str, list[Trend]]]:
        """The trends for the overview, with a heading for each group."""
        newest = {usage: names[-1] for usage, names in self.rounds.items()}
        headings = {
            (True, True): f"In Training {newest.get(TRAINING, '')}",
            (True, False): "Benchmarks of earlier rounds",
            (False, True): f"HPC, latest round {newest.get('hpc', '')}",
            (False, False): "HPC, earlier rounds",
        }
        trends = sorted(self.trends, key=lambda trend: -trend.newest)
        by_kind = by_key(
            ((one.usage == TRAINING, one.rounds[-1] == newest[one.usage]), one) for one in trends
        )
        yield from ((headings[kind], by_kind[kind]) for kind in headings if kind in by_kind)


def year_of(usage: str, round_: str) -> float:
    """Return the day of submission of a round in years, such as 2021.37."""
    day = submission_date(usage, round_)
    return day.year + (day - date(day.year, 1, 1)).days / _DAYS


def _fastest(name: str, entries: Iterable[Entry]) -> Series:
    """Return the fastest of the entries of each round, which are in the order of rounds."""
    by_round = by_key((entry.row.round, entry) for entry in entries).values()
    return Series(
        name, tuple(min(group, key=lambda one: (one.minutes, one.row.path)) for group in by_round)
    )


# ---- from the published results -----------------------------------------------------------


def published_history(results: PublishedResults, own: Iterable[PublishedSet] = ()) -> History:
    """Return the history of the published results, with result sets of a user."""
    provenance = results.provenance
    source = f"collected on {provenance.made} from {provenance.source}"
    return history(results.sets, source, own)


def history(
    sets: Iterable[PublishedSet],
    source: str,
    own: Iterable[PublishedSet] = (),
    published: Iterable[PublishedSet] | None = None,
) -> History:
    """Return the history of result sets, with those of a user; ``source`` says where they are from.

    Sets that are ``published`` (None: all) are shown as they were, with a link to their source.
    """
    rows = [row for row in sets if row.runs]
    public = {_identity(row): row for row in (rows if published is None else published)}
    rows = [public.get(_identity(row), row) for row in rows]
    identities = set(map(_identity, rows))
    of_user = {_identity(row): row for row in own if row.runs}
    new = [row for identity, row in of_user.items() if identity not in identities]
    names = _accelerator_names([*rows, *new])
    entries = tuple(
        Entry(
            index=index,
            row=row,
            accelerator=names[_hardware_key(row)],
            own=_identity(row) in of_user,
            is_new=index >= len(rows),
            is_public=_identity(row) in public,
        )
        for index, row in enumerate([*rows, *new])
    )
    return History(entries, tuple(_trends(entries)), source)


def own_sets(checked: Checked) -> Iterator[PublishedSet]:
    """Yield the result sets of a check as if they were published."""
    for result, context in zip(checked.sets, checked.contexts, strict=True):
        size = batch_size_of(context.runs)
        row = as_published(result.row, context.runs, context.system, size)
        # Logs without a description have a division too.
        yield replace(row, division=row.division or result.row.division or "")


def _identity(row: PublishedSet) -> tuple[str | float | None, ...]:
    """Return what a set has in common with itself, checked again in a round or a submission.

    The path depends on what was checked, and the score on the reference points.
    """
    minutes = row.unscaled_minutes
    names = (row.usage, row.round, row.submitter, row.system, row.benchmark, row.scaling)
    return (*names, minutes if minutes is None else comparable(minutes))


def _hardware_key(row: PublishedSet) -> frozenset[str]:
    return words_of(row.accelerator_model) or frozenset({f"cpu {plain_name(row.host_processor)}"})


def _accelerator_names(rows: Iterable[PublishedSet]) -> Mapping[frozenset[str], str]:
    """Return the most frequent spelling of each accelerator, or of processors without one."""
    spellings: dict[frozenset[str], Counter[str]] = {}
    for row in rows:
        has_one = words_of(row.accelerator_model)
        name = row.accelerator_model if has_one else row.host_processor or _NO_ACCELERATOR
        name = _POWER_LIMIT.sub("", name)
        family = _FAMILY.fullmatch(name)  # NVIDIA Blackwell GPU (GB200) is NVIDIA GB200
        if family and words_of(family[2]) == words_of(name):
            name = f"{family[1]} {family[2]}"
        spellings.setdefault(_hardware_key(row), Counter())[name] += 1
    return {
        key: min(counts, key=lambda name: (-counts[name], name))
        for key, counts in spellings.items()
    }


def _trends(entries: Sequence[Entry]) -> Iterator[Trend]:
    ranked = [entry for entry in entries if entry.is_ranked]
    named = ((first_name(e.row.usage, e.row.round, e.row.benchmark), e) for e in ranked)
    by_name = by_key(((entry.row.usage, name), entry) for name, entry in named)
    for (usage, first), group in by_name.items():
        spans = []
        ordered = sorted(group, key=lambda entry: version_of(entry.row.round))
        for target, members in groupby(ordered, key=_target):
            by_kind = by_key((entry.is_new, entry) for entry in members)
            if False in by_kind:
                spans.append(Span(target, tuple(by_kind[False]), tuple(by_kind.get(True, ()))))
        if spans:
            published = (entry for span in spans for entry in span.entries)
            names = tuple(dict.fromkeys(entry.row.benchmark for entry in published))
            identifier = first if usage == TRAINING else f"{usage}-{first}"
            yield Trend(identifier, usage, names, tuple(spans))


def _target(entry: Entry) -> str:
    rules = load_benchmark(entry.row.usage, entry.row.round, entry.row.benchmark)
    return explain.target(rules) if rules else "unknown"


# ---- as HTML ------------------------------------------------------------------------------


def history_html(history: History, home: str = "") -> str:
    """Return the page; ``home`` is as in ``html``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    values = {
        "history": history,
        "title": _TITLE,
        "fastest": fastest,
        "small_chart": small_chart,
        "table": raw(packed(_table(history))),
        "home": home,
    }
    style = file("page.css") + file("history.css")
    scripts = ("charts.js", "plot.js", "history.js")
    return filled("history.html", values, title=_TITLE, style=style, scripts=scripts)


def fastest(trend: Trend, rounds: list[str], *, eight: bool) -> Iterator[tuple[str, Entry | None]]:
    """Yield a cell for each round: its class, ``new`` where the target is new, and the entry."""
    entries = {
        entry.row.round: ("new" if number and not index else "", entry)
        for number, span in enumerate(trend.spans)
        for index, entry in enumerate((span.on_eight if eight else span.overall).entries)
    }
    yield from (entries.get(round_, ("", None)) for round_ in rounds)


def small_chart(trend: Trend) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return the lines of a small chart of minutes over time: the class and the points of each.

    It is logarithmic in minutes.
    """
    shown = [
        (kind, series.entries)
        for span in trend.spans
        for kind, series in (("eight", span.on_eight), ("overall", span.overall))
        if series.entries
    ]
    minutes = [log(entry.minutes) for _, entries in shown for entry in entries]
    years = [entry.year for _, entries in shown for entry in entries]

    def place(entry: Entry) -> tuple[float, float]:
        x = _share(entry.year, min(years), max(years))
        y = _share(log(entry.minutes), max(minutes), min(minutes))
        return round(5 + x * (_WIDTH - 10), 1), round(5 + y * (_HEIGHT - 10), 1)

    return [(kind, list(map(place, entries))) for kind, entries in shown]


def _share(value: float, least: float, most: float) -> float:
    return 0.5 if least == most else (value - least) / (most - least)


def _table(history: History) -> str:
    """Return the rows of all entries, and what draws the benchmarks that have trends, as JSON.

    The rows of a trend have its id and the number of their span: only they can be compared.
    """
    places = {
        entry.index: (trend.id, number)
        for trend in history.trends
        for number, span in enumerate(trend.spans)
        for entry in (*span.entries, *span.new)
    }
    ranked = (entry.row for entry in history.entries if entry.is_ranked)
    rounds = {(row.usage, row.round) for row in ranked}
    rows = [_row(entry, *places.get(entry.index, ("", 0))) for entry in history.entries]
    trends = [trend for _, group in history.groups for trend in group]
    benchmarks = {t.id: {"title": t.title, "usage": t.usage, "names": t.names} for t in trends}
    years = {f"{usage} {name}": rounded(year_of(usage, name), 7) for usage, name in sorted(rounds)}
    return compact({"rows": columns(rows), "benchmarks": benchmarks, "years": years})


def _row(entry: Entry, trend: str, span: int) -> Mapping[str, Any]:
    row = entry.row
    names = ("usage", "round", "submitter", "system", "system_name", "benchmark")
    more = ("accelerators", "nodes", "framework", "runs", "path")
    return {
        "trend": trend,
        "span": span,
        **{name: getattr(row, name) for name in (*names, *more)},
        "scaling": row.scaling or "",
        "division": known_division(row.division),
        "status": category(row.status) or row.status,
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
    return None if value is None else rounded(value, 8)
