"""The HTML of a page: one file that makes no request, in which text from logs is never markup.

Three measures ensure this. The template escapes every value, and spells out characters that do not
print. The data of the charts, which contain text from logs, are compressed and in Base64: letters,
digits and ``+/=``. And a content security policy allows the two scripts of the page by their hashes
and nothing else: no other script, no ``eval``, no request.

The page contains Vega-Lite instead of pictures: four charts of 200 result sets are 10 MB as SVG,
but a few hundred kB as data and a few dozen specs. The library is 900 kB of text, 407 kB as gzip in
Base64. The page unpacks it (``DecompressionStream``) when the first chart comes into view, into a
script element that the policy allows by the hash of its text. So neither ``blob:`` nor
``unsafe-eval`` is needed, and Vega's own interpreter runs expressions. The tables are plain HTML,
visible at once and without a script.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.commands.charts.benchmarks import convergence
from mlperf_pkg.commands.charts.chart import CONFIG, Chart, Rows, prepared
from mlperf_pkg.commands.charts.drawing import set_charts
from mlperf_pkg.commands.page.content import Content, amount
from mlperf_pkg.commands.page.template import file, filled, packed, short
from mlperf_pkg.render import findings
from mlperf_pkg.results.report import as_json

MAX_BYTES = 2_000_000
_DETAILS = ((150, 40), (50, 15), (15, 5))  # points and spans of a run, as for ``set_charts``
_DATA = 'id="charts">'  # which no value contains: their quotation marks are escaped


def html(content: Content, runtime: str, home: str = "") -> str:
    """Return the page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    ``home`` is the index of the site that it is part of, empty if there is none. If the page is
    larger than ``MAX_BYTES``, charts show less of each run, and say so.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    charts = _charts(content, *_DETAILS[0])
    text = filled(
        "page.html",
        {
            "page": content,
            "amount": amount,
            "headings": findings,
            "home": home,
            "missing": {name: [c for c in shown if c.missing] for name, shown in charts.items()},
        },
        title=content.title,
        style=file("page.css") + _labels(content),
        scripts=("charts.js", "plot.js", "table.js", "drawing.js", "page.js"),
        runtime=runtime,
    )
    room = MAX_BYTES - len(text.encode())
    data = packed(payload(charts))
    for detail in _DETAILS[1:] if room > 0 else _DETAILS[-1:]:
        if len(data) > room:
            data = packed(payload(_charts(content, *detail)))
    return text.replace(_DATA, f"{_DATA}{data}", 1)


def _labels(content: Content) -> str:
    """Return the style that names the values of a result on a narrow screen, where it is a card."""
    labels = (
        f'#table td:nth-child({number})::before{{content:"{column.heading}"}}'
        for number, column in enumerate(content.columns, 1)
    )
    return f"@media screen and (max-width: 40rem) {{{''.join(labels)}}}"


def _charts(content: Content, points: int, spans: int) -> Mapping[str, Sequence[Chart]]:
    """Return the charts by the id of the element that shows them."""
    charts = {}
    for group in content.benchmarks:
        members = [(section.drawn, section.accelerator) for section in group.sections]
        common = partial(convergence, group.title, members, content.looks, points)
        charts[group.id] = _packable(group.id, prepared("convergence", group.id, common))
    for section in content.sections:
        charts[section.id] = _packable(section.id, set_charts(section.drawn, points, spans))
    return charts


def _packable(element: str, charts: Sequence[Chart]) -> list[Chart]:
    """Return the charts of an element in the form of a page, so that their rows are not kept."""
    return [p for one in charts for p in prepared(one.name, element, partial(map, packable, [one]))]


# ---- the data of charts: compressed JSON, with the parts that charts share stored once -----


_MOST_DECIMALS = 8
_EXACT = 2**53 / 10**_MOST_DECIMALS  # numbers below it are exact in units of the last decimal


def packable(chart: Chart) -> Chart:
    """Return a chart with short strings, and with its data as ``columns`` returns them."""
    texts = {"title": short(chart.title), "description": short(chart.description)}
    return replace(chart, **texts, data={name: columns(rows) for name, rows in chart.data.items()})


def payload(charts: Mapping[str, Sequence[Chart]]) -> str:
    """Return ``packable`` charts as JSON, by the id of the element that shows them.

    ``{"config", "specs": [...], "data": [...], "charts": {id: [[spec, title, description,
    {name: data}], ...]}}``, in which specs and data are indexes, and data are as ``columns``
    returns them.
    """
    specs: dict[str, tuple[int, Any]] = {}
    data: dict[str, tuple[int, Any]] = {}
    packed_charts: dict[str, list[Any]] = {element: [] for element in charts}
    for element, of_element in charts.items():
        for chart in (chart for chart in of_element if not chart.missing):
            tables = {name: _index(data, table) for name, table in chart.data.items()}
            parts = [_index(specs, chart.spec), chart.title, chart.description, tables]
            packed_charts[element].append(parts)
    return compact(
        {
            "config": CONFIG,
            "specs": [spec for _, spec in specs.values()],
            "data": [table for _, table in data.values()],
            "charts": packed_charts,
        }
    )


def _index(table: dict[str, tuple[int, Any]], value: Any) -> int:
    """Return the index of a value in a table of different values, in which it is then."""
    return table.setdefault(json.dumps(value, sort_keys=True), (len(table), value))[0]


def compact(document: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(as_json(document), separators=(",", ":"), allow_nan=False)


def columns(rows: Rows) -> dict[str, list[Any]]:
    """Return rows as columns, which compress to half the size of the rows.

    Numbers become ``["n", decimals, first, difference, ...]`` in units of the last decimal, and
    everything else ``["v", value, repetitions, ...]``.
    """
    fields = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in fields}


def _column(values: Sequence[Any]) -> list[Any]:
    if all(type(value) in (int, float) and abs(value) < _EXACT for value in values):
        decimals = max(map(_decimals, values))
        units = [round(value * 10**decimals) for value in values]
        return ["n", decimals, *(after - before for before, after in pairwise([0, *units]))]
    values = [short(value) if isinstance(value, str) else value for value in values]
    runs = ((value, len(list(alike))) for value, alike in groupby(values))
    return ["v", *(part for run in runs for part in run)]


def _decimals(value: float) -> int:
    """Return the number of decimals of a number, up to as many as a chart can show."""
    text = repr(value)
    if "e" in text:
        return next((n for n in range(_MOST_DECIMALS) if round(value, n) == value), _MOST_DECIMALS)
    return min(_MOST_DECIMALS, len(text.partition(".")[2].rstrip("0")))
