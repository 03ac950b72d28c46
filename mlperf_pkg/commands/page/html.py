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

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from mlperf_pkg.commands.charts import Chart, Detail, prepared, set_charts
from mlperf_pkg.commands.charts.convergence import convergence
from mlperf_pkg.commands.page.chart_data import packable, packed, payload
from mlperf_pkg.commands.page.content import Content, amount, badge
from mlperf_pkg.commands.page.template import environment, file, page_head, raw
from mlperf_pkg.render import findings
from mlperf_pkg.results import wording

MAX_BYTES = 2_000_000
_DETAILS = (Detail(), Detail(points=50, spans=15), Detail(points=15, spans=5))
_SCRIPTS = ("charts.js", "table.js", "drawing.js", "page.js")
_DATA = 'id="charts">'  # which no value contains: their quotation marks are escaped


def html(content: Content, runtime: str) -> str:
    """Return the page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    If it is larger than ``MAX_BYTES``, charts show less of each run, and say so.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    template = environment().get_template("page.html")
    script = "".join(map(file, _SCRIPTS))
    style = file("page.css") + _labels(content)
    values = {
        "page": content,
        "head": raw(page_head(content.title, style, script, runtime)),
        "script": raw(script),
        "runtime": raw(packed(runtime)),
        "wording": wording,
        "amount": amount,
        "badge": badge,
        "headings": findings,
    }
    charts = _charts(content, _DETAILS[0])
    missing = {
        element: [chart for chart in shown if chart.missing] for element, shown in charts.items()
    }
    text = template.render(values, missing=missing)
    room = MAX_BYTES - len(text.encode())
    data = packed(payload(charts))
    for detail in _DETAILS[1:] if room > 0 else _DETAILS[-1:]:
        if len(data) > room:
            data = packed(payload(_charts(content, detail)))
    return text.replace(_DATA, f"{_DATA}{data}", 1)


def _labels(content: Content) -> str:
    """Return the style that names the values of a result on a narrow screen, where it is a card."""
    labels = (
        f'#table td:nth-child({number})::before{{content:"{column.title}"}}'
        for number, column in enumerate(content.columns, 1)
    )
    return f"@media screen and (max-width: 40rem) {{{''.join(labels)}}}"


def _charts(content: Content, detail: Detail) -> Mapping[str, Sequence[Chart]]:
    """Return the charts by the id of the element that shows them."""
    charts: dict[str, Sequence[Chart]] = {}
    for card in content.cards:
        scaling = partial(card.scaling, content.looks)
        charts[f"k{card.id}"] = prepared("trend", card.title, card.trend)
        charts[f"a{card.id}"] = prepared("scaling", card.title, scaling)
    for group in content.benchmarks:
        members = [(section.entry.drawn, section.entry.accelerator) for section in group.sections]
        common = partial(convergence, group.title, members, content.looks)
        charts[group.id] = prepared("convergence", group.id, partial(common, detail.points))
    charts |= {section.id: set_charts(section.entry.drawn, detail) for section in content.sections}
    pack = partial(packable, packed_rows={})
    return {
        element: [
            packable_chart
            for chart in shown
            for packable_chart in prepared(chart.name, element, partial(map, pack, [chart]))
        ]
        for element, shown in charts.items()
    }
