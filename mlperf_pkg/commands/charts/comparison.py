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
    decades,
    rounded,
    tooltip,
    view,
)
from mlperf_pkg.commands.compare.ratios import Result, Row
from mlperf_pkg.results import wording

_LANE_HEIGHT = 16  # pixels, of each measure of a system
_LANES = {"ticks": False, "domain": False, "labelLimit": 330, "labelOverlap": False}
_SMALL = 0.1  # ratios below it are shown with two digits
_ROOM = 4.0  # times: free space left of bars on a logarithmic axis, for their labels
_LOG_FROM = 10  # smallest to largest ratio: above it the axis is logarithmic


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
    compared = [row for row in rows if not row.baseline]
    rounds = {row.result.round for row in compared}
    ratios = [ratio for row in compared for ratio in _ratios(row, named=len(rounds) > 1)]
    if not ratios:
        return None
    return Chart(
        name="comparison",
        title="Relative to the baseline of each benchmark (1 = equal)",
        description=f"{wording.counted(len(ratios), 'ratio')} to the baseline of each benchmark.",
        spec=_spec(ratios),
        data={"ratios": ratios},
        subject=f"round {', '.join(sorted(filter(None, rounds)))}" if any(rounds) else "",
    )


def _ratios(row: Row, *, named: bool) -> Iterator[Mapping[str, Any]]:
    """Yield the ratios of a row; its round is named if ``named``."""
    for name, measure in _MEASURES.items():
        ratio = getattr(row, measure.field)
        if ratio is not None and isfinite(ratio):
            yield {
                "set": _label(row.result, named=named),
                "measure": name,
                "ratio": rounded(ratio, 7),
                "label": f"{ratio:.2f}" if ratio >= _SMALL else f"{ratio:.2g}",
            }


def _label(result: Result, *, named: bool) -> str:
    """Return two lines: the system with its submitter, and the group in which it is compared."""
    owner = f"{result.submitter}: " if result.submitter else ""
    round_ = f"round {result.round}" if named and result.round else ""
    group = ", ".join(filter(None, (*result.group, round_)))
    return f"{owner}{result.system}\n{group}"


def _ends(ratios: list[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the smallest and the largest ratio, of which 1 is one."""
    values: list[float] = [1.0, *(ratio["ratio"] for ratio in ratios)]
    return min(values), max(values)


def _is_logarithmic(ratios: list[Mapping[str, Any]]) -> bool:
    least, most = _ends(ratios)
    return most > _LOG_FROM * least


def _axis(ratios: list[Mapping[str, Any]]) -> Spec:
    """Return the encoding of ratios: logarithmic if they span more than ``_LOG_FROM``."""
    x: Spec = {"field": "ratio", "type": "quantitative", "title": "times the baseline"}
    if not _is_logarithmic(ratios):
        return x
    least, most = _ends(ratios)
    room = _ROOM if least < 1 else 1
    scale = {"type": "log", "domain": [rounded(least / room), most], "nice": False}
    ticks = {"values": decades(least / room, most), "format": ",~r"}
    return {**x, "title": "times the baseline, logarithmic", "scale": scale, "axis": ticks}


def _spec(ratios: list[Mapping[str, Any]]) -> Spec:
    drawn = {ratio["measure"] for ratio in ratios}
    measures = [name for name in _MEASURES if name in drawn]
    position: Spec = {
        "y": {
            "field": "set",
            "type": "nominal",
            "title": None,
            "sort": None,
            "axis": {**_LANES, "labelExpr": r"split(datum.label, '\n')"},
        },
        "yOffset": {"field": "measure", "type": "nominal", "sort": measures},
        "x": _axis(ratios),
    }
    lanes = len({ratio["set"] for ratio in ratios}) * (len(measures) + 1)
    return view(
        [
            {"mark": {"type": "rule", "strokeDash": [4, 3]}, "encoding": {"x": {"datum": 1}}},
            _bars(position, measures, from_one=_is_logarithmic(ratios)),
            *_labels(position, beside_bars=_is_logarithmic(ratios)),
        ],
        _LANE_HEIGHT * lanes,
        data={"name": "ratios"},
        padding={"left": 5, "top": 5, "right": 45, "bottom": 5},
    )


def _bars(position: Spec, measures: list[str], *, from_one: bool) -> Spec:
    """Return the bars, which begin at 0 or, on a logarithmic axis, at 1."""
    begin: Spec = {"x2": {"datum": 1}} if from_one else {}
    colors = [_MEASURES[name].color for name in measures]
    color = {
        "field": "measure",
        "type": "nominal",
        "scale": {"domain": measures, "range": colors},
    }
    facts = tooltip("set", "measure", "ratio")
    return {
        "mark": {"type": "bar"},
        "encoding": {**position, **begin, "color": color, "tooltip": facts},
    }


def _labels(position: Spec, *, beside_bars: bool) -> Iterator[Spec]:
    """Yield the labels right of the bars; ``beside_bars``, left of those that end left of 1."""
    sides = {"left": {"gte": 1}, "right": {"lt": 1}} if beside_bars else {"left": {"gte": 0}}
    for align, bounds in sides.items():
        yield {
            "transform": [{"filter": {"field": "ratio", **bounds}}],
            "mark": {"type": "text", "align": align, "dx": 4 if align == "left" else -4},
            "encoding": {**position, "text": {"field": "label", "type": "nominal"}},
        }
