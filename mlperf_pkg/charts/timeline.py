"""What each run did when: initialisation, epochs, evaluations, on one axis of minutes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mlperf_pkg.charts.chart import BLUE, GREY, ORANGE, Chart, Spec, rounded, thinned, tooltip, view
from mlperf_pkg.charts.sets import DrawnRun, DrawnSet
from mlperf_pkg.curves import Phase, Span

MOST_SPANS = 40  # of one phase of one run
_INIT_SHARE = 0.3  # of the longest run: how much of an initialisation is drawn at most
_LANE_HEIGHT = 15  # pixels
_TRAINING = "training"
_COLORS = {Phase.INIT: GREY, _TRAINING: BLUE, Phase.EVALUATION: ORANGE}


def timeline(drawn: DrawnSet) -> Chart | None:
    """The chart; None where no run logged when it did what."""
    minutes = (run.row.minutes for run in drawn.runs if run.row.minutes is not None)
    earliest = -_INIT_SHARE * max(minutes, default=math.inf)
    spans = [span for index, run in enumerate(drawn.runs) for span in _bars(index, run, earliest)]
    edges = [edge for index, run in enumerate(drawn.runs) for edge in _edges(index, run)]
    if not spans:
        return None
    most = max(len(_of(run, phase)) for run in drawn.runs for phase in Phase)
    partly = (
        f" Of up to {most} spans of a kind, {MOST_SPANS} are shown." if most > MOST_SPANS else ""
    )
    return Chart(
        name="timeline",
        title="Timeline of the runs",
        description=(
            f"{len(drawn.runs)} runs: initialisation before minute 0 (what is longer than"
            f" {_INIT_SHARE:.0%} of a run is cut), training, evaluations, and the ends of epochs or"
            f" blocks as lines.{partly}"
        ),
        spec=view(_LAYERS, _LANE_HEIGHT * len(drawn.runs)),
        data={"spans": spans, "edges": edges},
    )


def _of(run: DrawnRun, *phases: Phase) -> list[Span]:
    return [span for span in run.curve.spans if span.phase in phases]


def _bars(index: int, run: DrawnRun, earliest: float) -> Iterator[Mapping[str, Any]]:
    whole = run.row.minutes
    named = {"run": run.name, "order": index}
    if whole is not None:
        length = {"start": 0, "stop": rounded(whole), "minutes": rounded(whole)}
        yield {**named, "phase": _TRAINING, **length}
    for phase in (Phase.INIT, Phase.EVALUATION):
        for span in thinned(_of(run, phase), MOST_SPANS):
            yield {
                **named,
                "phase": phase,
                "start": rounded(max(span.start, earliest)),
                "stop": rounded(max(span.stop, earliest)),
                "minutes": rounded(span.stop - span.start),
            }


def _edges(index: int, run: DrawnRun) -> Iterator[Mapping[str, Any]]:
    for span in thinned(_of(run, Phase.EPOCH, Phase.BLOCK), MOST_SPANS):
        yield {"run": run.name, "order": index, "stop": rounded(span.stop)}


_LANE: Spec = {
    "field": "run",
    "type": "nominal",
    "title": None,
    "sort": {"field": "order", "op": "min"},
    "axis": {"labelLimit": 110, "labelOverlap": False, "ticks": False, "domain": False},
}
_LAYERS: list[Spec] = [
    {
        "data": {"name": "spans"},
        "mark": {"type": "bar", "height": {"band": 0.75}},
        "encoding": {
            "y": _LANE,
            "x": {"field": "start", "type": "quantitative", "title": "minutes from run_start"},
            "x2": {"field": "stop"},
            "color": {
                "field": "phase",
                "type": "nominal",
                "scale": {"domain": list(_COLORS), "range": list(_COLORS.values())},
            },
            "tooltip": tooltip("run", "phase", "start", "minutes"),
        },
    },
    {
        "data": {"name": "edges"},
        "mark": {"type": "tick", "color": "currentColor", "opacity": 0.45, "thickness": 1},
        "encoding": {"y": _LANE, "x": {"field": "stop", "type": "quantitative"}},
    },
]
