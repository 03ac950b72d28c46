"""The HTML of the page of all rounds, by the same measures as the page of a report (``html``).

What can be read without scripts is plain HTML: the benchmarks, the fastest results of each round,
and the gains of the same accelerators. The table of all results is data: it would be 2 MB as HTML,
and its rows are made when they come into view.
"""

from collections.abc import Iterator, Mapping
from math import log
from typing import Any

from mlperf_pkg.checks.descriptions import category
from mlperf_pkg.commands.charts.chart import rounded
from mlperf_pkg.commands.page.history import Entry, History, Trend, year_of
from mlperf_pkg.commands.page.html import columns, compact
from mlperf_pkg.commands.page.template import file, filled, packed, raw
from mlperf_pkg.published.model import known_division

MAX_BYTES = 300_000

_TITLE = "MLPerf Training and HPC: all rounds"
_WIDTH, _HEIGHT = 160, 44  # of a small chart, in pixels


def history_html(history: History, home: str = "") -> str:
    """Return the page; ``home`` is as in ``html``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    values = {
        "history": history,
        "title": _TITLE,
        "groups": list(history.groups),
        "fastest": fastest,
        "small_chart": small_chart,
        "count": f"{len(history.entries):,}",
        "table": raw(packed(_table(history))),
        "home": home,
    }
    return filled(
        "history.html",
        values,
        title=_TITLE,
        style=file("page.css") + file("history.css"),
        scripts=("charts.js", "plot.js", "history.js"),
    )


def fastest(trend: Trend, rounds: list[str], *, eight: bool) -> Iterator[tuple[str, Entry | None]]:
    """Yield a cell for each round: its class, ``new`` where the target is new, and the entry."""
    entries: dict[str, tuple[str, Entry]] = {}
    for number, span in enumerate(trend.spans):
        series = span.on_eight if eight else span.overall
        for index, entry in enumerate(series.entries):
            entries[entry.row.round] = ("new" if number and not index else "", entry)
    for round_ in rounds:
        yield entries.get(round_, ("", None))


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
    return compact(
        {
            "rows": columns(rows),
            "benchmarks": {
                trend.id: {"title": trend.title, "usage": trend.usage, "names": trend.names}
                for _, trends in history.groups
                for trend in trends
            },
            "years": {
                f"{usage} {name}": rounded(year_of(usage, name), 7)
                for usage, name in sorted(rounds)
            },
        }
    )


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
