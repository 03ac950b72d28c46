"""Draw all charts of a check, and make SVG and PNG of them: all use of vl-convert-python.

Its wheel contains Vega, Vega-Lite and Vega-Embed, so nothing is downloaded, neither when a chart is
drawn nor when a page is opened. It draws SVG and PNG without a browser, and returns the same
libraries as one script, which evaluates no text as code: expressions are run by
``vega-interpreter``, a part of Vega-Embed.
"""

import re
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked, scores
from mlperf_pkg.commands.charts.benchmarks import comparisons, scoreboard
from mlperf_pkg.commands.charts.chart import Chart, prepared
from mlperf_pkg.commands.charts.sets import DrawnRun, DrawnSet, curves, rcp, timeline, times
from mlperf_pkg.commands.compare.ratios import ComparisonRow
from mlperf_pkg.commands.notice import ShownResult, notice, shown_results
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import cached
from mlperf_pkg.infra.parallel import WorkerLostError, pool
from mlperf_pkg.infra.resources import installed_version, require
from mlperf_pkg.infra.text import escape_html, unused, visible
from mlperf_pkg.results.report import names
from mlperf_pkg.run.evaluations import Curve
from mlperf_pkg.submission.model import set_name

MAX_NAME = 150  # characters of a file name
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")


def drawn_sets(checked: Checked, shown: Mapping[str, ShownResult]) -> Iterator[DrawnSet]:
    """Yield the result sets of a check with ``curves``, in the order of its report.

    They are ``shown`` as here, by id.
    """
    runs = {run.path: run for run in checked.runs}
    for scored in scores(checked).sets:
        usage = "training"
        if scored.runs:
            usage = runs[scored.runs[0].label].usage
        drawn_runs = []
        run_names = names([row.label for row in scored.runs])
        for row, run_name in zip(scored.runs, run_names, strict=True):
            curve = runs[row.label].curve or Curve()
            drawn_runs.append(DrawnRun(row, curve, run_name))
        is_verified = shown[scored.row.id].is_verified
        yield DrawnSet(scored.row, tuple(drawn_runs), usage, is_verified)


def set_charts(drawn: DrawnSet, points: int = 150, spans: int = 40) -> list[Chart]:
    """Return the charts of a result set, without empty ones.

    Curves show about ``points`` points of a run at most, and timelines ``spans`` per phase.
    """
    kinds: dict[str, Callable[[], Iterable[Chart | None]]] = {
        "curves": lambda: curves(drawn, points),
        "times": lambda: [times(drawn)],
        "rcp": lambda: [rcp(drawn)],
        "timeline": lambda: [timeline(drawn, spans)],
    }
    charts: list[Chart] = []
    for name, function in kinds.items():
        charts += prepared(name, drawn.row.path, function)
    return [replace(chart, subject=drawn.subject) for chart in charts]


def files(checked: Checked, names: Collection[str]) -> dict[str, Chart]:
    """Return the charts of these ``names`` by file name, without a suffix.

    File names consist of letters, digits, ``.``, ``_`` and ``-``, whatever the names of folders.
    """
    charts: dict[str, Chart] = {}
    for name, chart in _named_charts(checked):
        kind = chart.name.partition("-")[0]
        if kind in names:
            plain = _UNSAFE.sub("-", f"{name}.{chart.name}").lstrip(".-")
            file = unused(plain[-MAX_NAME:], charts)
            charts[file] = chart
    return charts


def _named_charts(checked: Checked) -> Iterator[tuple[str, Chart]]:
    """Yield the charts of a check, with the name of the result set or the benchmark."""
    shown = shown_results(checked)
    for drawn_set in drawn_sets(checked, shown):
        row = drawn_set.row
        name = row.path
        if not set_name(row.path):  # several sets may be in one folder
            name = row.id
        beside = tuple(notice([shown[row.id]]))
        for chart in set_charts(drawn_set):
            yield name, replace(chart, notice=beside)
    yield from scoreboard(checked.report.result_sets, shown)


# ---- pictures, and the libraries for a page -----------------------------------------------


_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"')
_LETTER = 5.5  # pixels, of the notice
_LINE = 14
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
    version = installed_version("vl-convert-python")
    script = "window.vegaEmbed = vegaEmbed;"
    return cached(f"vega-{version}.js", lambda: str(library().javascript_bundle(script)))


def _svg(chart: Chart) -> Any:
    return _noted(chart).encode()


def _png(chart: Chart) -> Any:
    return library().svg_to_png(_noted(chart), scale=_SCALE)


def _noted(chart: Chart) -> str:
    """Return a chart as SVG, with its notice below it as text."""
    picture: str = library().vegalite_to_svg(chart.document(), allowed_base_urls=[])
    size = _SIZE.search(picture)
    if size is None or not chart.notice:
        return picture
    width = float(size[1])
    height = float(size[2])
    lines: list[str] = []
    for paragraph in chart.notice:
        lines += wrap(visible(paragraph), int(width / _LETTER))
    higher = height + (len(lines) + 1) * _LINE
    new_size = f'width="{width:g}" height="{higher:g}" viewBox="0 0 {width:g} {higher:g}"'
    noted = picture.replace(size[0], new_size, 1)
    back = f'<rect y="{height:g}" width="{width:g}" height="{higher - height:g}" fill="white"/>'
    return noted.removesuffix("</svg>") + f"{back}{_footnote(lines, height)}</svg>"


def _footnote(lines: Iterable[str], top: float) -> str:
    """Return lines as SVG, below ``top``."""
    texts = []
    for line in lines:
        top += _LINE
        texts.append(f'<text x="10" y="{top:g}">{escape_html(line)}</text>')
    return f'<g font-family="sans-serif" font-size="10" fill="#222222">{"".join(texts)}</g>'


PICTURES: Mapping[str, Callable[[Chart], bytes]] = {"svg": _svg, "png": _png}


def drawn(charts: Sequence[Chart], format_: str) -> list[bytes | WorkerLostError]:
    """Return charts as pictures, "svg" or "png"; the error in place of one that cannot be drawn.

    They are drawn in another process, with a time limit for each: the library may end its process.
    """
    with pool(1) as workers:
        draw = partial(workers.map, partial(_draw, format_), instead=lambda error: error)
        pictures = list(draw(charts))
        for index, chart in enumerate(charts):
            if isinstance(pictures[index], WorkerLostError):
                [pictures[index]] = draw([chart])
        return pictures


def file_format(file: Path, *endings: str) -> str:
    """Return the format of a chart in a file, by its ending, which is one of ``endings``.

    Raises:
        UserError: the file has another ending, or vl-convert-python is not installed.
    """
    ending = file.suffix.lower()
    if ending not in endings:
        expected = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UserError(f"{file}: not a chart format; expected {expected}")
    library()
    return ending.removeprefix(".")


def picture_of(chart: Chart, format_: str, file: Path) -> bytes:
    """Return a chart for a file.

    Raises:
        UserError: it cannot be drawn.
    """
    return pictures_of({file: chart}, format_)[file]


def pictures_of(charts: Mapping[Path, Chart], format_: str) -> dict[Path, bytes]:
    """Return charts for files.

    Raises:
        UserError: one cannot be drawn.
    """
    pictures = {}
    for file, picture in zip(charts, drawn(list(charts.values()), format_), strict=True):
        if isinstance(picture, WorkerLostError):
            raise UserError(f"{file}: the chart cannot be drawn: {picture.reason}")
        pictures[file] = picture
    return pictures


def ratio_pictures(
    file: Path, *, all_sizes: bool
) -> Callable[[Sequence[ComparisonRow]], dict[Path, bytes]]:
    """Return a function that draws rows in the format of ``file``, and returns files.

    A single group of results is in ``file``; several are in files beside it, each of which has the
    name of its group.

    Raises:
        UserError: ``file`` is neither .svg nor .png, or vl-convert-python is not installed. The
            function raises it if there is no ratio to draw.
    """
    format_ = file_format(file, ".svg", ".png")

    def pictures(rows: Sequence[ComparisonRow]) -> dict[Path, bytes]:
        charts = prepared("comparison", str(file), lambda: comparisons(rows, all_sizes=all_sizes))
        if not charts:
            raise UserError(f"{file}: no ratio to draw")
        if len(charts) == 1:
            return pictures_of({file: charts[0]}, format_)
        files = {}
        for chart in charts:
            group = _UNSAFE.sub("-", chart.title.partition(":")[0]).strip("-")
            files[file.with_name(f"{file.stem}-{group}{file.suffix}")] = chart
        return pictures_of(files, format_)

    return pictures


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
