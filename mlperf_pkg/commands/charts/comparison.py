"""The chart of a comparison: speed of systems, per dollar, accelerator and joule too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.charts.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Chart,
    Spec,
    rounded,
    tooltip,
    view,
)
from mlperf_pkg.commands.compare.model import Row
from mlperf_pkg.results import wording

_LANE_HEIGHT = 16  # pixels, of each measure of a system


class _Measure(Struct, frozen=True):
    """A ratio: its field in a row, and its colour."""

    field: str
    color: str


_MEASURES = {  # by name in the legend
    "speed": _Measure("speed", BLUE),
    "per dollar": _Measure("performance_per_dollar", GREEN),
    "per accelerator": _Measure("speed_per_accelerator", GREY),
    "per joule": _Measure("performance_per_joule", ORANGE),
}


def comparison(rows: Iterable[Row]) -> Chart | None:
    """Return a chart of the ratios of all results to their baselines; None if there are none."""
    ratios = [ratio for row in rows if not row.baseline for ratio in _ratios(row)]
    if not ratios:
        return None
    return Chart(
        name="comparison",
        title="Relative to the baseline of each benchmark (1 = equal)",
        description=f"{wording.counted(len(ratios), 'ratio')} to the baseline of each benchmark.",
        spec=_spec(ratios),
        data={"ratios": ratios},
    )


def _ratios(row: Row) -> Iterator[Mapping[str, Any]]:
    result = row.result
    for name, measure in _MEASURES.items():
        ratio = getattr(row, measure.field)
        if ratio is not None and isfinite(ratio):
            yield {
                "set": ", ".join(filter(None, (*result.group, result.name))),
                "measure": name,
                "ratio": rounded(ratio, 7),
                "label": f"{ratio:.2f}",
            }


def _spec(ratios: list[Mapping[str, Any]]) -> Spec:
    drawn = {ratio["measure"] for ratio in ratios}
    measures = [name for name in _MEASURES if name in drawn]
    position: Spec = {
        "y": {
            "field": "set",
            "type": "nominal",
            "title": None,
            "sort": None,
            "axis": {"ticks": False, "domain": False, "labelLimit": 330, "labelOverlap": False},
        },
        "yOffset": {"field": "measure", "type": "nominal", "sort": measures},
        "x": {"field": "ratio", "type": "quantitative", "title": "times the baseline"},
    }
    color: Spec = {
        "field": "measure",
        "type": "nominal",
        "scale": {"domain": measures, "range": [_MEASURES[name].color for name in measures]},
    }
    lanes = len({ratio["set"] for ratio in ratios}) * (len(measures) + 1)
    return view(
        [
            {
                "mark": {"type": "bar"},
                "encoding": {
                    **position,
                    "color": color,
                    "tooltip": tooltip("set", "measure", "ratio"),
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4},
                "encoding": {**position, "text": {"field": "label", "type": "nominal"}},
            },
            {"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"x": {"datum": 1}}},
        ],
        _LANE_HEIGHT * lanes,
        data={"name": "ratios"},
        padding={"left": 5, "top": 5, "right": 45, "bottom": 5},
    )
