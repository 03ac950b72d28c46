"""Systems against a baseline: speed, and speed per dollar, accelerator and joule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

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
from mlperf_pkg.commands.compare.ratios import Row
from mlperf_pkg.results import wording as words

_MEASURES = {  # as the legend tells them: the field of a row, and a colour
    "speed": ("speed", BLUE),
    "per dollar": ("performance_per_dollar", GREEN),
    "per accelerator": ("speed_per_accelerator", GREY),
    "per joule": ("performance_per_joule", ORANGE),
}
_LANE_HEIGHT = 16  # pixels, of each measure of a system


def comparison(rows: Iterable[Row]) -> Chart | None:
    """The ratios of all results to the baseline of their benchmark; None where there are none."""
    ratios = [ratio for row in rows if not row.baseline for ratio in _ratios(row)]
    if not ratios:
        return None
    return Chart(
        name="comparison",
        title="Relative to the baseline of each benchmark (1 = equal)",
        description=f"{words.counted(len(ratios), 'ratio')} to the baseline of each benchmark.",
        spec=_spec(ratios),
        data={"ratios": ratios},
    )


def _ratios(row: Row) -> Iterator[Mapping[str, Any]]:
    entry = row.entry
    for measure, (field, _) in _MEASURES.items():
        ratio = getattr(row, field)
        if ratio is not None and isfinite(ratio):
            yield {
                "set": ", ".join(filter(None, (*entry.group, entry.name))),
                "measure": measure,
                "ratio": rounded(ratio, 7),
                "label": f"{ratio:.2f}",
            }


def _spec(ratios: list[Mapping[str, Any]]) -> Spec:
    measures = [name for name in _MEASURES if any(each["measure"] == name for each in ratios)]
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
        "scale": {"domain": measures, "range": [_MEASURES[name][1] for name in measures]},
    }
    lanes = len({each["set"] for each in ratios}) * (len(measures) + 1)
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
