"""Charts as values: pure functions from what a check has found to Vega-Lite."""

from __future__ import annotations

from mlperf_pkg.charts.chart import CONFIG, Chart
from mlperf_pkg.charts.curves import curves
from mlperf_pkg.charts.rcp import rcp
from mlperf_pkg.charts.scoreboard import scoreboard
from mlperf_pkg.charts.sets import DrawnRun, DrawnSet
from mlperf_pkg.charts.timeline import timeline
from mlperf_pkg.charts.times import times

NAMES = ("curves", "times", "rcp", "timeline", "scoreboard")


def set_charts(drawn: DrawnSet) -> list[Chart]:
    """All charts that can be drawn of a result set."""
    listed = [*curves(drawn), times(drawn), rcp(drawn), timeline(drawn)]
    return [chart for chart in listed if chart]


__all__ = ["CONFIG", "NAMES", "Chart", "DrawnRun", "DrawnSet", "scoreboard", "set_charts"]
