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
from itertools import groupby
from typing import Any

from msgspec.structs import replace

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


def html(content: PageContent, runtime: str, home: str = "") -> str:
    """Return the page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    ``home`` is the index of the site that it is part of, empty if there is none. If the page is
    larger than ``MAX_BYTES``, charts show less of each run, and say so.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    points, spans = _DETAILS[0]
    charts = _charts(content, points, spans)
    missing = {}
    for element, element_charts in charts.items():
        missing[element] = [chart for chart in element_charts if chart.missing]
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
    data = _fitting(content, charts, MAX_BYTES - len(page.encode()))
    return page.replace(_DATA, f"{_DATA}{data}", 1)


def _fitting(content: PageContent, charts: Mapping[str, Sequence[Chart]], room: int) -> str:
    """Return the data of ``charts``, or of charts with less detail that fit into ``room`` bytes.

    If none fit, or the page is too large without them, they are those with the least detail.
    """
    data = packed(payload(charts))
    details = list(_DETAILS[1:])
    if room <= 0:
        details = [_DETAILS[-1]]
    for points, spans in details:
        if len(data) <= room:
            break
        data = packed(payload(_charts(content, points, spans)))
    return data


def _labels(content: PageContent) -> str:
    """Return the style that names the values of a result on a narrow screen, where it is a card."""
    style = "@media screen and (max-width: 40rem) {"
    for number, column in enumerate(content.columns, 1):
        style += f'#table td:nth-child({number})::before{{content:"{column.heading}"}}'
    return f"{style}}}"


def _charts(content: PageContent, points: int, spans: int) -> Mapping[str, Sequence[Chart]]:
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


def _packable(element: str, charts: Sequence[Chart]) -> list[Chart]:
    """Return the charts of an element in the form of a page, so that their rows are not kept."""
    small: list[Chart] = []
    for chart in charts:
        small += prepared(chart.name, element, partial(map, packable, [chart]))
    return small


# ---- the data of charts: compressed JSON, with the parts that charts share stored once -----


_MOST_DECIMALS = 8
_EXACT = 2**53 / 10**_MOST_DECIMALS  # numbers below it are exact in units of the last decimal


def packable(chart: Chart) -> Chart:
    """Return a chart with short strings, and with its data as ``columns`` returns them."""
    return replace(
        chart,
        title=short(chart.title),
        description=short(chart.description),
        data={name: columns(rows) for name, rows in chart.data.items()},
    )


def payload(charts: Mapping[str, Sequence[Chart]]) -> str:
    """Return ``packable`` charts as JSON, by the id of the element that shows them.

    ``{"config", "specs": [...], "data": [...], "charts": {id: [[spec, title, description,
    {name: data}], ...]}}``, in which specs and data are indexes, and data are as ``columns``
    returns them.
    """
    specs = _Indexed()
    data = _Indexed()
    packed_charts: dict[str, list[Any]] = {}
    for element, element_charts in charts.items():
        packed_charts[element] = []
        for chart in element_charts:
            if chart.missing:
                continue
            tables = {name: data.index(table) for name, table in chart.data.items()}
            spec = specs.index(chart.spec)
            packed_charts[element].append([spec, chart.title, chart.description, tables])
    return compact(
        {"config": CONFIG, "specs": specs.values, "data": data.values, "charts": packed_charts}
    )


class _Indexed:
    """Different values, each stored once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._indexes: dict[str, int] = {}

    def index(self, value: Any) -> int:
        """Return the index of a value, which is added if it is new."""
        text = json.dumps(value, sort_keys=True)
        if text not in self._indexes:
            self._indexes[text] = len(self.values)
            self.values.append(value)
        return self._indexes[text]


def compact(document: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(as_json(document), separators=(",", ":"), allow_nan=False)


def columns(rows: Rows) -> dict[str, list[Any]]:
    """Return rows as columns, which compress to half the size of the rows.

    Numbers become ``["n", decimals, first, difference, ...]`` in units of the last decimal, and
    everything else ``["v", value, repetitions, ...]``.
    """
    fields: dict[str, None] = {}
    for row in rows:
        fields |= dict.fromkeys(row)
    return {name: _column([row.get(name) for row in rows]) for name in fields}


def _column(values: Sequence[Any]) -> list[Any]:
    if all(type(value) in (int, float) and abs(value) < _EXACT for value in values):
        return _numbers(values)
    shown = [short(value) if isinstance(value, str) else value for value in values]
    column: list[Any] = ["v"]
    for value, repeated in groupby(shown):
        column += [value, len(list(repeated))]
    return column


def _numbers(values: Sequence[float]) -> list[Any]:
    decimals = max(map(_decimals, values))
    column: list[Any] = ["n", decimals]
    before = 0
    for value in values:
        units = round(value * 10**decimals)
        column.append(units - before)
        before = units
    return column


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
