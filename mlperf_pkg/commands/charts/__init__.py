"""Charts of a check as Vega-Lite: of each result set, and of the scores of each benchmark.

``sets`` holds them, ``curves``, ``times``,
``rcp``, ``timeline``, ``scoreboard`` and ``comparison`` draw one kind of chart each. ``drawing``
draws all charts of a check, ``pictures`` makes SVG and PNG of a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.charts.chart import CONFIG, Chart, prepared
from mlperf_pkg.commands.charts.curves import curves
from mlperf_pkg.commands.charts.rcp import rcp
from mlperf_pkg.commands.charts.scoreboard import scoreboard
from mlperf_pkg.commands.charts.sets import DrawnRun, DrawnSet
from mlperf_pkg.commands.charts.timeline import timeline
from mlperf_pkg.commands.charts.times import times


class Detail(Struct, frozen=True):
    """The maximum that is drawn of a run: evaluations in curves, spans per phase in timelines."""

    points: int = 150
    spans: int = 40


_USUAL = Detail()


def set_charts(drawn: DrawnSet, detail: Detail = _USUAL) -> list[Chart]:
    """Return the charts of a result set, without empty ones."""
    kinds: dict[str, Callable[[], Iterable[Chart | None]]] = {
        "curves": lambda: curves(drawn, detail.points),
        "times": lambda: [times(drawn)],
        "rcp": lambda: [rcp(drawn)],
        "timeline": lambda: [timeline(drawn, detail.spans)],
    }
    charts = (
        chart
        for name, function in kinds.items()
        for chart in prepared(name, drawn.row.path, function)
    )
    return [replace(chart, subject=drawn.subject) for chart in charts]


__all__ = [
    "CONFIG",
    "Chart",
    "Detail",
    "DrawnRun",
    "DrawnSet",
    "prepared",
    "scoreboard",
    "set_charts",
]
