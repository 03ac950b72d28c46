"""The chart of the reference points of a benchmark, as a picture or a page."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from mlperf_pkg.commands.charts.chart import Chart
from mlperf_pkg.commands.charts.pictures import PICTURES, drawn, library
from mlperf_pkg.commands.charts.rcp import points_chart
from mlperf_pkg.commands.rcp.reference import Reference
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.parallel import WorkerLostError
from mlperf_pkg.infra.text import escape_html

_HTML = "html"
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.4 system-ui, sans-serif; margin: 1rem auto; max-width: 50rem; }}
img {{ background: white; max-width: 100%; }}
</style>
<h1>{title}</h1>
<img src="data:image/svg+xml;base64,{picture}" alt="{description}">
<p>{description}</p>
</html>
"""


def points_picture(file: Path) -> Callable[[Reference], bytes]:
    """Return a function that draws reference points in the format of ``file``.

    The function raises UserError if the chart cannot be drawn.

    Raises:
        UserError: ``file`` is neither .svg, .png nor .html, or vl-convert-python is not installed.
    """
    format_ = file.suffix.lower().removeprefix(".")
    if format_ not in (*PICTURES, _HTML):
        raise UserError(f"{file}: not a chart format; expected .svg, .png or .html")
    library()

    def picture(reference: Reference) -> bytes:
        subject = f"{reference.benchmark}, {reference.usage} {reference.round}"
        chart = points_chart(reference.points, reference.runs.required, reference.unit, subject)
        [result] = drawn([chart], "svg" if format_ == _HTML else format_)
        if isinstance(result, WorkerLostError):
            raise UserError(f"{file}: the chart cannot be drawn: {result.reason}")
        return _page(chart, result) if format_ == _HTML else result

    return picture


def _page(chart: Chart, picture: bytes) -> bytes:
    page = _PAGE.format(
        title=escape_html(f"{chart.title}: {chart.subject}"),
        description=escape_html(chart.description),
        picture=base64.b64encode(picture).decode(),
    )
    return page.encode()
