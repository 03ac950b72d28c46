"""The chart of convergence of a benchmark: a line for each result set, that of its median run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low

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
from mlperf_pkg.commands.charts.scaling import Looks, named
from mlperf_pkg.commands.charts.sets import COUNTS, DrawnRun, DrawnSet
from mlperf_pkg.run.evaluations import goals


def convergence(
    benchmark: str, members: Sequence[tuple[DrawnSet, str]], looks: Looks, max_points: int
) -> Iterator[Chart]:
    """Yield the chart of several result sets, each with its accelerator, if they were evaluated."""
    drawn = [(one, looks.name(model), run) for one, model in members if (run := _typical(one))]
    if len(drawn) < 2:  # noqa: PLR2004
        return
    first = drawn[0][0]
    targets = goals(first.rules)
    metric = next(iter(targets), "")
    lines = [_line(*member, metric, max_points) for member in drawn]
    points = [point for line in lines for point in line]
    if not points:
        return
    names = [accelerator for _, accelerator, _ in drawn]
    target = targets.get(metric)
    aim = "" if target is None else f" The dashed line is the target, {target:g}."
    yield Chart(
        name="convergence",
        title=f"Convergence of all result sets: {benchmark}",
        description=(
            f"{metric or 'evaluation'} against {first.unit} trained; of each result set the run"
            f" with the median time.{aim}"
        ),
        spec=view(_layers(metric or "evaluation", first.unit, looks, names), 320),
        data={"points": points, "target": [] if target is None else [{"target": target}]},
    )


def _typical(drawn: DrawnSet) -> DrawnRun | None:
    """Return the run with the median time among those that count and have evaluations."""
    runs = [
        run
        for run in drawn.runs
        if run.state == COUNTS and run.curve.evaluations and run.row.minutes is not None
    ]
    times = [run.row.minutes for run in runs]
    return runs[times.index(median_low(times))] if runs else None  # type: ignore[type-var]


def _line(drawn: DrawnSet, accelerator: str, run: DrawnRun, metric: str, limit: int) -> Rows:
    names = {"set": named(drawn.row.submitter, drawn.row.system), "accelerator": accelerator}
    evaluations = [item for item in run.curve.evaluations if metric in item.values]
    return [
        {**names, "at": rounded(item.position, 5), "value": rounded(item.values[metric], 4)}
        for item in thinned(evaluations, limit)
    ]


def _layers(quality: str, unit: str, looks: Looks, names: Iterable[str]) -> list[Spec]:
    look = looks.encoding(names, "color", "shape")
    position = {"x": quantitative("at", f"{unit} trained"), "y": quantitative("value", quality)}
    mark = {"type": "point", "filled": True, "size": 18, "opacity": 0.8}
    facts = tooltip("set", "accelerator", "at", "value")
    return [
        {
            "data": {"name": "target"},
            "mark": {"type": "rule", "color": ORANGE, "strokeDash": [6, 4], "size": 2},
            "encoding": {"y": {"field": "target", "type": "quantitative"}},
        },
        {
            "data": {"name": "points"},
            "mark": {"type": "line", "size": 1.2, "opacity": 0.6},
            "encoding": {
                **position,
                "detail": {"field": "set", "type": "nominal"},
                "order": {"field": "at", "type": "quantitative"},
                "color": look["color"],
            },
        },
        {
            "data": {"name": "points"},
            "mark": mark,
            "encoding": {**position, **look, "tooltip": facts},
        },
    ]
