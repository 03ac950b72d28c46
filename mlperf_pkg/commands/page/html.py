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
from itertools import chain, groupby
from operator import sub
from sys import intern
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.charts.benchmarks import convergence
from mlperf_pkg.commands.charts.chart import CONFIG, Chart, Rows, prepared
from mlperf_pkg.commands.charts.drawing import set_charts
from mlperf_pkg.commands.page.content import PageContent, amount
from mlperf_pkg.commands.page.template import file, filled, packed, short
from mlperf_pkg.render import findings
from mlperf_pkg.results.report import as_json

MAX_BYTES = 2_000_000
_DETAILS = ((150, 40), (50, 15), (15, 5))  # points and spans of a run, as for ``set_charts``
_DATA = 'id="charts">'  # which no value contains: their quotation marks are escaped


class PageChart(Struct, frozen=True):
    """A chart of a page: its ``spec`` and its ``data``, as ``columns`` returns them, are JSON.

    One that could not be prepared is empty, and ``missing`` says why.
    """

    name: str
    title: str
    description: str
    spec: str
    data: Mapping[str, str]
    missing: str


def html(content: PageContent, runtime: str, home: str = "") -> str:
    """Return the page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    ``home`` is the index of the site that it is part of, empty if there is none. If the page is
    larger than ``MAX_BYTES``, charts show less of each run, and say so.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    data, missing = _data(content, *_DETAILS[0])
    values = {
        "page": content,
        "amount": amount,
        "headings": findings,
        "home": home,
        "missing": missing,
    }
    page = filled(
        "page.html",
        values,
        title=content.title,
        style=file("page.css") + _labels(content),
        scripts=("charts.js", "plot.js", "table.js", "drawing.js", "page.js"),
        runtime=runtime,
    )
    data = _fitting(content, data, MAX_BYTES - len(page.encode()))
    return page.replace(_DATA, f"{_DATA}{data}", 1)


def _fitting(content: PageContent, data: str, room: int) -> str:
    """Return ``data``, or that of charts with less detail that fit into ``room`` bytes.

    If none fit, or the page is too large without them, they are those with the least detail: these
    are prepared first, as no others fit on the page of many rounds.
    """
    if len(data) <= room:
        return data
    least, _ = _data(content, *_DETAILS[2])
    if len(least) > room:
        return least
    less, _ = _data(content, *_DETAILS[1])
    return less if len(less) <= room else least


def _data(content: PageContent, points: int, spans: int) -> tuple[str, dict[str, list[PageChart]]]:
    """Return the packed data of the charts, and those that are missing, by element."""
    charts = _charts(content, points, spans)
    missing: dict[str, list[PageChart]] = {}
    for element, element_charts in charts.items():
        missing[element] = [chart for chart in element_charts if chart.missing]
    return packed(payload(charts)), missing


def _labels(content: PageContent) -> str:
    """Return the style that names the values of a result on a narrow screen, where it is a card."""
    style = "@media screen and (max-width: 40rem) {"
    for number, column in enumerate(content.columns, 1):
        style += f'#table td:nth-child({number})::before{{content:"{column.heading}"}}'
    return f"{style}}}"


def _charts(content: PageContent, points: int, spans: int) -> Mapping[str, Sequence[PageChart]]:
    """Return the charts by the id of the element that shows them."""
    charts = {}
    for group in content.benchmarks:
        members = [(section.drawn, section.accelerator) for section in group.sections]
        common = partial(convergence, group.title, members, content.looks, points)
        convergences = prepared("convergence", group.id, common)
        charts[group.id] = _packable(group.id, convergences)
    for section in content.sections:
        charts[section.id] = _packable(section.id, set_charts(section.drawn, points, spans))
    return charts


def _packable(element: str, charts: Sequence[Chart]) -> list[PageChart]:
    """Return the charts of an element in the form of a page, so that their rows are not kept."""
    small: list[PageChart] = []
    for chart in charts:
        small += prepared(chart.name, element, partial(map, packable, [chart]))
    return small


# ---- the data of charts: compressed JSON, with the parts that charts share stored once -----


_NUMBERS = frozenset({int, float})
_MOST_DECIMALS = 8
_EXACT = 2**53 / 10**_MOST_DECIMALS  # numbers below it are exact in units of the last decimal


def packable(chart: Chart) -> PageChart:
    """Return a chart with short strings, in the form of a page.

    Charts share equal specs and data.
    """
    data = {name: intern(compact(columns(rows))) for name, rows in chart.data.items()}
    title = short(chart.title)
    description = short(chart.description)
    spec = intern(compact(chart.spec))
    return PageChart(chart.name, title, description, spec, data, chart.missing)


def payload(charts: Mapping[str, Sequence[PageChart]]) -> str:
    """Return ``packable`` charts as JSON, by the id of the element that shows them.

    ``{"config", "specs": [...], "data": [...], "charts": {id: [[spec, title, description,
    {name: data}], ...]}}``, in which specs and data are indexes, and data are as ``columns``
    returns them.
    """
    specs: dict[str, int] = {}
    data: dict[str, int] = {}
    indexes: dict[str, list[Any]] = {}
    for element, element_charts in charts.items():
        indexes[element] = []
        for chart in element_charts:
            if chart.missing:
                continue
            tables = {n: data.setdefault(text, len(data)) for n, text in chart.data.items()}
            spec = specs.setdefault(chart.spec, len(specs))
            indexes[element].append([spec, chart.title, chart.description, tables])
    parts = [f'"config":{compact(CONFIG)}', f'"specs":[{",".join(specs)}]']
    parts += [f'"data":[{",".join(data)}]', f'"charts":{compact(indexes)}']
    return f"{{{','.join(parts)}}}"


def compact(document: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(as_json(document), separators=(",", ":"), allow_nan=False)


def columns(rows: Rows) -> dict[str, list[Any]]:
    """Return rows as columns, which compress to half the size of the rows.

    Numbers become ``["n", decimals, first, difference, ...]`` in units of the last decimal, and
    everything else ``["v", value, repetitions, ...]``.
    """
    names = dict.fromkeys(chain.from_iterable(rows))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: Sequence[Any]) -> list[Any]:
    if _NUMBERS.issuperset(map(type, values)) and all(abs(value) < _EXACT for value in values):
        return _numbers(values)
    shown = [short(value) if isinstance(value, str) else value for value in values]
    column: list[Any] = ["v"]
    for value, repeated in groupby(shown):
        column += [value, len(list(repeated))]
    return column


def _numbers(values: Sequence[float]) -> list[Any]:
    decimals = max(map(_decimals, set(values)))
    scale = 10**decimals
    units = [round(value * scale) for value in values]
    return ["n", decimals, *map(sub, units, [0, *units])]


def _decimals(value: float) -> int:
    """Return the number of decimals of a number, up to as many as a chart can show."""
    text = repr(value)
    if "e" not in text:
        decimals = text.partition(".")[2].rstrip("0")
        return min(_MOST_DECIMALS, len(decimals))
    for number in range(_MOST_DECIMALS):
        if round(value, number) == value:
            return number
    return _MOST_DECIMALS
