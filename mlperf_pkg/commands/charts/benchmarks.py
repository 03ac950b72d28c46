"""The charts of a benchmark over its systems: scores, scaling, rounds, convergence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil, floor, isfinite, log2
from statistics import median_low
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.names import plain_name
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
    Spec,
    decades,
    dots,
    layer,
    nominal,
    prepared,
    quantitative,
    rounded,
    styled,
    thinned,
    tooltip,
    view,
)
from mlperf_pkg.commands.charts.sets import COUNTS, DrawnRun, DrawnSet
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.run.evaluations import goals

_OTHER = "no division"
_DIVISIONS = {
    "closed": Look(BLUE, "circle"),
    "open": Look(GREEN, "square"),
    _OTHER: Look(GREY, "cross"),
}
_LANES = {"grid": True, "ticks": False, "domain": False, "labelLimit": 330, "labelOverlap": False}
_LANE_HEIGHT = 18  # pixels
_LOG_FROM = 8  # slowest to fastest: above it the axis is logarithmic


def scoreboard(rows: Iterable[ResultSetRow]) -> Iterator[tuple[str, Chart]]:
    """Yield a chart for each benchmark that has a score, with its name."""
    scored = [row for row in rows if row.score_minutes and isfinite(row.score_minutes)]
    for benchmark in sorted({row.benchmark for row in scored}):
        of_benchmark = [row for row in scored if row.benchmark == benchmark]
        [chart] = prepared("scoreboard", benchmark, partial(map, _board, [of_benchmark]))
        yield benchmark, chart


def _board(rows: list[ResultSetRow]) -> Chart:
    ordered = sorted(rows, key=lambda row: (row.score_minutes or 0, row.path))
    fastest, slowest = ordered[0].score_minutes or 0, ordered[-1].score_minutes or 0
    scores = [_score(order, row) for order, row in enumerate(ordered)]
    best = f"{ordered[0].submitter or ''} {ordered[0].system or ''}".strip()
    rounds = sorted({row.round for row in rows})
    return Chart(
        name="scoreboard",
        title=f"Scores: {ordered[0].benchmark}",
        description=(
            f"{wording.counted(len(ordered), 'score')} from {wording.minutes(fastest)} minutes"
            f" ({best}) to {wording.minutes(slowest)} minutes."
        ),
        spec=_board_spec(scores, logarithmic=slowest > _LOG_FROM * fastest),
        data={"scores": scores},
        subject=f"round{'s' if len(rounds) > 1 else ''} {', '.join(rounds)}",
    )


def _score(order: int, row: ResultSetRow) -> Mapping[str, Any]:
    return {
        "set": named(row.submitter, row.system) or row.id,
        "minutes": rounded(row.score_minutes or 0, 7),
        "label": wording.minutes(row.score_minutes),
        "division": row.division if row.division in _DIVISIONS else _OTHER,
        "official": wording.VERDICTS[row.verdict.official],
        "rules": wording.VERDICTS[row.verdict.rules],
        "order": order,
    }


def _board_spec(scores: Rows, *, logarithmic: bool) -> Spec:
    present = {score["division"] for score in scores}
    divisions = [division for division in _DIVISIONS if division in present]
    minutes = [score["minutes"] for score in scores]
    # A logarithmic axis would have nine ticks per decade.
    ticks = {"values": decades(min(minutes), max(minutes))} if logarithmic else {}
    sort = {"field": "order", "op": "min"}
    position: Spec = {
        "y": nominal("set", title=None, sort=sort, axis=_LANES),
        "x": {
            "field": "minutes",
            "type": "quantitative",
            "title": "minutes" + (", logarithmic" if logarithmic else ""),
            "scale": {"type": "log"} if logarithmic else {"zero": True},
            "axis": {"format": ",~r", **ticks},
        },
    }
    looks = styled("division", _DIVISIONS, divisions)
    facts = tooltip("set", "minutes", "division", "official", "rules")
    label = {"type": "text", "align": "left", "dx": 9}
    lanes = len({score["set"] for score in scores}) + 1  # and some room
    return view(
        [
            layer("", dots(80), **position, **looks, tooltip=facts),
            layer("", label, **position, text=nominal("label")),
        ],
        _LANE_HEIGHT * lanes,
        data={"name": "scores"},
        padding={"left": 5, "top": 5, "right": 45, "bottom": 5},
    )


PURPLE, TEAL, PINK = "#8f63c4", "#2a8fa3", "#c95fa0"
PALETTE = (
    Look(BLUE, "circle"),
    Look(ORANGE, "square"),
    Look(GREEN, "triangle-up"),
    Look(PURPLE, "diamond"),
    Look(TEAL, "triangle-down"),
    Look(RED, "cross"),
    Look(PINK, "triangle-right"),
)
"""Looks of which each two differ in shape as well as in colour."""

OTHERS = "others"
_UNKNOWN = "unknown"
_REST = Look(GREY, "triangle-left")
_LEGEND = {"columns": 2, "labelLimit": 135}
_LEFT_OUT = {"NVIDIA", "AMD", "GPU"}  # words of names in a legend
_ROOM = 1.3  # times: free space below and above the points


class Point(Struct, frozen=True):
    """A score in a benchmark, in minutes, on a number of accelerators of one model.

    ``element`` is the id of its element in a page, empty for a published score.
    """

    round: str
    submitter: str
    system: str
    accelerator: str
    accelerators: int
    minutes: float
    availability: str = ""
    element: str = ""
    fails: str = ""

    @property
    def cost(self) -> float:
        """The minutes that one accelerator would take if scaling were ideal."""
        return self.minutes * self.accelerators


class Looks:
    """The looks of accelerators: the most frequent ones have their own, ``OTHERS`` share one."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names of all accelerators, as often as they are used."""
        spellings: dict[str, Counter[str]] = {}
        for name in names:
            spellings.setdefault(plain_name(name), Counter())[name] += 1
        ordered = sorted(spellings, key=lambda plain: (-spellings[plain].total(), plain))
        self._names = {
            plain: _shortened(spellings[plain].most_common(1)[0][0]) or _UNKNOWN
            for plain in ordered[: len(PALETTE)]
        }
        self._looks = {**dict(zip(self._names.values(), PALETTE, strict=False)), OTHERS: _REST}

    def name(self, accelerator: str) -> str:
        """Return the name of an accelerator in the legend."""
        return self._names.get(plain_name(accelerator), OTHERS)

    def encoding(self, names: Iterable[str]) -> dict[str, Spec]:
        """Return the encodings of the field ``accelerator``, for the ``names`` of a chart."""
        present = set(names)
        ordered = [name for name in self._looks if name in present]
        return styled("accelerator", self._looks, ordered, legend=_LEGEND)


def _shortened(name: str) -> str:
    return " ".join(word for word in name.split() if word not in _LEFT_OUT) or name


def named(submitter: str | None, system: str | None) -> str:
    """Return the name of a result set among those of its benchmark."""
    return ": ".join(filter(None, (submitter, system)))


def scaling(benchmark: str, points: Sequence[Point], looks: Looks) -> Chart:
    """Return the chart of minutes against accelerators, with the line of ideal scaling."""
    best = min(points, key=lambda point: point.cost)
    sizes = [point.accelerators for point in points]
    least, most = min(sizes) / _ROOM, max(sizes) * _ROOM
    rows = [
        {
            "set": named(point.submitter, point.system),
            "accelerator": looks.name(point.accelerator),
            "model": point.accelerator or _UNKNOWN,
            "accelerators": point.accelerators,
            "minutes": rounded(point.minutes, 7),
        }
        for point in points
    ]
    ideal = [
        {"accelerators": rounded(size), "minutes": rounded(best.cost / size)}
        for size in (least, most)
    ]
    x, y = _x(least, most), _y(points)
    line = {"type": "line", "strokeDash": [6, 4], "color": GREY, "clip": True}
    look = looks.encoding(looks.name(point.accelerator) for point in points)
    facts = tooltip("set", "model", "accelerators", "minutes")
    layers = [
        layer("ideal", line, x=x, y=y),
        layer("points", dots(70, 0.85), x=x, y=y, **look, tooltip=facts),
    ]
    return Chart(
        name="scaling",
        title=f"Time against accelerators: {benchmark}",
        description=(
            f"{wording.counted(len(points), 'score')} by number of accelerators, both axes"
            " logarithmic. The dashed line is ideal scaling from the most efficient result:"
            f" {best.submitter} {best.system}."
        ),
        spec=view(layers, 260),
        data={"points": rows, "ideal": ideal},
    )


def _x(least: float, most: float) -> Spec:
    ticks = [2**step for step in range(ceil(log2(least)), floor(log2(most)) + 1)]
    axis = {"values": ticks, "format": ",d"}
    scale = {"type": "log", "base": 2, "domain": [rounded(least), rounded(most)], "nice": False}
    return quantitative("accelerators", "accelerators", axis, **scale)


def _y(points: Iterable[Point]) -> Spec:
    minutes = [point.minutes for point in points]
    low, high = min(minutes) / _ROOM, max(minutes) * _ROOM
    ticks = [tick for tick in decades(low, high) if low <= tick <= high]
    scale = {"type": "log", "domain": [rounded(low), rounded(high)], "nice": False}
    if len(ticks) < 2:  # noqa: PLR2004
        ticks = sorted({rounded(min(minutes), 3), rounded(max(minutes), 3)})
    axis = {"format": ",~r", "values": ticks}
    return quantitative("minutes", "minutes", axis, **scale)


# ---- best scores over rounds --------------------------------------------------------------


OVERALL, ON_EIGHT = "fastest", "on 8 accelerators"
_TRENDS = {OVERALL: Look(BLUE, "circle"), ON_EIGHT: Look(ORANGE, "square")}


def trend(benchmark: str, best: Mapping[str, Mapping[str, float]]) -> Chart | None:
    """Return the small chart of the best minutes over rounds; None if there is only one round.

    ``best`` has the minutes by round, for each name in the legend.
    """
    rounds = list(dict.fromkeys(round_ for minutes in best.values() for round_ in minutes))
    if len(rounds) < 2:  # noqa: PLR2004
        return None
    rows = [
        {"round": round_, "minutes": rounded(minutes, 5), "kind": kind}
        for kind, by_round in best.items()
        for round_, minutes in by_round.items()
    ]
    values = [float(str(row["minutes"])) for row in rows]
    ticks = [min(values), max(values)]
    look = styled("kind", _TRENDS, [name for name in _TRENDS if best.get(name)])
    axis = {"labelAngle": 0, "grid": False}
    x = {"field": "round", "type": "ordinal", "sort": rounds, "title": None, "axis": axis}
    scale = {"type": "log", "domain": [ticks[0] / _ROOM, ticks[1] * _ROOM], "nice": False}
    y_axis = {"values": ticks, "format": ",.3~r", "labelOverlap": False}
    y = quantitative("minutes", "minutes", y_axis, **scale)
    layers = [
        layer("", {"type": "line", "opacity": 0.6}, x=x, y=y, color=look["color"]),
        layer("", dots(45), x=x, y=y, **look, tooltip=tooltip("kind", "round", "minutes")),
    ]
    return Chart(
        name="trend",
        title=f"Best scores by round: {benchmark}",
        description="In minutes, logarithmic; rounds with the same target.",
        spec=view(layers, 80, data={"name": "best"}),
        data={"best": rows},
    )


# ---- convergence: a line for each result set, that of its median run ----------------------


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
    look = looks.encoding(accelerator for _, accelerator, _ in drawn)
    target = targets.get(metric)
    aim = "" if target is None else f" The dashed line is the target, {target:g}."
    yield Chart(
        name="convergence",
        title=f"Convergence of all result sets: {benchmark}",
        description=(
            f"{metric or 'evaluation'} against {first.unit} trained; of each result set the run"
            f" with the median time.{aim}"
        ),
        spec=view(_convergence_layers(metric or "evaluation", first.unit, look), 320),
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
    return [
        {**names, "at": rounded(item.position, 5), "value": rounded(item.values[metric], 4)}
        for item in thinned(run.evaluations(metric), limit)
    ]


def _convergence_layers(quality: str, unit: str, look: Mapping[str, Spec]) -> list[Spec]:
    position = {"x": quantitative("at", f"{unit} trained"), "y": quantitative("value", quality)}
    order = {"field": "at", "type": "quantitative"}
    line = {"type": "line", "size": 1.2, "opacity": 0.6}
    facts = tooltip("set", "accelerator", "at", "value")
    return [
        layer("target", TARGET_RULE, y={"field": "target", "type": "quantitative"}),
        layer("points", line, **position, detail=nominal("set"), order=order, color=look["color"]),
        layer("points", dots(18, 0.8), **position, **look, tooltip=facts),
    ]
