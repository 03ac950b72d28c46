"""Make SVG and PNG of a chart, and get the Vega libraries for a page: all use of vl-convert-python.

Its wheel contains Vega, Vega-Lite and Vega-Embed, so nothing is downloaded, neither when a chart is
drawn nor when a page is opened. It draws SVG and PNG without a browser, and returns the same
libraries as one script, which evaluates no text as code: expressions are run by
``vega-interpreter``, a part of Vega-Embed.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mlperf_pkg.commands.charts import Chart
from mlperf_pkg.infra.files import cached
from mlperf_pkg.infra.parallel import WorkerLostError, pool
from mlperf_pkg.infra.resources import installed_version, require

_SCALE = 2.0  # of PNG, for dense screens
_SECONDS = 60  # that a chart may take; most take a tenth of one


def library() -> Any:
    """Import the library that draws.

    Raises:
        MissingPackageError: vl-convert-python is not installed.
    """
    return require("vl_convert", "report", "a chart")


def runtime() -> str:
    """Return the script that sets ``window.vegaEmbed``: about 900 kB, the same each time.

    It takes a second to make, and is then in the user's cache.

    Raises:
        MissingPackageError: vl-convert-python is not installed.
    """
    bundle = library().javascript_bundle
    version = installed_version("vl-convert-python")
    return cached(f"vega-{version}.js", lambda: str(bundle("window.vegaEmbed = vegaEmbed;")))


def svg(chart: Chart) -> bytes:
    """Return a chart as an SVG file.

    Raises:
        MissingPackageError: vl-convert-python is not installed.
    """
    text: str = library().vegalite_to_svg(chart.document(), allowed_base_urls=[])
    return text.encode()


def png(chart: Chart) -> bytes:
    """Return a chart as a PNG file, with two pixels per point.

    Raises:
        MissingPackageError: vl-convert-python is not installed.
    """
    data: bytes = library().vegalite_to_png(chart.document(), scale=_SCALE, allowed_base_urls=[])
    return data


PICTURES: Mapping[str, Callable[[Chart], bytes]] = {"svg": svg, "png": png}


def drawn(charts: Sequence[Chart], format_: str) -> list[bytes | WorkerLostError]:
    """Return charts as pictures, "svg" or "png"; the error in place of one that cannot be drawn.

    They are drawn in another process, with a time limit for each: the library may end its process.
    """
    with pool(1) as workers:
        pictures = list(workers.map(partial(_draw, format_), charts, instead=_lost))
        return [
            next(iter(workers.map(partial(_draw, format_), [chart], instead=_lost)))
            if isinstance(picture, WorkerLostError)
            else picture
            for chart, picture in zip(charts, pictures, strict=True)
        ]


def _lost(error: WorkerLostError) -> bytes | WorkerLostError:
    return error


def _draw(format_: str, chart: Chart) -> bytes | WorkerLostError:
    if chart.missing:
        return WorkerLostError(chart.missing)
    alarm = getattr(signal, "alarm", int)  # Windows has none, and no limit
    alarm(_SECONDS)
    try:
        return PICTURES[format_](chart)
    except Exception as error:  # noqa: BLE001 - the library raises what it likes
        return WorkerLostError(f"{type(error).__name__}: {error}")
    finally:
        alarm(0)
