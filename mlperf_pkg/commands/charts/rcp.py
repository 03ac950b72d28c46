"""The chart of the RCP test: a result set among the reference convergence points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any

from mlperf_pkg.commands.charts.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Chart,
    Look,
    Rows,
    Spec,
    by_look,
    quantitative,
    rounded,
    tooltip,
    view,
)
from mlperf_pkg.commands.charts.sets import DrawnSet
from mlperf_pkg.results import wording
from mlperf_pkg.results.rcp import (
    NO_LIMIT,
    ReferencePoint,
    has_limit,
    margin_in_words,
    prune,
    reference_points,
)
from mlperf_pkg.results.report import RcpRow
from mlperf_pkg.rulebook.model import Runs

_STEPS = 8  # from one point to the next
_FAR = 3  # times the median of its point: a reference run beyond it would flatten all others
_MEAN, _LIMIT, _PRUNED = "reference mean", "smallest acceptable mean", "pruned reference"
_PASS, _FAIL = "this set: pass", "this set: fail"
_KINDS = {
    _MEAN: Look(BLUE, "circle"),
    _PRUNED: Look(GREY, "cross"),
    _LIMIT: Look(ORANGE, "stroke"),
    _PASS: Look(GREEN, "diamond"),
    _FAIL: Look(RED, "diamond"),
}


def rcp(drawn: DrawnSet) -> Chart | None:
    """Return the chart; None if no test was made or there are no reference points."""
    test, rules = drawn.row.rcp, drawn.rules
    if test is None or rules is None:
        return None
    reference = _reference(drawn.usage, drawn.ruleset, rules.name, rules.runs)
    if not reference["points"]:
        return None
    own = list(_own(drawn))
    return Chart(
        name="rcp",
        title="Reference convergence points",
        description=(
            f"Batch size against {drawn.unit} to converge: every reference run as a tick, their"
            f" means, the smallest acceptable mean, and this set: {wording.rcp(drawn.row)}."
            f"{_left_out(reference)}"
        ),
        spec=_spec(drawn.unit, [_MEAN, _PRUNED, _LIMIT, *(point["kind"] for point in own)]),
        data={**reference, "own": own},
    )


def points_chart(points: Sequence[ReferencePoint], required: int, unit: str, subject: str) -> Chart:
    """Return the chart of reference points alone, for submissions of ``required`` runs."""
    reference = _data(tuple(points), required)
    kinds = [
        kind for kind in (_MEAN, _PRUNED) if any(p["kind"] == kind for p in reference["points"])
    ]
    return Chart(
        name="rcp",
        title="Reference convergence points",
        description=(
            f"Batch size against {unit} to converge: every reference run as a tick, their means,"
            f" and the smallest acceptable mean.{_left_out(reference)}"
        ),
        spec=_spec(unit, [*kinds, _LIMIT]),
        data={**reference, "own": []},
        subject=subject,
    )


def _left_out(reference: Mapping[str, Rows]) -> str:
    number = len(reference["far"])
    runs = wording.counted(number, "reference run")
    return f" {runs} beyond {_FAR} times the median not shown." if number else ""


def _own(drawn: DrawnSet) -> Iterator[Mapping[str, Any]]:
    test = drawn.row.rcp
    if test and test.mean is not None and isfinite(test.mean) and test.batch_size > 0:
        yield {
            "batch": test.batch_size,
            "mean": rounded(test.mean, 7),
            "kind": _PASS if test.official_pass else _FAIL,
            "name": drawn.row.system,
            "limit": _limit(test),
            "margin": _margin(test),
        }


def _limit(test: RcpRow) -> float | str | None:
    if test.no_limit_reason:
        return NO_LIMIT
    return None if test.minimum is None else rounded(test.minimum, 7)


def _margin(test: RcpRow) -> str:
    """Return the label of a set: its RCP margin, or that there is no lower limit."""
    if test.no_limit_reason:
        return NO_LIMIT
    return "" if test.margin_percent is None else margin_in_words(test.margin_percent)


def _reference(usage: str, ruleset: str, benchmark: str, runs: Runs) -> Mapping[str, Rows]:
    points = reference_points(usage, ruleset, benchmark, runs=runs.required, drop=runs.drop)
    return _data(points, runs.required)


@lru_cache(maxsize=64)
def _data(points: tuple[ReferencePoint, ...], required: int) -> Mapping[str, Rows]:
    """Return the reference data that all result sets of one benchmark share."""
    hull = prune(points)
    along = list(_along(hull, required))
    kept = {point.name for point in hull}
    runs_ = [(point, value) for point in points for value in point.to_converge]
    return {
        "points": [_point(point, _MEAN if point.name in kept else _PRUNED) for point in points],
        "runs": [_run(*run) for run in runs_ if not _is_far(*run)],
        "far": [_run(*run) for run in runs_ if _is_far(*run)],
        "hull": [_on_line(point.batch_size, point.mean, _MEAN) for point in along],
        "limit": [_on_line(point.batch_size, _minimum(point), _LIMIT) for point in along],
    }


def _is_far(point: ReferencePoint, value: float) -> bool:
    return value > _FAR * median(point.to_converge)


def _run(point: ReferencePoint, value: float) -> Mapping[str, Any]:
    return {"batch": point.batch_size, "mean": rounded(value, 6)}


def _minimum(point: ReferencePoint) -> float | None:
    """Return the smallest acceptable mean; None, which breaks the line, if it limits nothing."""
    return point.minimum if has_limit(point) else None


def _point(point: ReferencePoint, kind: str) -> Mapping[str, Any]:
    return {
        "batch": point.batch_size,
        "mean": rounded(point.mean, 7),
        "limit": rounded(point.minimum, 7) if has_limit(point) else NO_LIMIT,
        "kind": kind,
        "name": point.name,
    }


def _on_line(batch: float, mean: float | None, kind: str) -> Mapping[str, Any]:
    shown = None if mean is None else rounded(mean, 6)
    return {"batch": rounded(batch), "mean": shown, "kind": kind}


def _along(hull: Sequence[ReferencePoint], runs: int) -> Iterator[ReferencePoint]:
    """Yield the points and some between them: straight lines of the test bend on a log axis."""
    for low, high in pairwise(hull):
        yield low
        for step in range(1, _STEPS):
            size = low.batch_size * (high.batch_size / low.batch_size) ** (step / _STEPS)
            yield ReferencePoint.between(low, high, size, runs=runs)
    yield from hull[-1:]


def _spec(unit: str, kinds: Sequence[str]) -> Spec:
    x = quantitative("batch", "global batch size", type="log", base=2, nice=False, padding=20)
    x = {**x, "axis": {"format": ",d"}}
    y = quantitative("mean", f"{unit} to converge", padding=10)
    y = {**y, "axis": {"titlePadding": 14}}  # browsers may have a wider font
    position = {"x": x, "y": y, "color": _by_kind("color", kinds)}
    marked = {**position, "shape": _by_kind("shape", kinds)}
    return view(
        [
            {
                "data": {"name": "runs"},
                "mark": {"type": "tick", "orient": "horizontal", "color": GREY, "opacity": 0.45},
                "encoding": {"x": x, "y": y},
            },
            {"data": {"name": "hull"}, "mark": {"type": "line", "size": 2}, "encoding": position},
            {
                "data": {"name": "limit"},
                "mark": {"type": "line", "strokeDash": [6, 4], "size": 2},
                "encoding": position,
            },
            {
                "data": {"name": "points"},
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {
                    **marked,
                    "tooltip": tooltip("name", "batch", "mean", "limit", "kind"),
                },
            },
            {
                "data": {"name": "own"},
                "mark": {"type": "point", "filled": True, "size": 220, "opacity": 1},
                "encoding": {
                    **marked,
                    "tooltip": tooltip("name", "batch", "mean", "limit", "margin", "kind"),
                },
            },
            {
                "data": {"name": "own"},
                "mark": {"type": "text", "dy": 20, "fontWeight": "bold"},
                "encoding": {"x": x, "y": y, "text": {"field": "margin", "type": "nominal"}},
            },
        ],
        260,
    )


def _by_kind(channel: str, kinds: Sequence[str]) -> Spec:
    return {**by_look("kind", channel, _KINDS, kinds), "legend": {"columns": 2}}
