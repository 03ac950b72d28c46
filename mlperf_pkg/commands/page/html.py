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

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from mlperf_pkg.commands.charts import Chart, Detail, prepared, scoreboard, set_charts
from mlperf_pkg.commands.page.chart_data import packable, packed, payload, short
from mlperf_pkg.commands.page.content import Content, amount
from mlperf_pkg.infra.resources import require
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import headings
from mlperf_pkg.results import wording

if TYPE_CHECKING:
    import jinja2

MAX_BYTES = 2_000_000
_DETAILS = (Detail(), Detail(points=50, spans=15), Detail(points=15, spans=5))
_FILES = resources.files("mlperf_pkg.commands.page") / "templates"
_POLICY = (
    "default-src 'none'; script-src {script} {runtime}; style-src {style}; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)


def html(content: Content, runtime: str) -> str:
    """Return the page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    If it is larger than ``MAX_BYTES``, charts show less of each run, and say so.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    template = _environment().get_template("page.html")
    boards = dict(scoreboard(section.row for section in content.sections))
    script, style = _file("page.js"), _file("page.css")
    values = {
        "page": content,
        "boards": {f"b{index}": name for index, name in enumerate(boards)},
        "policy": _POLICY.format(script=_hash(script), runtime=_hash(runtime), style=_hash(style)),
        "script": _raw(script),
        "style": _raw(style),
        "runtime": _raw(packed(runtime)),
        "wording": wording,
        "amount": amount,
        "headings": headings,
    }
    text = ""
    for detail in _DETAILS:
        charts = _charts(content, list(boards.values()), detail)
        missing = {
            element: [chart for chart in shown if chart.missing]
            for element, shown in charts.items()
        }
        text = template.render(values, missing=missing, charts=_raw(packed(payload(charts))))
        if len(text.encode()) <= MAX_BYTES:
            break
    return text


def _charts(
    content: Content, boards: Sequence[Chart], detail: Detail
) -> Mapping[str, Sequence[Chart]]:
    """Return the charts by the id of the element that shows them."""
    charts: dict[str, Sequence[Chart]] = {f"b{i}": [board] for i, board in enumerate(boards)}
    charts |= {section.id: set_charts(section.drawn, detail) for section in content.sections}
    pack = partial(packable, packed_rows={})
    return {
        element: [
            packable_chart
            for chart in shown
            for packable_chart in prepared(chart.name, element, partial(map, pack, [chart]))
        ]
        for element, shown in charts.items()
    }


def library() -> Any:
    """Import the library of templates.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    return require("jinja2", "report", "a page")


def _environment() -> jinja2.Environment:
    jinja = library()
    environment: jinja2.Environment = jinja.Environment(
        loader=jinja.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment


def _printable(value: Any) -> Any:
    """Return a value of the page with the characters that do not print spelled out."""
    return visible(short(value)) if type(value) is str else value


def _raw(text: str) -> Any:
    """Return text that is not from a log as it is: scripts, styles, Base64."""
    import markupsafe  # noqa: PLC0415 - comes with Jinja

    return markupsafe.Markup(text)  # noqa: S704 - none of it is from a log


def _file(name: str) -> str:
    return (_FILES / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return a source of the content security policy: the script or style with this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
