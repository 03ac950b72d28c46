"""The chart of phases: initialisation, epochs and evaluations of each run, in minutes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mlperf_pkg.commands.charts.chart import (
    BLUE,
    GREY,
    ORANGE,
    Chart,
    Spec,
    quantitative,
    thinned,
    tooltip,
    view,
)
from mlperf_pkg.commands.charts.sets import DrawnRun, DrawnSet
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.run.curve import Phase, Span

_DECIMALS = 3  # of minutes, if the longest run is between 1 and 10 minutes
_SHORTEST = 1e-3  # minutes: the shortest axis
_INIT_SHARE = 0.3  # of the longest run: the longest part of an initialisation that is drawn
_LANE_HEIGHT = 15  # pixels
_TRAINING = "training"
_COLORS = {Phase.INIT: GREY, _TRAINING: BLUE, Phase.EVALUATION: ORANGE}


def timeline(drawn: DrawnSet, max_spans: int) -> Chart | None:
    """Return the chart with about ``max_spans`` spans per phase of a run; None if it is empty."""
    rows = [row for index, run in enumerate(drawn.runs) for row in _bars(index, run, max_spans)]
    if not rows:
        return None
    # Some runs evaluate after their end, which does not count.
    longest = max(_SHORTEST, *map(_length, drawn.runs))
    earliest = max(min(row["start"] for row in rows), -_INIT_SHARE * longest)
    edges = [row for index, run in enumerate(drawn.runs) for row in _edges(index, run, max_spans)]
    decimals = _DECIMALS - math.floor(math.log10(longest))
    logged = max(len(_spans(run, phase)) for run in drawn.runs for phase in Phase)
    partly = (
        f" Of up to {logged} spans of a phase, {max_spans} are shown." if logged > max_spans else ""
    )
    return Chart(
        name="timeline",
        title="Timeline of the runs",
        description=(
            f"{len(drawn.runs)} runs: initialisation before minute 0 (cut at"
            f" {_INIT_SHARE:.0%} of the longest run), training, evaluations, and the ends of epochs"
            f" or blocks as lines.{partly}"
        ),
        spec=view(
            _layers(round(earliest, decimals), round(longest, decimals)),
            _LANE_HEIGHT * len(drawn.runs),
        ),
        data={
            "spans": [_as_drawn(row, decimals) for row in rows],
            "edges": [_as_drawn(row, decimals) for row in edges],
        },
    )


def _spans(run: DrawnRun, *phases: Phase) -> list[Span]:
    return [span for span in run.curve.spans if span.phase in phases]


def _length(run: DrawnRun) -> float:
    """Return the minutes of a run; of one without an end, until its last phase."""
    stops = (span.stop for span in run.curve.spans)
    return to_finite(run.row.minutes) or max(stops, default=0.0)


def _bars(index: int, run: DrawnRun, max_spans: int) -> Iterator[dict[str, Any]]:
    lane = {"run": run.name, "order": index}
    if (minutes := to_finite(run.row.minutes)) is not None:
        yield {**lane, "phase": _TRAINING, "start": 0.0, "stop": minutes}
    for phase in (Phase.INIT, Phase.EVALUATION):
        for span in thinned(_spans(run, phase), max_spans):
            yield {**lane, "phase": phase.value, "start": span.start, "stop": span.stop}


def _edges(index: int, run: DrawnRun, max_spans: int) -> Iterator[dict[str, Any]]:
    for span in thinned(_spans(run, Phase.EPOCH, Phase.BLOCK), max_spans):
        yield {"run": run.name, "order": index, "stop": span.stop}


def _as_drawn(row: Mapping[str, Any], decimals: int) -> Mapping[str, Any]:
    """Return a row with no more decimals than a chart can show."""
    return {
        name: round(value, decimals) if isinstance(value, float) else value
        for name, value in row.items()
    }


_LANE: Spec = {
    "field": "run",
    "type": "nominal",
    "title": None,
    "sort": {"field": "order", "op": "min"},
    "axis": {"labelLimit": 110, "labelOverlap": False, "ticks": False, "domain": False},
}


def _layers(earliest: float, latest: float) -> list[Spec]:
    x = quantitative("", "minutes from run_start", domain=[earliest, latest])
    return [
        {
            "data": {"name": "spans"},
            "mark": {"type": "bar", "height": {"band": 0.75}, "clip": True},
            "encoding": {
                "y": _LANE,
                "x": {**x, "field": "start"},
                "x2": {"field": "stop"},
                "color": {
                    "field": "phase",
                    "type": "nominal",
                    "scale": {"domain": list(_COLORS), "range": list(_COLORS.values())},
                },
                "tooltip": tooltip("run", "phase", "start", "stop"),
            },
        },
        {
            "data": {"name": "edges"},
            "mark": {
                "type": "tick",
                "color": "currentColor",
                "opacity": 0.45,
                "thickness": 1,
                "clip": True,
            },
            "encoding": {"y": _LANE, "x": {**x, "field": "stop"}},
        },
    ]
