"""A result set to be drawn, and its charts: convergence, times, phases, the RCP test."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from statistics import median, quantiles
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.charts import chart as vega
from mlperf_pkg.commands.charts.chart import Chart, Look, Rows, Spec
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.results import rcp as points
from mlperf_pkg.results import wording
from mlperf_pkg.results.rcp import ReferencePoint
from mlperf_pkg.results.report import RcpRow, ResultSetRow, RunRow
from mlperf_pkg.results.scoring import NO_TIME, NOT_CONVERGED
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Benchmark
from mlperf_pkg.run.evaluations import Curve, Evaluation, Phase, PhaseSpan, goals

COUNTS = "counts"
DROPPED = "dropped"
FAILED = "did not converge"
_STATES = {
    COUNTS: Look(vega.BLUE, "circle"),
    DROPPED: Look(vega.GREY, "cross"),
    FAILED: Look(vega.RED, "triangle-up"),
}


class DrawnRun(Struct, frozen=True):
    """A run and its curve."""

    row: RunRow
    curve: Curve

    @property
    def name(self) -> str:
        """The name of its log."""
        return self.row.path.rpartition("/")[2]

    @property
    def state(self) -> str:
        """Whether and how it counts in the score."""
        if self.row.dropped in (NOT_CONVERGED, NO_TIME):
            return FAILED
        return DROPPED if self.row.dropped else COUNTS

    def evaluations(self, metric: str) -> list[Evaluation]:
        """Return the evaluations of a metric."""
        return [one for one in self.curve.evaluations if metric in one.values]

    def spans(self, *phases: Phase) -> list[PhaseSpan]:
        """Return the spans of these phases."""
        return [span for span in self.curve.spans if span.phase in phases]


class DrawnSet(Struct, frozen=True):
    """A result set with its runs."""

    row: ResultSetRow
    runs: tuple[DrawnRun, ...]
    usage: str

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
        return f"{', '.join(filter(None, names))} ({', '.join(filter(None, details))})"

    @property
    def unit(self) -> str:
        """The unit in which convergence is counted."""
        return self.rules.unit if self.rules else "epochs or samples"


# ---- convergence: quality against training, a line per run, with the target ---------------


MOST_METRICS = 4
MAX_METRIC = 40  # characters of its name
_CROWD = 800  # points above which they are drawn small


def curves(drawn: DrawnSet, max_points: int) -> Iterator[Chart]:
    """Yield a chart for each metric, with at most about ``max_points`` points of each run."""
    targets = goals(drawn.rules)
    evaluations = chain.from_iterable(run.curve.evaluations for run in drawn.runs)
    logged = dict.fromkeys(chain.from_iterable(one.values for one in evaluations))
    metrics = [metric for metric in logged if not targets or metric in targets][:MOST_METRICS]
    for number, metric in enumerate(metrics, 1):
        name = "curves" if len(metrics) == 1 else f"curves-{number}"
        yield _curve(name, drawn, metric, targets.get(metric), max_points)


def _curve(name: str, drawn: DrawnSet, metric: str, target: float | None, max_points: int) -> Chart:
    rows = [
        {
            "run": run.name,
            "state": run.state,
            "at": vega.rounded(evaluation.position, 7),
            "value": vega.rounded(evaluation.values[metric]),
        }
        for run in drawn.runs
        for evaluation in vega.thinned(run.evaluations(metric), max_points)
    ]
    goal = [] if target is None else [{"target": target, "label": f"target {target:g}"}]
    quality = metric[:MAX_METRIC] or "evaluation"
    longest = max(len(run.evaluations(metric)) for run in drawn.runs)
    aim = "" if target is None else f" and the target {target:g}"
    text = f"{quality} against {drawn.unit} trained, {len(drawn.runs)} runs{aim}."
    if longest > max_points:
        text += f" Of up to {longest} evaluations of a run, {max_points} are shown."
    title = "Convergence" + (f": {quality}" if metric else "")
    looks = vega.styled("state", _STATES, (run.state for run in drawn.runs))
    layers = _curve_layers(quality, drawn.unit, looks, crowded=len(rows) > _CROWD)
    return Chart(name, title, text, vega.view(layers, 260), {"points": rows, "target": goal})


def _curve_layers(
    quality: str, unit: str, looks: Mapping[str, Spec], *, crowded: bool
) -> list[Spec]:
    target = {"field": "target", "type": "quantitative"}
    label = {"type": "text", "align": "left", "dx": 4, "dy": -7, "x": 0}
    line = {"type": "line", "size": 1.2, "opacity": 0.3 if crowded else 0.55}
    dots = vega.dots(7, 0.6) if crowded else vega.dots(22, 0.8)
    order = {"field": "at", "type": "quantitative"}
    by_run = {"detail": vega.nominal("run"), "order": order, "color": looks["color"]}
    x = vega.quantitative("at", f"{unit} trained")
    y = vega.quantitative("value", quality)
    at = vega.quantitative("at")
    value = vega.quantitative("value")
    facts = vega.tooltip("run", "at", "value", "state")
    return [
        vega.layer("target", vega.TARGET_RULE, y=target),
        vega.layer("target", label, y=target, text=vega.nominal("label")),
        vega.layer("points", line, x=x, y=y, **by_run),
        vega.layer("points", dots, x=at, y=value, **looks, tooltip=facts),
    ]


# ---- times: a box of the runs that count, and every run as a point ------------------------


_ROWS = 5  # of points, so that equal times do not cover each other


def times(drawn: DrawnSet) -> Chart | None:
    """Return the chart; None if no run has a time."""
    timed = [run for run in drawn.runs if run.row.minutes is not None]
    if not timed:
        return None
    runs: list[dict[str, Any]] = [
        {
            "run": run.name,
            "minutes": vega.rounded(run.row.minutes or 0, 7),
            "state": run.state,
            "why": wording.outcome(run.row),
            "row": index % _ROWS,
        }
        for index, run in enumerate(timed)
    ]
    counted = [run["minutes"] for run in runs if run["state"] == COUNTS]
    mean = drawn.row.unscaled_minutes
    label = f"olympic mean {wording.minutes(mean)}"
    box: list[Mapping[str, Any]] = []
    if len(counted) > 1:  # a box has two ends
        cuts = (vega.rounded(cut, 7) for cut in quantiles(counted, method="inclusive"))
        middle = dict(zip(("low", "median", "high"), cuts, strict=True))
        box = [{"least": min(counted), "most": max(counted), **middle, "at": -1.6}]
    means = [] if mean is None else [{"minutes": vega.rounded(mean, 7), "label": label}]
    data: dict[str, Rows] = {"runs": runs, "box": box, "mean": means}
    text = (
        f"{len(timed)} runs with a time, {len(counted)} of them count,"
        f" {sum(run['state'] == DROPPED for run in runs)} are dropped as fastest or slowest."
        f" Olympic mean {wording.minutes(mean)} minutes."
    )
    # A layer without data makes a warning in the console.
    looks = vega.styled("state", _STATES, (run.state for run in timed))
    layers = [one for one in _time_layers(looks) if data[one["data"]["name"]]]
    return Chart("times", "Times of the runs", text, vega.view(layers, 110), data)


def _time_layers(looks: Mapping[str, Spec]) -> list[Spec]:
    """Return the mean, a box from the fastest to the slowest with its middle half, and points."""
    x = vega.quantitative("minutes", "minutes to train")
    y = {"field": "row", "type": "quantitative", "axis": None, "scale": {"domain": [-3, _ROWS]}}
    half = {"type": "bar", "height": 14, "color": vega.BLUE, "opacity": 0.45}
    median = {"type": "tick", "color": "currentColor", "height": 14, "thickness": 2}
    label = {"type": "text", "dx": 5, "align": "left", "y": 4}
    box = {**y, "field": "at"}
    line = {"type": "rule", "color": vega.BLUE}
    facts = vega.tooltip("run", "minutes", "why")
    return [
        vega.layer("mean", vega.TARGET_RULE, x=x, tooltip=vega.tooltip("label")),
        vega.layer("mean", label, x=x, text={"field": "label"}),
        vega.layer("box", line, y=box, x={**x, "field": "least"}, x2={"field": "most"}),
        vega.layer("box", half, y=box, x={**x, "field": "low"}, x2={"field": "high"}),
        vega.layer("box", median, y=box, x={**x, "field": "median"}),
        vega.layer("runs", vega.dots(60, 0.85), x=x, y=y, **looks, tooltip=facts),
    ]


# ---- timeline: initialisation, epochs and evaluations of each run, in minutes -------------


_DECIMALS = 3  # of minutes, if the longest run is between 1 and 10 minutes
_SHORTEST = 1e-3  # minutes: the shortest axis
_INIT_SHARE = 0.3  # of the longest run: the longest part of an initialisation that is drawn
_LANE_HEIGHT = 15  # pixels
_TRAINING = "training"
_COLORS = {Phase.INIT: vega.GREY, _TRAINING: vega.BLUE, Phase.EVALUATION: vega.ORANGE}
_AXIS = {"labelLimit": 110, "labelOverlap": False, "ticks": False, "domain": False}
_LANE: Spec = vega.nominal("run", title=None, sort={"field": "order", "op": "min"}, axis=_AXIS)


def timeline(drawn: DrawnSet, max_spans: int) -> Chart | None:
    """Return the chart with about ``max_spans`` spans per phase of a run; None if it is empty."""
    rows = [row for index, run in enumerate(drawn.runs) for row in _bars(index, run, max_spans)]
    if not rows:
        return None
    # Some runs evaluate after their end, which does not count; some have no end.
    stops = (max((span.stop for span in run.curve.spans), default=0.0) for run in drawn.runs)
    lengths = (to_finite(r.row.minutes) or stop for r, stop in zip(drawn.runs, stops, strict=True))
    longest = max(_SHORTEST, *lengths)
    earliest = max(min(row["start"] for row in rows), -_INIT_SHARE * longest)
    edges: list[dict[str, Any]] = [
        {"run": run.name, "order": index, "stop": span.stop}
        for index, run in enumerate(drawn.runs)
        for span in vega.thinned(run.spans(Phase.EPOCH, Phase.BLOCK), max_spans)
    ]
    decimals = _DECIMALS - math.floor(math.log10(longest))
    logged = max(len(run.spans(phase)) for run in drawn.runs for phase in Phase)
    text = (
        f"{len(drawn.runs)} runs: initialisation before minute 0 (cut at {_INIT_SHARE:.0%} of the"
        " longest run), training, evaluations, and the ends of epochs or blocks as lines."
    )
    if logged > max_spans:
        text += f" Of up to {logged} spans of a phase, {max_spans} are shown."
    layers = _timeline_layers(round(earliest, decimals), round(longest, decimals))
    spec = vega.view(layers, _LANE_HEIGHT * len(drawn.runs))
    data = {
        "spans": [r | {name: round(r[name], decimals) for name in ("start", "stop")} for r in rows],
        "edges": [edge | {"stop": round(edge["stop"], decimals)} for edge in edges],
    }
    return Chart("timeline", "Timeline of the runs", text, spec, data)


def _bars(index: int, run: DrawnRun, max_spans: int) -> Iterator[dict[str, Any]]:
    lane = {"run": run.name, "order": index}
    minutes = to_finite(run.row.minutes)
    if minutes is not None:
        yield {**lane, "phase": _TRAINING, "start": 0.0, "stop": minutes}
    for phase in (Phase.INIT, Phase.EVALUATION):
        for span in vega.thinned(run.spans(phase), max_spans):
            yield {**lane, "phase": phase.value, "start": span.start, "stop": span.stop}


def _timeline_layers(earliest: float, latest: float) -> list[Spec]:
    x = vega.quantitative("", "minutes from run_start", domain=[earliest, latest])
    edge = {"type": "tick", "color": "currentColor", "opacity": 0.45, "thickness": 1, "clip": True}
    bar = {"type": "bar", "height": {"band": 0.75}, "clip": True}
    scale = {"domain": list(_COLORS), "range": list(_COLORS.values())}
    color = vega.nominal("phase", scale=scale)
    facts = vega.tooltip("run", "phase", "start", "stop")
    at = {name: {"y": _LANE, "x": {**x, "field": name}} for name in ("start", "stop")}
    return [
        vega.layer("spans", bar, **at["start"], x2={"field": "stop"}, color=color, tooltip=facts),
        vega.layer("edges", edge, **at["stop"]),
    ]


# ---- the RCP test: a result set among the reference convergence points --------------------

_TITLE = "Reference convergence points"
_STEPS = 8  # from one point to the next
_FAR = 3  # times the median of its point: a reference run beyond it would flatten all others
_MEAN = "reference mean"
_LIMIT = "smallest acceptable mean"
_PRUNED = "pruned reference"
_PASSED = "this set: pass"
_FAILED = "this set: fail"
_KINDS = {
    _MEAN: Look(vega.BLUE, "circle"),
    _PRUNED: Look(vega.GREY, "cross"),
    _LIMIT: Look(vega.ORANGE, "stroke"),
    _PASSED: Look(vega.GREEN, "diamond"),
    _FAILED: Look(vega.RED, "diamond"),
}


def rcp(drawn: DrawnSet) -> Chart | None:
    """Return the chart; None if no test was made or there are no reference points."""
    test = drawn.row.rcp
    rules = drawn.rules
    if test is None or rules is None:
        return None
    runs = rules.runs
    ruleset = load_round(drawn.usage, drawn.row.round).ruleset
    reference = points.reference_points(
        drawn.usage, ruleset, rules.name, runs=runs.required, drop=runs.drop
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
    kinds = [_LIMIT, *(point["kind"] for point in data["points"])]
    means = "their means, and the smallest acceptable mean"
    return replace(_chart(data, [], unit, kinds, means), subject=subject)


def _chart(
    data: Mapping[str, Rows], own: Rows, unit: str, kinds: Sequence[str], means: str
) -> Chart:
    """Return the chart of reference data and ``own`` results; ``means`` says what else it shows."""
    text = f"Batch size against {unit} to converge: every reference run as a tick, {means}."
    far = len(data["far"])
    if far:
        runs = wording.counted(far, "reference run")
        text += f" {runs} beyond {_FAR} times the median not shown."
    return Chart("rcp", _TITLE, text, _spec(unit, kinds), {**data, "own": own})


def _own(test: RcpRow, system: str | None) -> Rows:
    """Return the point of a result set, if it has a mean at a batch size."""
    if test.mean is None or not math.isfinite(test.mean) or test.batch_size <= 0:
        return []
    limit = None if test.minimum is None else vega.rounded(test.minimum, 7)
    margin = "" if test.margin_percent is None else points.margin_in_words(test.margin_percent)
    return [
        {
            "batch": test.batch_size,
            "mean": vega.rounded(test.mean, 7),
            "kind": _PASSED if test.official_pass else _FAILED,
            "name": system,
            "limit": points.NO_LIMIT if test.no_limit_reason else limit,
            "margin": points.NO_LIMIT if test.no_limit_reason else margin,
        }
    ]


@lru_cache(maxsize=64)
def _data(reference: tuple[ReferencePoint, ...], required: int) -> Mapping[str, Rows]:
    """Return the reference data, the same rows for all result sets of one benchmark.

    A page stores rows that are the same only once.
    """
    hull = points.prune(reference)
    along = list(_along(hull, required))
    kept = {point.name for point in hull}
    near = list[Mapping[str, Any]]()
    far = list[Mapping[str, Any]]()
    for point in reference:
        for value in point.to_converge:
            own = far if value > _FAR * median(point.to_converge) else near
            own.append({"batch": point.batch_size, "mean": vega.rounded(value, 6)})
    return {
        "points": [
            {
                "batch": p.batch_size,
                "mean": vega.rounded(p.mean, 7),
                "limit": vega.rounded(p.minimum, 7) if points.has_limit(p) else points.NO_LIMIT,
                "kind": _MEAN if p.name in kept else _PRUNED,
                "name": p.name,
            }
            for p in reference
        ],
        "runs": near,
        "far": far,
        "hull": [_on_line(point.batch_size, point.mean, _MEAN) for point in along],
        # None breaks the line where there is no lower limit.
        "limit": [
            _on_line(point.batch_size, point.minimum if points.has_limit(point) else None, _LIMIT)
            for point in along
        ],
    }


def _on_line(batch: float, mean: float | None, kind: str) -> Mapping[str, Any]:
    shown = None if mean is None else vega.rounded(mean, 6)
    return {"batch": vega.rounded(batch), "mean": shown, "kind": kind}


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
    x = vega.quantitative("batch", "global batch size", {"format": ",d"}, **scale)
    # Browsers may have a wider font.
    y = vega.quantitative("mean", f"{unit} to converge", {"titlePadding": 14}, padding=10)
    looks = vega.styled("kind", _KINDS, kinds, legend={"columns": 2})
    place = {"x": x, "y": y}
    line = {**place, "color": looks["color"]}
    tick = {"type": "tick", "orient": "horizontal", "color": vega.GREY, "opacity": 0.45}
    facts = ("name", "batch", "mean", "limit")
    of_point = vega.tooltip(*facts, "kind")
    of_own = vega.tooltip(*facts, "margin", "kind")
    label = {"type": "text", "dy": 20, "fontWeight": "bold"}
    layers = [
        vega.layer("runs", tick, **place),
        vega.layer("hull", {"type": "line", "size": 2}, **line),
        vega.layer("limit", {"type": "line", "strokeDash": [6, 4], "size": 2}, **line),
        vega.layer("points", vega.dots(60), **place, **looks, tooltip=of_point),
        vega.layer("own", vega.dots(220), **place, **looks, tooltip=of_own),
        vega.layer("own", label, **place, text=vega.nominal("margin")),
    ]
    return vega.view(layers, 260)
