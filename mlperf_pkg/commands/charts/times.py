"""The chart of times: a box of the runs that count, and every run as a point."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import quantiles
from typing import Any

from mlperf_pkg.commands.charts.chart import (
    BLUE,
    ORANGE,
    Chart,
    Rows,
    Spec,
    quantitative,
    rounded,
    tooltip,
    view,
)
from mlperf_pkg.commands.charts.sets import COUNTS, DROPPED, DrawnRun, DrawnSet, by_state
from mlperf_pkg.results import wording

_ROWS = 5  # of points, so that equal times do not cover each other


def times(drawn: DrawnSet) -> Chart | None:
    """Return the chart; None if no run has a time."""
    timed = [run for run in drawn.runs if run.row.minutes is not None]
    if not timed:
        return None
    runs = [_run(index, run) for index, run in enumerate(timed)]
    counted = [run["minutes"] for run in runs if run["state"] == COUNTS]
    mean = drawn.row.unscaled_minutes
    label = f"olympic mean {wording.minutes(mean)}"
    return Chart(
        name="times",
        title="Times of the runs",
        description=(
            f"{len(timed)} runs with a time, {len(counted)} of them count,"
            f" {sum(run['state'] == DROPPED for run in runs)} are dropped as fastest or slowest."
            f" Olympic mean {wording.minutes(mean)} minutes."
        ),
        spec=view(_layers({run.state for run in timed}), 110),
        data={
            "runs": runs,
            "box": _quartiles(counted),
            "mean": [] if mean is None else [{"minutes": rounded(mean, 7), "label": label}],
        },
    )


def _run(index: int, run: DrawnRun) -> Mapping[str, Any]:
    return {
        "run": run.name,
        "minutes": rounded(run.row.minutes or 0, 7),
        "state": run.state,
        "why": wording.outcome(run.row),
        "row": index % _ROWS,
    }


def _layers(states: Collection[str]) -> list[Spec]:
    x = quantitative("minutes", "minutes to train")
    y = {"field": "row", "type": "quantitative", "axis": None, "scale": {"domain": [-3, _ROWS]}}
    return [
        {
            "data": {"name": "mean"},
            "mark": {"type": "rule", "color": ORANGE, "strokeDash": [6, 4], "size": 2},
            "encoding": {"x": x, "tooltip": tooltip("label")},
        },
        {
            "data": {"name": "mean"},
            "mark": {"type": "text", "dx": 5, "align": "left", "y": 4},
            "encoding": {"x": x, "text": {"field": "label"}},
        },
        *_box(x, y),
        {
            "data": {"name": "runs"},
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.85},
            "encoding": {
                "x": x,
                "y": y,
                "color": by_state("color", states),
                "shape": by_state("shape", states),
                "tooltip": tooltip("run", "minutes", "why"),
            },
        },
    ]


def _box(x: Spec, y: Spec) -> list[Spec]:
    """Return a line from the fastest to the slowest, a box of the middle half, the median."""
    half = {"type": "bar", "height": 14, "color": BLUE, "opacity": 0.45}
    median = {"type": "tick", "color": "currentColor", "height": 14, "thickness": 2}
    marks: list[tuple[Spec, Spec]] = [
        ({"type": "rule", "color": BLUE}, {"x": {**x, "field": "least"}, "x2": {"field": "most"}}),
        (half, {"x": {**x, "field": "low"}, "x2": {"field": "high"}}),
        (median, {"x": {**x, "field": "median"}}),
    ]
    at = {"y": {**y, "field": "at"}}
    return [
        {"data": {"name": "box"}, "mark": mark, "encoding": {**at, **encoding}}
        for mark, encoding in marks
    ]


def _quartiles(minutes: Sequence[Any]) -> Rows:
    """Return the five numbers of a box; none for fewer than two runs."""
    if len(minutes) < 2:  # noqa: PLR2004 - a box has two ends
        return []
    low, median, high = (rounded(cut, 7) for cut in quantiles(minutes, method="inclusive"))
    ends = {"least": min(minutes), "most": max(minutes)}
    return [{**ends, "low": low, "median": median, "high": high, "at": -1.6}]
