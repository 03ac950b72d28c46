"""Charts as values: pure functions from what a check has found to Vega-Lite."""

from __future__ import annotations

from msgspec import Struct

from mlperf_pkg.commands.charts.chart import CONFIG, Chart
from mlperf_pkg.commands.charts.curves import curves
from mlperf_pkg.commands.charts.rcp import rcp
from mlperf_pkg.commands.charts.scoreboard import scoreboard
from mlperf_pkg.commands.charts.sets import DrawnRun, DrawnSet
from mlperf_pkg.commands.charts.timeline import timeline
from mlperf_pkg.commands.charts.times import times

NAMES = ("curves", "times", "rcp", "timeline", "scoreboard")


class Detail(Struct, frozen=True):
    """How much of a run is drawn at most: evaluations in curves, spans of a kind in timelines."""

    points: int = 150
    spans: int = 40


_USUAL = Detail()


def set_charts(drawn: DrawnSet, detail: Detail = _USUAL) -> list[Chart]:
    """All charts that can be drawn of a result set."""
    listed = [
        *curves(drawn, detail.points),
        times(drawn),
        rcp(drawn),
        timeline(drawn, detail.spans),
    ]
    return [chart for chart in listed if chart]


__all__ = ["CONFIG", "NAMES", "Chart", "Detail", "DrawnRun", "DrawnSet", "scoreboard", "set_charts"]
