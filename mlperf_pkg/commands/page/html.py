"""The page itself: one file, no network, and nothing of a log is ever markup.

Three things keep it so. The template escapes every value, and spells out what does not print. The
charts' data, in which the texts of logs are, is compressed and in Base64, letters and digits alone.
And a content security policy allows the page's own two scripts by their hashes and nothing else:
no other script, no ``eval``, no request.

Why Vega-Lite in the page rather than drawn pictures: four charts of 200 result sets are 10 MB as
SVG, but as data and a few dozen specs a few hundred kB. The library itself is 900 kB of text; as
gzip in Base64 it is 407 kB, and the page unpacks it (``DecompressionStream``) only once a chart is
to be seen, into a script element that the policy admits as it knows the hash of its text. So there
is neither ``blob:`` nor ``unsafe-eval``, and expressions are run by Vega's own interpreter. The
tables are plain HTML, there at once and without any script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from mlperf_pkg.commands.charts import Chart, Detail, scoreboard, set_charts
from mlperf_pkg.commands.page.content import Content, amount
from mlperf_pkg.commands.page.payload import packed, payload, short
from mlperf_pkg.infra.resources import require
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import headings
from mlperf_pkg.results import wording as words

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
    """The page; ``runtime`` is the script that sets ``window.vegaEmbed``.

    Where it is larger than ``MAX_BYTES``, charts show less and less of each run, and say so.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    template = _environment().get_template("page.html")
    boards = dict(scoreboard(section.row for section in content.sections))
    script, style = _file("page.js"), _file("page.css")
    said = {
        "page": content,
        "boards": {f"b{index}": name for index, name in enumerate(boards)},
        "policy": _POLICY.format(script=_hash(script), runtime=_hash(runtime), style=_hash(style)),
        "script": _raw(script),
        "style": _raw(style),
        "runtime": _raw(packed(runtime)),
        "words": words,
        "amount": amount,
        "headings": headings,
    }
    text = ""
    for detail in _DETAILS:
        charts = _places(content, list(boards.values()), detail)
        text = template.render(said, charts=_raw(packed(payload(charts))))
        if len(text.encode()) <= MAX_BYTES:
            break
    return text


def _places(
    content: Content, boards: Sequence[Chart], detail: Detail
) -> Mapping[str, Sequence[Chart]]:
    """Where in the page which charts are."""
    places: dict[str, Sequence[Chart]] = {f"b{i}": [board] for i, board in enumerate(boards)}
    return places | {section.id: set_charts(section.drawn, detail) for section in content.sections}


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
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment


def _shown(value: Any) -> Any:
    """Every value of a page, whoever wrote it: what does not print is spelt out."""
    return visible(short(value)) if type(value) is str else value


def _raw(text: str) -> Any:
    """What has nothing of a log in it, as it is: scripts, styles, Base64."""
    import markupsafe  # noqa: PLC0415 - comes with Jinja

    return markupsafe.Markup(text)  # noqa: S704 - none of it is a stranger's


def _file(name: str) -> str:
    return (_FILES / name).read_text("utf-8")


def _hash(text: str) -> str:
    """A source of the content security policy: the script or style of just this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
