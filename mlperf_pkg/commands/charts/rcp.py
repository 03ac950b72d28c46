"""The chart of the RCP test: a result set among the reference convergence points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import Any

from msgspec.structs import replace

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
    dots,
    layer,
    nominal,
    quantitative,
    rounded,
    styled,
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

_TITLE = "Reference convergence points"
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
    runs = rules.runs
    reference = reference_points(
        drawn.usage, drawn.ruleset, rules.name, runs=runs.required, drop=runs.drop
    )
    if not reference:
        return None
    own = _own(test, drawn.row.system)
    kinds = [_MEAN, _PRUNED, _LIMIT, *(point["kind"] for point in own)]
    means = f"their means, the smallest acceptable mean, and this set: {wording.rcp(drawn.row)}"
    return _chart(_data(reference, runs.required), own, drawn.unit, kinds, means)


def points_chart(
    reference: Sequence[ReferencePoint], required: int, unit: str, subject: str
) -> Chart:
    """Return the chart of reference points alone, for submissions of ``required`` runs."""
    data = _data(tuple(reference), required)
    present = {point["kind"] for point in data["points"]}
    kinds = [*(kind for kind in (_MEAN, _PRUNED) if kind in present), _LIMIT]
    means = "their means, and the smallest acceptable mean"
    return replace(_chart(data, [], unit, kinds, means), subject=subject)


def _chart(
    data: Mapping[str, Rows], own: Rows, unit: str, kinds: Sequence[str], means: str
) -> Chart:
    """Return the chart of reference data and ``own`` results; ``means`` says what else it shows."""
    text = f"Batch size against {unit} to converge: every reference run as a tick, {means}."
    if far := len(data["far"]):
        runs = wording.counted(far, "reference run")
        text += f" {runs} beyond {_FAR} times the median not shown."
    return Chart("rcp", _TITLE, text, _spec(unit, kinds), {**data, "own": own})


def _own(test: RcpRow, system: str | None) -> Rows:
    """Return the point of a result set, if it has a mean at a batch size."""
    if test.mean is None or not isfinite(test.mean) or test.batch_size <= 0:
        return []
    limit = None if test.minimum is None else rounded(test.minimum, 7)
    margin = "" if test.margin_percent is None else margin_in_words(test.margin_percent)
    return [
        {
            "batch": test.batch_size,
            "mean": rounded(test.mean, 7),
            "kind": _PASS if test.official_pass else _FAIL,
            "name": system,
            "limit": NO_LIMIT if test.no_limit_reason else limit,
            "margin": NO_LIMIT if test.no_limit_reason else margin,
        }
    ]


@lru_cache(maxsize=64)
def _data(reference: tuple[ReferencePoint, ...], required: int) -> Mapping[str, Rows]:
    """Return the reference data, the same rows for all result sets of one benchmark.

    A page stores rows that are the same only once.
    """
    hull = prune(reference)
    along = list(_along(hull, required))
    kept = {point.name for point in hull}
    runs = [(point, value) for point in reference for value in point.to_converge]
    return {
        "points": [_point(point, _MEAN if point.name in kept else _PRUNED) for point in reference],
        "runs": [_run(*run) for run in runs if not _is_far(*run)],
        "far": [_run(*run) for run in runs if _is_far(*run)],
        "hull": [_on_line(point.batch_size, point.mean, _MEAN) for point in along],
        # None breaks the line where there is no lower limit.
        "limit": [
            _on_line(point.batch_size, point.minimum if has_limit(point) else None, _LIMIT)
            for point in along
        ],
    }


def _is_far(point: ReferencePoint, value: float) -> bool:
    return value > _FAR * median(point.to_converge)


def _run(point: ReferencePoint, value: float) -> Mapping[str, Any]:
    return {"batch": point.batch_size, "mean": rounded(value, 6)}


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
    scale = {"type": "log", "base": 2, "nice": False, "padding": 20}
    x = quantitative("batch", "global batch size", {"format": ",d"}, **scale)
    # Browsers may have a wider font.
    y = quantitative("mean", f"{unit} to converge", {"titlePadding": 14}, padding=10)
    looks = styled("kind", _KINDS, kinds, legend={"columns": 2})
    line = {"x": x, "y": y, "color": looks["color"]}
    tick = {"type": "tick", "orient": "horizontal", "color": GREY, "opacity": 0.45}
    facts = ("name", "batch", "mean", "limit")
    label = {"type": "text", "dy": 20, "fontWeight": "bold"}
    return view(
        [
            layer("runs", tick, x=x, y=y),
            layer("hull", {"type": "line", "size": 2}, **line),
            layer("limit", {"type": "line", "strokeDash": [6, 4], "size": 2}, **line),
            layer("points", dots(60), x=x, y=y, **looks, tooltip=tooltip(*facts, "kind")),
            layer("own", dots(220), x=x, y=y, **looks, tooltip=tooltip(*facts, "margin", "kind")),
            layer("own", label, x=x, y=y, text=nominal("margin")),
        ],
        260,
    )
