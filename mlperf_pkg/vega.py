"""The one door to Vega: charts as pictures, and the library itself for a page.

``vl-convert-python`` carries Vega, Vega-Lite and Vega-Embed within its wheel, so that nothing is
fetched, neither when a chart is drawn nor when a page is opened. It draws SVG and PNG without a
browser, and hands out the same libraries as one script, which with ``vega-interpreter`` (part of
Vega-Embed) evaluates no text as code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from mlperf_pkg.charts import Chart
from mlperf_pkg.errors import UserError

_SCALE = 2.0  # of pictures made of pixels, for dense screens


def runtime() -> str:
    """The script that sets ``window.vegaEmbed``: about 900 kB, the same each time.

    Raises:
        UserError: vl-convert-python is not installed.
    """
    script: str = _library().javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script


def refuse_without() -> None:
    """Refuse before the work rather than after it.

    Raises:
        UserError: vl-convert-python is not installed.
    """
    _library()


def svg(chart: Chart) -> bytes:
    """A chart as an SVG file.

    Raises:
        UserError: vl-convert-python is not installed.
    """
    text: str = _library().vegalite_to_svg(chart.document(), allowed_base_urls=[])
    return text.encode()


def png(chart: Chart) -> bytes:
    """A chart as a PNG file, with two pixels a point.

    Raises:
        UserError: vl-convert-python is not installed.
    """
    data: bytes = _library().vegalite_to_png(chart.document(), scale=_SCALE, allowed_base_urls=[])
    return data


PICTURES: Mapping[str, Callable[[Chart], bytes]] = {"svg": svg, "png": png}


def _library() -> ModuleType | Any:
    try:
        import vl_convert  # noqa: PLC0415 - large, and not needed by most commands
    except ImportError as error:
        raise UserError(
            "charts need vl-convert-python: pip install 'mlperf-pkg[report]'"
        ) from error
    return vl_convert
