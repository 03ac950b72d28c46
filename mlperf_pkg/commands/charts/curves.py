"""How quality grew with training: a line a run, a point an evaluation, and the target."""

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
from mlperf_pkg.commands.charts.curve_reader import goals
from mlperf_pkg.commands.charts.sets import DrawnRun, DrawnSet, by_state

MOST_METRICS = 4
MAX_METRIC = 40  # characters of its name
_CROWD = 800  # points above which they are drawn small
_POINTS = {False: {"size": 22, "opacity": 0.8}, True: {"size": 7, "opacity": 0.6}}


def curves(drawn: DrawnSet, most: int) -> Iterator[Chart]:
    """A chart for each metric that was evaluated, with at most so many points of each run."""
    targets = goals(drawn.rules)
    found = dict.fromkeys(e.metric for run in drawn.runs for e in run.curve.evaluations)
    shown = [metric for metric in found if not targets or metric in targets][:MOST_METRICS]
    for number, metric in enumerate(shown):
        yield _chart(drawn, metric, targets.get(metric), number if len(shown) > 1 else None, most)


def _chart(
    drawn: DrawnSet, metric: str, target: float | None, number: int | None, most: int
) -> Chart:
    points = [point for run in drawn.runs for point in _points(run, metric, most)]
    goal = [] if target is None else [{"target": target, "label": f"target {target:g}"}]
    quality = metric[:MAX_METRIC] or "evaluation"
    states = {run.state for run in drawn.runs}
    made = max(sum(e.metric == metric for e in run.curve.evaluations) for run in drawn.runs)
    partly = f" Of up to {made} evaluations of a run, {most} are shown." if made > most else ""
    aim = "" if target is None else f" and the target {target:g}"
    return Chart(
        name="curves" if number is None else f"curves-{number + 1}",
        title="Convergence" + (f": {quality}" if metric else ""),
        description=f"{quality} against {drawn.unit} trained, {len(drawn.runs)} runs{aim}.{partly}",
        spec=view(_layers(quality, drawn.unit, states, len(points) > _CROWD), 260),
        data={"points": points, "target": goal},
    )


def _layers(quality: str, unit: str, states: Collection[str], crowded: bool) -> list[Spec]:
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


def _points(run: DrawnRun, metric: str, most: int) -> Rows:
    own = [each for each in run.curve.evaluations if each.metric == metric]
    return [
        {
            "run": run.name,
            "state": run.state,
            "at": rounded(each.at, 7),
            "value": rounded(each.value),
        }
        for each in thinned(own, most)
    ]
