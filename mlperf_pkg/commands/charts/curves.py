"""The chart of convergence: quality against training, a line per run, with the target."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mlperf_pkg.commands.charts.chart import (
    ORANGE,
    Chart,
    Rows,
    Spec,
    quantitative,
    rounded,
    thinned,
    tooltip,
    view,
)
from mlperf_pkg.commands.charts.sets import DrawnRun, DrawnSet, by_state
from mlperf_pkg.run.evaluations import Evaluation, goals

MOST_METRICS = 4
MAX_METRIC = 40  # characters of its name
_CROWD = 800  # points above which they are drawn small
_POINTS = {False: {"size": 22, "opacity": 0.8}, True: {"size": 7, "opacity": 0.6}}


def curves(drawn: DrawnSet, max_points: int) -> Iterator[Chart]:
    """Yield a chart for each metric, with at most about ``max_points`` points of each run."""
    targets = goals(drawn.rules)
    logged = dict.fromkeys(
        metric
        for run in drawn.runs
        for evaluation in run.curve.evaluations
        for metric in evaluation.values
    )
    metrics = [metric for metric in logged if not targets or metric in targets][:MOST_METRICS]
    for number, metric in enumerate(metrics, 1):
        name = "curves" if len(metrics) == 1 else f"curves-{number}"
        yield _chart(name, drawn, metric, targets.get(metric), max_points)


def _chart(name: str, drawn: DrawnSet, metric: str, target: float | None, max_points: int) -> Chart:
    points = [point for run in drawn.runs for point in _points(run, metric, max_points)]
    goal = [] if target is None else [{"target": target, "label": f"target {target:g}"}]
    quality = metric[:MAX_METRIC] or "evaluation"
    states = {run.state for run in drawn.runs}
    longest = max(len(_evaluations(run, metric)) for run in drawn.runs)
    aim = "" if target is None else f" and the target {target:g}"
    text = f"{quality} against {drawn.unit} trained, {len(drawn.runs)} runs{aim}."
    if longest > max_points:
        text += f" Of up to {longest} evaluations of a run, {max_points} are shown."
    return Chart(
        name=name,
        title="Convergence" + (f": {quality}" if metric else ""),
        description=text,
        spec=view(_layers(quality, drawn.unit, states, crowded=len(points) > _CROWD), 260),
        data={"points": points, "target": goal},
    )


def _layers(quality: str, unit: str, states: Collection[str], *, crowded: bool) -> list[Spec]:
    return [
        {
            "data": {"name": "target"},
            "mark": {"type": "rule", "color": ORANGE, "strokeDash": [6, 4], "size": 2},
            "encoding": {"y": {"field": "target", "type": "quantitative"}},
        },
        {
            "data": {"name": "target"},
            "mark": {"type": "text", "align": "left", "dx": 4, "dy": -7, "x": 0},
            "encoding": {
                "y": {"field": "target", "type": "quantitative"},
                "text": {"field": "label", "type": "nominal"},
            },
        },
        {
            "data": {"name": "points"},
            "mark": {"type": "line", "size": 1.2, "opacity": 0.3 if crowded else 0.55},
            "encoding": {
                "x": quantitative("at", f"{unit} trained"),
                "y": quantitative("value", quality),
                "detail": {"field": "run", "type": "nominal"},
                "order": {"field": "at", "type": "quantitative"},
                "color": by_state("color", states),
            },
        },
        {
            "data": {"name": "points"},
            "mark": {"type": "point", "filled": True, **_POINTS[crowded]},
            "encoding": {
                "x": quantitative("at"),
                "y": quantitative("value"),
                "color": by_state("color", states),
                "shape": by_state("shape", states),
                "tooltip": tooltip("run", "at", "value", "state"),
            },
        },
    ]


def _evaluations(run: DrawnRun, metric: str) -> list[Evaluation]:
    return [evaluation for evaluation in run.curve.evaluations if metric in evaluation.values]


def _points(run: DrawnRun, metric: str, max_points: int) -> Rows:
    return [
        {
            "run": run.name,
            "state": run.state,
            "at": rounded(evaluation.position, 7),
            "value": rounded(evaluation.values[metric]),
        }
        for evaluation in thinned(_evaluations(run, metric), max_points)
    ]
