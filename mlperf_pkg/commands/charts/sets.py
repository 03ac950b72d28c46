"""A result set to be drawn, and its charts: convergence, times, phases, the RCP test."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.charts.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    TARGET_RULE,
    Chart,
    Look,
    Rows,
    SharedRows,
    Spec,
    dots,
    layer,
    nominal,
    quantitative,
    rounded,
    styled,
    thinned,
    tooltip,
    view,
)
from mlperf_pkg.commands.notice import score
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.results import wording
from mlperf_pkg.results.rcp import (
    NO_LIMIT,
    ReferencePoint,
    allowance,
    comparison_at,
    divide,
    has_limit,
    margin_in_words,
    prune,
    reference_points,
)
from mlperf_pkg.results.report import RcpRow, ResultSetRow, RunRow
from mlperf_pkg.results.scoring import NO_TIME, NOT_CONVERGED
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.evaluations import Curve, Evaluation, PackedCurve, Phase, PhaseSpan, goals

COUNTS = "counts"
DROPPED = "dropped"
FAILED = "did not converge"
_STATES = {
    COUNTS: Look(BLUE, "circle"),
    DROPPED: Look(GREY, "cross"),
    FAILED: Look(RED, "triangle-up"),
}


class DrawnRun(Struct, frozen=True):
    """A run, its curve, and the ``name`` of its log."""

    row: RunRow
    curve: Curve | PackedCurve
    name: str

    @property
    def state(self) -> str:
        """Whether and how it counts in the score."""
        if self.row.dropped in (NOT_CONVERGED, NO_TIME):
            return FAILED
        if self.row.dropped:
            return DROPPED
        return COUNTS

    def evaluations(self, metric: str) -> list[Evaluation]:
        """Return the evaluations of a metric."""
        return [evaluation for evaluation in self.curve.evaluations if metric in evaluation.values]

    def spans(self, *phases: Phase) -> list[PhaseSpan]:
        """Return the spans of these phases."""
        return [span for span in self.curve.spans if span.phase in phases]


class DrawnSet(Struct, frozen=True):
    """A result set with its runs; whether its score ``is_verified`` is as where it is shown."""

    row: ResultSetRow
    runs: tuple[DrawnRun, ...]
    usage: str
    is_verified: bool = False

    @property
    def rules(self) -> Benchmark | None:
        """The rules of its benchmark, None if there are none."""
        return load_benchmark(self.usage, self.row.round, self.row.benchmark)

    @property
    def subject(self) -> str:
        """The set in words: ``ACME, dgx, bert (closed, round 2.0)``."""
        row = self.row
        details = [row.division or "no division", row.scaling or "", f"round {row.round}"]
        names = [row.submitter or "", row.system or "", row.benchmark]
        name = ", ".join(filter(None, names))
        detail = ", ".join(filter(None, details))
        return f"{name} ({detail})"

    @property
    def unit(self) -> str:
        """The unit in which convergence is counted."""
        rules = self.rules
        if rules is None:
            return "epochs or samples"
        return rules.unit


def _state_looks(runs: Sequence[DrawnRun]) -> dict[str, Spec]:
    """Return the encodings of the field ``state``, for these runs."""
    return styled("state", _STATES, (run.state for run in runs))


# ---- convergence: quality against training, a line per run, with the target ---------------


MOST_METRICS = 4
MAX_METRIC = 40  # characters of its name
_CROWD = 800  # points above which they are drawn small
_TARGET_LABEL: Spec = {"type": "text", "align": "left", "dx": 4, "dy": -7, "x": 0}


def curves(drawn: DrawnSet, max_points: int) -> Iterator[Chart]:
    """Yield a chart for each metric, with at most about ``max_points`` points of each run."""
    targets = goals(drawn.rules)
    metrics: dict[str, None] = {}
    for run in drawn.runs:
        for evaluation in run.curve.evaluations:
            metrics |= dict.fromkeys(evaluation.values)
    shown = [metric for metric in metrics if not targets or metric in targets][:MOST_METRICS]
    for number, metric in enumerate(shown, 1):
        name = "curves"
        if len(shown) > 1:
            name = f"curves-{number}"
        yield _curve(name, drawn, metric, targets.get(metric), max_points)


def _curve(name: str, drawn: DrawnSet, metric: str, target: float | None, max_points: int) -> Chart:
    quality = metric[:MAX_METRIC] or "evaluation"
    title = "Convergence"
    if metric:
        title += f": {quality}"
    text = f"{quality} against {drawn.unit} trained, {len(drawn.runs)} runs"
    goal: Rows = []
    if target is not None:
        text += f" and the target {target:g}"
        goal = [{"target": target, "label": f"target {target:g}"}]
    text += "."
    longest = max(len(run.evaluations(metric)) for run in drawn.runs)
    if longest > max_points:
        text += (
            f" A run has up to {longest} evaluations; at most {max_points} of each run are shown."
        )
    rows = list(_curve_points(drawn, metric, max_points))
    layers = _curve_layers(quality, drawn, crowded=len(rows) > _CROWD)
    return Chart(name, title, text, view(layers, 260), {"points": rows, "target": goal})


def _curve_points(drawn: DrawnSet, metric: str, max_points: int) -> Iterator[Mapping[str, Any]]:
    for run in drawn.runs:
        for evaluation in thinned(run.evaluations(metric), max_points):
            value = evaluation.values[metric]
            yield {
                "run": run.name,
                "state": run.state,
                "at": rounded(evaluation.position, 7),
                "value": rounded(value),
            }


def _curve_layers(quality: str, drawn: DrawnSet, *, crowded: bool) -> list[Spec]:
    line = {"type": "line", "size": 1.2, "opacity": 0.55}
    points = dots(22, 0.8)
    if crowded:
        line["opacity"] = 0.3
        points = dots(7, 0.6)
    looks = _state_looks(drawn.runs)
    target = {"field": "target", "type": "quantitative"}
    x = quantitative("at", f"{drawn.unit} trained")
    y = quantitative("value", quality)
    order = {"field": "at", "type": "quantitative"}
    by_run = {"detail": nominal("run"), "order": order, "color": looks["color"]}
    place = {"x": quantitative("at"), "y": quantitative("value")}
    facts = tooltip("run", "at", "value", "state")
    return [
        layer("target", TARGET_RULE, y=target),
        layer("target", _TARGET_LABEL, y=target, text=nominal("label")),
        layer("points", line, x=x, y=y, **by_run),
        layer("points", points, **place, **looks, tooltip=facts),
    ]


# ---- times: a box of the runs that count, and every run as a point ------------------------


_ROWS = 5  # of points, so that equal times do not cover each other
_BOX_LINE: Spec = {"type": "rule", "color": BLUE}
_BOX: Spec = {"type": "bar", "height": 14, "color": BLUE, "opacity": 0.45}
_BOX_MEDIAN: Spec = {"type": "tick", "color": "currentColor", "height": 14, "thickness": 2}
_MEAN_LABEL: Spec = {"type": "text", "dx": 5, "align": "left", "y": 4}


def times(drawn: DrawnSet) -> Chart | None:
    """Return the chart; None if no run has a time."""
    timed = [run for run in drawn.runs if run.row.minutes is not None]
    if not timed:
        return None
    runs = list(_timed_rows(timed))
    counted = [run["minutes"] for run in runs if run["state"] == COUNTS]
    dropped = [run for run in timed if run.state == DROPPED]
    mean = drawn.row.unscaled_minutes
    mean_in_words = score(mean, is_verified=drawn.is_verified)
    data = {"runs": runs, "box": _box(counted), "mean": _mean(mean, mean_in_words)}
    text = (
        f"{len(timed)} runs with a time, {len(counted)} of them count,"
        f" {len(dropped)} are dropped as fastest or slowest."
        f" Olympic mean {mean_in_words} minutes."
    )
    layers = _time_layers(_state_looks(timed))
    # A layer without data makes a warning in the console.
    shown = [spec for spec in layers if data[spec["data"]["name"]]]
    return Chart("times", "Times of the runs", text, view(shown, 110), data)


def _timed_rows(timed: Sequence[DrawnRun]) -> Iterator[Mapping[str, Any]]:
    for index, run in enumerate(timed):
        minutes = run.row.minutes or 0
        yield {
            "run": run.name,
            "minutes": rounded(minutes, 7),
            "state": run.state,
            "why": wording.outcome(run.row),
            "row": index % _ROWS,
        }


def _box(minutes: Sequence[float]) -> Rows:
    """Return the box of the runs that count; a box has two ends."""
    if len(minutes) <= 1:
        return []
    low, median_, high = quantiles(minutes, method="inclusive")
    box = {
        "least": min(minutes),
        "most": max(minutes),
        "low": rounded(low, 7),
        "median": rounded(median_, 7),
        "high": rounded(high, 7),
        "at": -1.6,
    }
    return [box]


def _mean(minutes: float | None, in_words: str) -> Rows:
    if minutes is None:
        return []
    return [{"minutes": rounded(minutes, 7), "label": f"olympic mean {in_words}"}]


def _time_layers(looks: Mapping[str, Spec]) -> list[Spec]:
    """Return the mean, a box from the fastest to the slowest with its middle half, and points."""
    x = quantitative("minutes", "minutes to train")
    y = {"field": "row", "type": "quantitative", "axis": None, "scale": {"domain": [-3, _ROWS]}}
    box_y = {**y, "field": "at"}
    least = {**x, "field": "least"}
    low = {**x, "field": "low"}
    middle = {**x, "field": "median"}
    mean_facts = tooltip("label")
    run_facts = tooltip("run", "minutes", "why")
    return [
        layer("mean", TARGET_RULE, x=x, tooltip=mean_facts),
        layer("mean", _MEAN_LABEL, x=x, text={"field": "label"}),
        layer("box", _BOX_LINE, y=box_y, x=least, x2={"field": "most"}),
        layer("box", _BOX, y=box_y, x=low, x2={"field": "high"}),
        layer("box", _BOX_MEDIAN, y=box_y, x=middle),
        layer("runs", dots(60, 0.85), x=x, y=y, **looks, tooltip=run_facts),
    ]


# ---- timeline: initialisation, epochs and evaluations of each run, in minutes -------------


_DECIMALS = 3  # of minutes, if the longest run is between 1 and 10 minutes
_SHORTEST = 1e-3  # minutes: the shortest axis
_INIT_SHARE = 0.3  # of the longest run: the longest part of an initialisation that is drawn
_LANE_HEIGHT = 15  # pixels
_TRAINING = "training"
_COLORS = {Phase.INIT: GREY, _TRAINING: BLUE, Phase.EVALUATION: ORANGE}
_AXIS = {"labelLimit": 110, "labelOverlap": False, "ticks": False, "domain": False}
_LANE: Spec = nominal("run", title=None, sort={"field": "order", "op": "min"}, axis=_AXIS)
_BAR: Spec = {"type": "bar", "height": {"band": 0.75}, "clip": True}
_EDGE: Spec = {
    "type": "tick",
    "color": "currentColor",
    "opacity": 0.45,
    "thickness": 1,
    "clip": True,
}


def timeline(drawn: DrawnSet, max_spans: int) -> Chart | None:
    """Return the chart with about ``max_spans`` spans per phase of a run; None if it is empty."""
    spans = list(_bars(drawn, max_spans))
    if not spans:
        return None
    longest = _longest(drawn)
    earliest = min(span["start"] for span in spans)
    earliest = max(earliest, -_INIT_SHARE * longest)
    decimals = _DECIMALS - math.floor(math.log10(longest))
    layers = _timeline_layers(round(earliest, decimals), round(longest, decimals))
    data = {
        "spans": [_rounded_times(span, decimals) for span in spans],
        "edges": [_rounded_times(edge, decimals) for edge in _edges(drawn, max_spans)],
    }
    text = _timeline_text(drawn, max_spans)
    spec = view(layers, _LANE_HEIGHT * len(drawn.runs))
    return Chart("timeline", "Timeline of the runs", text, spec, data)


def _timeline_text(drawn: DrawnSet, max_spans: int) -> str:
    text = (
        f"{len(drawn.runs)} runs: initialisation before minute 0 (cut at {_INIT_SHARE:.0%} of the"
        " longest run), training, evaluations, and the ends of epochs or blocks as lines."
    )
    logged = 0
    for run in drawn.runs:
        phases = Counter(span.phase for span in run.curve.spans)
        logged = max(logged, *phases.values(), 0)
    if logged > max_spans:
        text += (
            f" A run has up to {logged} spans of a phase; at most {max_spans} of them are shown."
        )
    return text


def _bars(drawn: DrawnSet, max_spans: int) -> Iterator[dict[str, Any]]:
    for order, run in enumerate(drawn.runs):
        lane = {"run": run.name, "order": order}
        minutes = to_finite(run.row.minutes)
        if minutes is not None:
            yield {**lane, "phase": _TRAINING, "start": 0.0, "stop": minutes}
        for phase in (Phase.INIT, Phase.EVALUATION):
            for span in thinned(run.spans(phase), max_spans):
                yield {**lane, "phase": phase.value, "start": span.start, "stop": span.stop}


def _edges(drawn: DrawnSet, max_spans: int) -> Iterator[dict[str, Any]]:
    """Yield the ends of epochs or blocks."""
    for order, run in enumerate(drawn.runs):
        for span in thinned(run.spans(Phase.EPOCH, Phase.BLOCK), max_spans):
            yield {"run": run.name, "order": order, "stop": span.stop}


def _longest(drawn: DrawnSet) -> float:
    """Return the minutes of the longest run.

    What some runs evaluate after their end does not count; some have no end.
    """
    longest = _SHORTEST
    for run in drawn.runs:
        last_stop = max((span.stop for span in run.curve.spans), default=0.0)
        minutes = to_finite(run.row.minutes) or last_stop
        longest = max(longest, minutes)
    return longest


def _rounded_times(row: dict[str, Any], decimals: int) -> dict[str, Any]:
    rounded_row = row.copy()
    for name in ("start", "stop"):
        if name in row:
            rounded_row[name] = round(row[name], decimals)
    return rounded_row


def _timeline_layers(earliest: float, latest: float) -> list[Spec]:
    x = quantitative("", "minutes from run_start", domain=[earliest, latest])
    start = {**x, "field": "start"}
    stop = {**x, "field": "stop"}
    scale = {"domain": list(_COLORS), "range": list(_COLORS.values())}
    color = nominal("phase", scale=scale)
    facts = tooltip("run", "phase", "start", "stop")
    return [
        layer("spans", _BAR, y=_LANE, x=start, x2={"field": "stop"}, color=color, tooltip=facts),
        layer("edges", _EDGE, y=_LANE, x=stop),
    ]


# ---- the RCP test: a result set among the reference convergence points --------------------

_TITLE = "Reference convergence points"
_CHORD = 2e-5  # of a limit: by how much a straight line of the chart may be off
_FAR = 3  # times the median of its point: a reference run beyond it would flatten all others
_MEAN = "reference mean"
_LIMIT = "smallest acceptable mean"
_PRUNED = "pruned reference"
_PASSED = "this set: pass"
_FAILED = "this set: fail"
_KINDS = {
    _MEAN: Look(BLUE, "circle"),
    _PRUNED: Look(GREY, "cross"),
    _LIMIT: Look(ORANGE, "stroke"),
    _PASSED: Look(GREEN, "diamond"),
    _FAILED: Look(RED, "diamond"),
}
_HULL_LINE: Spec = {"type": "line", "size": 2}
_LIMIT_LINE: Spec = {"type": "line", "size": 1.5}
_LIMIT_TICK: Spec = {"type": "tick", "orient": "horizontal", "size": 16, "thickness": 3}
_REFERENCE_TICK: Spec = {"type": "tick", "orient": "horizontal", "color": GREY, "opacity": 0.45}
_MARGIN_LABEL: Spec = {"type": "text", "dy": 20, "fontWeight": "bold"}


def rcp(drawn: DrawnSet) -> Chart | None:
    """Return the chart; None if no test was made or there are no reference points."""
    test = drawn.row.rcp
    rules = drawn.rules
    if test is None or rules is None:
        return None
    ruleset = load_round(drawn.usage, drawn.row.round).ruleset
    required = rules.runs.required
    reference = reference_points(
        drawn.usage, ruleset, rules.name, runs=required, drop=rules.runs.drop
    )
    if not reference:
        return None
    own = _own_point(test, drawn.row.system)
    least = min(point["batch"] for point in own) if own else math.inf
    allowed = allowance(drawn.usage, rules.name)
    data = _reference_data(reference, required, min(least, reference[0].batch_size), allowed)
    kinds = [_MEAN, _PRUNED, _LIMIT]
    kinds += [point["kind"] for point in own]
    means = f"their means, the smallest acceptable mean, and this set ({wording.rcp(drawn.row)})"
    return _rcp_chart(data, own, drawn.unit, kinds, means)


def points_chart(
    reference: Sequence[ReferencePoint], required: int, unit: str, subject: str
) -> Chart:
    """Return the chart of reference points alone, for submissions of ``required`` runs."""
    data = _reference_data(tuple(reference), required, reference[0].batch_size)
    kinds = [_LIMIT]
    kinds += [point["kind"] for point in data["points"]]
    means = "their means, and the smallest acceptable mean"
    chart = _rcp_chart(data, [], unit, kinds, means)
    return replace(chart, subject=subject)


def _rcp_chart(
    data: Mapping[str, Rows], own: Rows, unit: str, kinds: Sequence[str], means: str
) -> Chart:
    """Return the chart of reference data and ``own`` results; ``means`` says what else it shows."""
    text = f"The {unit} to converge at each batch size: every reference run as a tick, {means}."
    text += (
        " The smallest acceptable mean jumps at each point, as the t-test assumes another number of"
        " runs between points."
    )
    far = len(data["far"])
    if far:
        runs = wording.counted(far, "reference run")
        text += f" Not shown: {runs} above {_FAR} times the median at the same batch size."
    return Chart("rcp", _TITLE, text, _rcp_spec(unit, kinds), {**data, "own": own})


def _own_point(test: RcpRow, system: str | None) -> Rows:
    """Return the point of a result set, if it has a mean at a batch size."""
    if test.mean is None or not math.isfinite(test.mean) or test.batch_size <= 0:
        return []
    limit: float | str | None = None
    margin = ""
    if test.no_limit_reason:
        limit = NO_LIMIT
        margin = NO_LIMIT
    else:
        if test.minimum is not None:
            limit = rounded(test.minimum, 7)
        if test.margin_percent is not None:
            margin = margin_in_words(test.margin_percent)
    kind = _FAILED
    if test.official_pass:
        kind = _PASSED
    point = {
        "batch": test.batch_size,
        "mean": rounded(test.mean, 7),
        "kind": kind,
        "name": system,
        "limit": limit,
        "margin": margin,
    }
    return [point]


@lru_cache(maxsize=64)
def _reference_data(
    reference: tuple[ReferencePoint, ...], required: int, least: float, allowed: int = 0
) -> Mapping[str, Rows]:
    """Return the reference data, the same rows for all result sets of one benchmark.

    A page stores rows that are the same only once. The limit begins at the batch size ``least``;
    it is lower by the units ``allowed``.
    """
    hull = prune(reference)
    lines = _reference_lines(hull, required, least, allowed)
    near: list[Mapping[str, Any]] = []
    far: list[Mapping[str, Any]] = []
    for point in reference:
        farthest = _FAR * median(point.to_converge)
        for value in point.to_converge:
            run = {"batch": point.batch_size, "mean": rounded(value, 6)}
            if value > farthest:
                far.append(run)
            else:
                near.append(run)
    points = list(_reference_rows(reference, hull))
    data: dict[str, Rows] = {"points": points, "runs": near, "far": far, **lines}
    return {name: SharedRows(rows) for name, rows in data.items()}


def _reference_lines(
    hull: Sequence[ReferencePoint], required: int, least: float, allowed: int
) -> Mapping[str, Rows]:
    """Return the lines of the means and the limits, and the limits at the points."""
    means: list[Mapping[str, Any]] = []
    limits: list[Mapping[str, Any]] = []
    for size in _batch_sizes(hull, least, required):
        comparison = comparison_at(hull, size, runs=required)
        point = comparison.point
        assert point  # noqa: S101 - no batch size is beyond the last point
        limit = None  # breaks the line where there is no lower limit
        if has_limit(point):
            limit = point.minimum - allowed
        if size >= hull[0].batch_size:
            means.append(_line_point(size, point.mean, _MEAN))
        limits.append(_line_point(size, limit, _LIMIT))
    sizes = {point.batch_size for point in hull}
    ticks = [limit for limit in limits if limit["batch"] in sizes and limit["mean"] is not None]
    return {"hull": means, "limit": limits, "ticks": ticks}


def _reference_rows(
    reference: Sequence[ReferencePoint], hull: Sequence[ReferencePoint]
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of the points; those beside the ``hull`` are pruned."""
    kept = {point.name for point in hull}
    for point in reference:
        limit: float | str = NO_LIMIT
        if has_limit(point):
            limit = rounded(point.minimum, 7)
        kind = _PRUNED
        if point.name in kept:
            kind = _MEAN
        yield {
            "batch": point.batch_size,
            "mean": rounded(point.mean, 7),
            "limit": limit,
            "kind": kind,
            "name": point.name,
        }


def _line_point(batch: float, mean: float | None, kind: str) -> Mapping[str, Any]:
    shown = None
    if mean is not None:
        shown = rounded(mean, 6)
    return {"batch": batch, "mean": shown, "kind": kind}


def _batch_sizes(hull: Sequence[ReferencePoint], least: float, runs: int) -> Iterator[float]:
    """Yield the batch sizes between which lines of the test are straight, from ``least`` on.

    The limit at a point is that of its reference runs; at the batch sizes next to it, that of as
    many runs as every line between two points is taken for. So there it jumps.
    """
    if least < hull[0].batch_size:
        yield least
    for low, high in pairwise(hull):
        yield low.batch_size
        first = round(low.batch_size) + 1
        last = round(high.batch_size) - 1
        if first <= last:
            yield from _sizes_between(low, high, range(first, last + 1), runs)
    yield hull[-1].batch_size


def _sizes_between(low: ReferencePoint, high: ReferencePoint, sizes: range, runs: int) -> list[int]:
    """Return some of the ``sizes``: the ends, steps between them, and where a limit begins or ends.

    Straight lines of the test bend on a logarithmic axis.
    """

    def at(size: int) -> ReferencePoint:
        return ReferencePoint.between(low, high, size, runs=runs)

    is_last_limited = has_limit(at(sizes[-1]))
    change = bisect_left(sizes, True, key=lambda size: has_limit(at(size)) == is_last_limited)
    chosen = {sizes[0], sizes[-1], sizes[change], sizes[max(0, change - 1)]}
    for part in filter(None, (sizes[:change], sizes[change:])):
        size = part[0]
        while size in part:
            chosen.add(size)
            point = at(size)
            bend = size * abs(at(size + 1).minimum - point.minimum)
            if not has_limit(point):
                bend = size * abs(at(size + 1).mean - point.mean)
            exponent = math.sqrt(divide(4 * _CHORD * point.mean, bend))
            size = max(size + 1, math.floor(size * math.exp(min(1, exponent))))
    return sorted(chosen)


def _rcp_spec(unit: str, kinds: Sequence[str]) -> Spec:
    scale = {"type": "log", "base": 2, "nice": False, "padding": 20}
    x = quantitative("batch", "global batch size", {"format": ",d"}, **scale)
    # Browsers may have a wider font.
    y = quantitative("mean", f"{unit} to converge", {"titlePadding": 14}, padding=10)
    place = {"x": x, "y": y}
    looks = styled("kind", _KINDS, kinds, legend={"columns": 2})
    color = looks["color"]
    point_facts = tooltip("name", "batch", "mean", "limit", "kind")
    own_facts = tooltip("name", "batch", "mean", "limit", "margin", "kind")
    layers = [
        layer("runs", _REFERENCE_TICK, **place),
        layer("hull", _HULL_LINE, **place, color=color),
        layer("limit", _LIMIT_LINE, **place, color=color),
        layer("ticks", _LIMIT_TICK, **place, color=color),
        layer("points", dots(60), **place, **looks, tooltip=point_facts),
        layer("own", dots(220), **place, **looks, tooltip=own_facts),
        layer("own", _MARGIN_LABEL, **place, text=nominal("margin")),
    ]
    return view(layers, 260)
