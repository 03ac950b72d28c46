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
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import chain, groupby, islice
from operator import sub
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.charts.benchmarks import convergence
from mlperf_pkg.commands.charts.chart import CONFIG, Chart, Rows, SharedRows, prepared
from mlperf_pkg.commands.charts.drawing import set_charts
from mlperf_pkg.commands.page.content import PageContent, ResultSection, amount
from mlperf_pkg.commands.page.template import file, filled, packed, short
from mlperf_pkg.infra.parallel import pool
from mlperf_pkg.infra.streams import FilePart, Keeper, kept
from mlperf_pkg.render import findings
from mlperf_pkg.results.report import as_json

MAX_BYTES = 2_000_000
_MANY_RUNS = 1500  # beyond which a page has hardly room for charts with all details
_SECTIONS = 40  # whose charts a process prepares at once
_DETAILS = ((150, 40), (50, 15), (15, 5))  # points and spans of a run, as for ``set_charts``
_LEAST = _DETAILS[-1]
_DATA = 'id="charts">'  # which no value contains: their quotation marks are escaped
_PIECE = 1 << 18  # characters of the data of charts
_TEXTS = 5000  # of a template, which are a piece of a page

Page = list[bytes | FilePart]
"""The pieces of a page, in their order, as a ``Keeper`` keeps them."""


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


def html(content: PageContent, runtime: str, home: str = "", jobs: int = 1) -> Page:
    """Return the page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    ``home`` is the index of the site that it is part of, empty if there is none; ``jobs`` is the
    number of processes that may prepare the charts of many runs. If the page is
    larger than ``MAX_BYTES``, charts show less of each run, and say so. Beyond some megabytes,
    neither the page nor the data of its charts are in memory.

    Raises:
        MissingPackageError: Jinja is not installed.
        UserError: temporary files cannot be written.
    """
    details = _DETAILS[0]
    if len(content.report.runs) > _MANY_RUNS:
        details = _LEAST
    charts = _charts(content, details, jobs)
    values = {
        "page": content,
        "amount": amount,
        "headings": findings,
        "home": home,
        "missing": charts.missing,
    }
    texts = filled(
        "page.html",
        values,
        title=content.title,
        style=file("page.css") + _labels(content),
        scripts=("charts.js", "plot.js", "table.js", "drawing.js", "page.js"),
        runtime=runtime,
    )
    keeper = Keeper()
    page = [keeper.keep(piece.encode()) for piece in _pieces(texts)]
    data = _fitting(content, details, charts.packed(), MAX_BYTES - keeper.size, jobs)
    page.insert(-1, keeper.keep(data.encode()))
    return page


def _pieces(texts: Iterator[str]) -> Iterator[str]:
    """Yield a page in pieces, the last of which is what follows the data of its charts."""
    for batch in iter(lambda: list(islice(texts, _TEXTS)), []):
        before, mark, after = "".join(batch).partition(_DATA)
        yield before + mark
        if mark:
            yield "".join([after, *texts])


def _fitting(
    content: PageContent, details: tuple[int, int], prepared_data: str, room: int, jobs: int
) -> str:
    """Return the data of charts with the most detail that fit into ``room`` bytes, else the least.

    ``prepared_data`` are those with ``details``. These are the least if there are many runs: where
    they do not fit, no others are prepared. All others are prepared from the most to the least.
    """
    if details == _LEAST and len(prepared_data) > room:
        return prepared_data
    for next_details in _DETAILS:
        data = prepared_data
        if next_details != details:
            data = _charts(content, next_details, jobs).packed()
        if len(data) <= room:
            break
    return data


def _labels(content: PageContent) -> str:
    """Return the style that names the values of a result on a narrow screen, where it is a card."""
    style = "@media screen and (max-width: 40rem) {"
    for number, column in enumerate(content.columns, 1):
        style += f'#table td:nth-child({number})::before{{content:"{column.heading}"}}'
    return f"{style}}}"


def _charts(content: PageContent, details: tuple[int, int], jobs: int) -> "ChartData":
    """Return the charts by the id of the element that shows them."""
    charts = ChartData()
    parts = []
    for group in content.benchmarks:
        members = [(section.drawn, section.accelerator) for section in group.sections]
        common = partial(convergence, group.title, members, content.looks, details[0])
        charts.add(group.id, _packable(group.id, prepared("convergence", group.id, common)))
        for first in range(0, len(group.sections), _SECTIONS):
            parts.append(group.sections[first : first + _SECTIONS])
    if len(content.report.runs) <= _MANY_RUNS:
        jobs = 1
    for part_charts in _prepared_parts(parts, details, jobs):
        for element, element_charts in part_charts.items():
            charts.add(element, element_charts)
    return charts


def _prepared_parts(
    parts: Sequence[Sequence[ResultSection]], details: tuple[int, int], jobs: int
) -> Iterator[dict[str, list[PageChart]]]:
    """Yield the charts of each part by the id of the section, prepared by ``jobs`` processes."""
    prepare = partial(_part_charts, details)
    if jobs == 1:
        yield from map(prepare, parts)
        return
    # Clients of stores use threads, which do not survive a fork.
    with pool(jobs, forked=threading.active_count() == 1) as workers:
        prepared_parts = workers.map(prepare, parts, instead=lambda _: {})
        for part, charts in zip(parts, prepared_parts, strict=True):
            yield charts or prepare(part)  # again, if the worker was lost


def _part_charts(
    details: tuple[int, int], sections: Iterable[ResultSection]
) -> dict[str, list[PageChart]]:
    charts = {}
    for section in sections:
        charts[section.id] = _packable(section.id, set_charts(section.drawn, *details))
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
_SURROGATE = "\\ud"  # or a character that is written as two


def packable(chart: Chart) -> PageChart:
    """Return a chart with short strings, in the form of a page."""
    data = {}
    for name, rows in chart.data.items():
        data[name] = _shared_table(rows) if isinstance(rows, SharedRows) else _table(rows)
    title = short(chart.title)
    description = short(chart.description)
    return PageChart(chart.name, title, description, compact(chart.spec), data, chart.missing)


class ChartData:
    """The charts of a page as JSON, by the id of the element that shows them.

    ``{"config", "specs": [...], "data": [...], "charts": {id: [[spec, title, description,
    {name: data}], ...]}}``, in which specs and data are indexes, and data are as ``columns``
    returns them. Equal specs and equal data are there once. ``missing`` are those that could not be
    prepared, by element.
    """

    def __init__(self) -> None:
        """Start without charts."""
        self.missing: dict[str, list[PageChart]] = {}
        self._keeper = Keeper()
        self._specs: dict[str, int] = {}
        self._tables: dict[bytes, int] = {}  # by digest
        self._waiting: list[str] = []  # tables that are not yet kept
        self._size = 0  # of these
        self._kept: Page = []
        self._elements: list[str] = []

    def add(self, element: str, charts: Iterable[PageChart]) -> None:
        """Add the charts of an element."""
        indexes: list[Any] = []
        for chart in charts:
            if chart.missing:
                self.missing.setdefault(element, []).append(chart)
                continue
            spec = self._specs.setdefault(chart.spec, len(self._specs))
            tables = {name: self._index(table) for name, table in chart.data.items()}
            indexes.append([spec, chart.title, chart.description, tables])
        self._elements.append(f"{compact(element)}:{compact(indexes)}")

    def packed(self) -> str:
        """Return all charts as ``packed`` of a template does."""
        return packed(self._json())

    def _json(self) -> Iterator[bytes]:
        yield f'{{"config":{compact(CONFIG)},"specs":[{",".join(self._specs)}],"data":['.encode()
        yield from map(kept, self._kept)
        tables = ",".join(self._waiting)
        yield f'{tables}],"charts":{{{",".join(self._elements)}}}}}'.encode()

    def _index(self, table: str) -> int:
        """Return the index of a table, which is kept if it is new."""
        new = len(self._tables)
        index = self._tables.setdefault(blake2b(table.encode(), digest_size=16).digest(), new)
        if index < new:
            return index
        if self._size > _PIECE:
            text = ",".join([*self._waiting, ""])
            self._kept.append(self._keeper.keep(text.encode()))
            self._waiting = []
            self._size = 0
        self._waiting.append(table)
        self._size += len(table)
        return index


def compact(document: Any) -> str:
    """Return JSON without spaces."""
    try:
        text = _json(document)
    except (TypeError, ValueError):  # NaN, or values that are not of JSON
        return _json(as_json(document))
    if _SURROGATE in text:
        return _json(as_json(document))
    return text


def _json(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def columns(rows: Rows) -> dict[str, list[Any]]:
    """Return rows as columns, which compress to half the size of the rows.

    Numbers become ``["n", decimals, first, difference, ...]`` in units of the last decimal, and
    everything else ``["v", value, repetitions, ...]``.
    """
    names = dict.fromkeys(chain.from_iterable(rows))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _table(rows: Rows) -> str:
    """Return the JSON of ``columns``."""
    return compact(columns(rows))


_shared_table = lru_cache(maxsize=256)(_table)  # of the reference points of some benchmarks


def _column(values: Sequence[Any]) -> list[Any]:
    is_exact = map(_EXACT.__gt__, map(abs, values))
    if _NUMBERS.issuperset(map(type, values)) and all(is_exact):
        return _numbers(values)
    column: list[Any] = ["v"]
    for value, repeated in groupby(values):
        shown = short(value) if isinstance(value, str) else value
        column += [shown, len(list(repeated))]
    return column


def _numbers(values: Sequence[float]) -> list[Any]:
    decimals = _decimals(set(values))
    scale = 10**decimals
    units = [round(value * scale) for value in values]
    return ["n", decimals, *map(sub, units, [0, *units])]


def _decimals(values: Collection[float]) -> int:
    """Return the number of decimals of numbers, up to as many as a chart can show."""
    texts = list(map(repr, values))
    if "e" not in "".join(texts):  # with an exponent, the text does not show them
        decimals = {text.partition(".")[2] for text in texts} - {"0"}
        return min(_MOST_DECIMALS, max(map(len, decimals), default=0))
    for number in range(_MOST_DECIMALS):
        if all(round(value, number) == value for value in values):
            return number
    return _MOST_DECIMALS
