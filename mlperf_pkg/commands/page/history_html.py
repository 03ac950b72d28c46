"""The HTML of the page of all rounds, by the same measures as the page of a report (``html``).

What can be read without scripts is plain HTML: the benchmarks, the fastest results of each round,
and the gains of the same accelerators. The table of all results is data: it would be 2 MB as HTML,
and its rows are made when they come into view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import log
from typing import Any

from mlperf_pkg.checks.descriptions import category
from mlperf_pkg.commands.charts.chart import Chart, prepared, rounded
from mlperf_pkg.commands.page.history import Entry, History, Trend
from mlperf_pkg.commands.page.history_charts import against_moore, trend_charts
from mlperf_pkg.commands.page.html import columns, compact, filled, packable, packed, payload
from mlperf_pkg.commands.page.template import file, raw
from mlperf_pkg.published.model import known_division
from mlperf_pkg.rulebook.rounds import TRAINING

MAX_BYTES = 1_500_000

_TITLE = "MLPerf Training and HPC: all rounds"
_STATUSES = {"onprem": "available", "cloud": "cloud", "preview": "preview", "research": "research"}
_WIDTH, _HEIGHT = 160, 44  # of a small chart, in pixels


def history_html(history: History, runtime: str) -> str:
    """Return the page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    charts = _charts(history)
    values = {
        "history": history,
        "title": _TITLE,
        "groups": list(history.groups),
        "fastest": fastest,
        "small_chart": small_chart,
        "count": f"{len(history.entries):,}",
        "charts": raw(packed(payload(charts))),
        "table": raw(packed(_table(history))),
    }
    return filled(
        "history.html",
        values,
        title=_TITLE,
        style=file("page.css") + file("history.css"),
        scripts=("charts.js", "history.js"),
        runtime=runtime,
        charts=charts,
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


def _charts(history: History) -> Mapping[str, list[Chart]]:
    """Return the charts by the id of the element or benchmark that shows them."""
    training = [trend for trend in history.trends if trend.usage == TRAINING]
    charts = {"moore": prepared("moore", "moore", lambda: [packable(against_moore(training), {})])}
    charts |= {
        trend.id: prepared(trend.id, trend.id, partial(_packable, trend))
        for trend in history.trends
    }
    return charts


def _packable(trend: Trend) -> list[Chart]:
    return [packable(chart, {}) for chart in trend_charts(trend)]


def _table(history: History) -> str:
    """Return the rows of all entries, and the benchmarks that have charts, as JSON."""
    return compact(
        {
            "rows": columns([_row(entry) for entry in history.entries]),
            "benchmarks": {
                trend.id: {"title": trend.title, "usage": trend.usage, "names": trend.names}
                for trend in history.trends
            },
        }
    )


def _row(entry: Entry) -> Mapping[str, Any]:
    row = entry.row
    return {
        "usage": row.usage,
        "round": row.round,
        "submitter": row.submitter,
        "system": row.system,
        "system_name": row.system_name,
        "benchmark": row.benchmark,
        "scaling": row.scaling or "",
        "division": known_division(row.division),
        "status": _STATUSES.get(category(row.status) or "", row.status),
        "accelerators": row.accelerators,
        "accelerator": entry.accelerator,
        "nodes": row.nodes,
        "processor": row.host_processor,
        "framework": row.framework,
        "batch": row.global_batch_size,
        "runs": row.runs,
        "minutes": _number(row.score_minutes),
        "unscaled": _number(row.unscaled_minutes),
        "official": _number(row.official_minutes),
        "energy": _number(row.energy_joules),
        "path": row.path,
        "own": entry.own,
        "public": entry.is_public,
    }


def _number(value: float | None) -> float | None:
    return None if value is None else rounded(value, 8)
