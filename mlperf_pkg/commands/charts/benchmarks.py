"""The charts of systems beside each other: scores, convergence, and the ratios of a comparison."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from statistics import median_low
from typing import Any

from mlperf_pkg.checks.names import plain_name
from mlperf_pkg.commands.charts import chart as vega
from mlperf_pkg.commands.charts.chart import Chart, Look, Rows, Spec
from mlperf_pkg.commands.charts.sets import COUNTS, DrawnRun, DrawnSet
from mlperf_pkg.commands.compare.ratios import ComparisonRow
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.run.evaluations import goals

_OTHER = "no division"
_DIVISIONS = {
    "closed": Look(vega.BLUE, "circle"),
    "open": Look(vega.GREEN, "square"),
    _OTHER: Look(vega.GREY, "cross"),
}
_LANES = {"ticks": False, "domain": False, "labelLimit": 330, "labelOverlap": False}
_LANE_HEIGHT = 18  # pixels
_LOG_FROM = 8  # slowest to fastest: above it the axis is logarithmic


def scoreboard(rows: Iterable[ResultSetRow]) -> Iterator[tuple[str, Chart]]:
    """Yield a chart for each benchmark that has a score, with its name."""
    scored = [row for row in rows if row.score_minutes and isfinite(row.score_minutes)]
    for benchmark, of_one in sorted(by_key((row.benchmark, row) for row in scored).items()):
        [chart] = vega.prepared("scoreboard", benchmark, partial(map, _board, [of_one]))
        yield benchmark, chart


def _board(rows: list[ResultSetRow]) -> Chart:
    ordered = sorted(rows, key=lambda row: (row.score_minutes or 0, row.path))
    fastest = ordered[0].score_minutes or 0
    slowest = ordered[-1].score_minutes or 0
    scores = [
        {
            "set": named(row.submitter, row.system) or row.id,
            "minutes": vega.rounded(row.score_minutes or 0, 7),
            "label": wording.minutes(row.score_minutes),
            "division": row.division if row.division in _DIVISIONS else _OTHER,
            "official": wording.VERDICTS[row.verdict.official],
            "rules": wording.VERDICTS[row.verdict.rules],
            "order": order,
        }
        for order, row in enumerate(ordered)
    ]
    best = f"{ordered[0].submitter or ''} {ordered[0].system or ''}".strip()
    rounds = sorted({row.round for row in rows})
    text = (
        f"{wording.counted(len(ordered), 'score')} from {wording.minutes(fastest)} minutes"
        f" ({best}) to {wording.minutes(slowest)} minutes."
    )
    title = f"Scores: {ordered[0].benchmark}"
    spec = _board_spec(scores, logarithmic=slowest > _LOG_FROM * fastest)
    subject = f"round{'s' if len(rounds) > 1 else ''} {', '.join(rounds)}"
    return Chart("scoreboard", title, text, spec, {"scores": scores}, subject)


def _board_spec(scores: Rows, *, logarithmic: bool) -> Spec:
    minutes = [score["minutes"] for score in scores]
    # A logarithmic axis would have nine ticks per decade.
    ticks = {"values": vega.decades(min(minutes), max(minutes))} if logarithmic else {}
    sort = {"field": "order", "op": "min"}
    position: Spec = {
        "y": vega.nominal("set", title=None, sort=sort, axis={"grid": True, **_LANES}),
        "x": {
            "field": "minutes",
            "type": "quantitative",
            "title": "minutes" + (", logarithmic" if logarithmic else ""),
            "scale": {"type": "log"} if logarithmic else {"zero": True},
            "axis": {"format": ",~r", **ticks},
        },
    }
    looks = vega.styled("division", _DIVISIONS, (score["division"] for score in scores))
    facts = vega.tooltip("set", "minutes", "division", "official", "rules")
    label = {"type": "text", "align": "left", "dx": 9}
    layers = [
        vega.layer("", vega.dots(80), **position, **looks, tooltip=facts),
        vega.layer("", label, **position, text=vega.nominal("label")),
    ]
    lanes = len({score["set"] for score in scores}) + 1  # and some room
    return vega.labelled("scores", layers, _LANE_HEIGHT * lanes)


PURPLE = "#8f63c4"
TEAL = "#2a8fa3"
PINK = "#c95fa0"
PALETTE = (
    Look(vega.BLUE, "circle"),
    Look(vega.ORANGE, "square"),
    Look(vega.GREEN, "triangle-up"),
    Look(PURPLE, "diamond"),
    Look(TEAL, "triangle-down"),
    Look(vega.RED, "cross"),
    Look(PINK, "triangle-right"),
)
"""Looks of which each two differ in shape as well as in colour."""

OTHERS = "others"
_UNKNOWN = "unknown"
_REST = Look(vega.GREY, "triangle-left")
_LEGEND = {"columns": 2, "labelLimit": 135}
_LEFT_OUT = {"NVIDIA", "AMD", "GPU"}  # words of names in a legend


class Looks:
    """The looks of accelerators: the most frequent ones have their own, ``OTHERS`` share one."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names of all accelerators, as often as they are used."""
        alike = by_key((plain_name(name), name) for name in names)
        ordered = sorted(alike, key=lambda plain: (-len(alike[plain]), plain))
        self._names = {
            plain: _shortened(Counter(alike[plain]).most_common(1)[0][0]) or _UNKNOWN
            for plain in ordered
        }
        self._looks = dict(zip(self._names.values(), PALETTE, strict=False)) | {OTHERS: _REST}

    def name(self, accelerator: str) -> str:
        """Return the name of an accelerator in the legend."""
        name = self.spelling(accelerator)
        return name if name in self._looks else OTHERS

    def spelling(self, accelerator: str) -> str:
        """Return the most frequent name of an accelerator, without its vendor."""
        return self._names[plain_name(accelerator)]

    def encoding(self, names: Iterable[str]) -> dict[str, Spec]:
        """Return the encodings of the field ``accelerator``, for the ``names`` of a chart."""
        return vega.styled("accelerator", self._looks, names, legend=_LEGEND)


def _shortened(name: str) -> str:
    return " ".join(word for word in name.split() if word not in _LEFT_OUT) or name


def named(submitter: str | None, system: str | None) -> str:
    """Return the name of a result set among those of its benchmark."""
    return ": ".join(filter(None, (submitter, system)))


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
    points = [point for member in drawn for point in _line(*member, metric, max_points)]
    if not points:
        return
    look = looks.encoding(accelerator for _, accelerator, _ in drawn)
    target = targets.get(metric)
    aim = "" if target is None else f" The dashed line is the target, {target:g}."
    quality = metric or "evaluation"
    title = f"Convergence of all result sets: {benchmark}"
    of_each = "of each result set the run with the median time"
    text = f"{quality} against {first.unit} trained; {of_each}.{aim}"
    spec = vega.view(_convergence_layers(quality, first.unit, look), 320)
    goal = [] if target is None else [{"target": target}]
    yield Chart("convergence", title, text, spec, {"points": points, "target": goal})


def _typical(drawn: DrawnSet) -> DrawnRun | None:
    """Return the run with the median time among those that count and have evaluations."""
    counting = (run for run in drawn.runs if run.state == COUNTS and run.curve.evaluations)
    runs = [run for run in counting if run.row.minutes is not None]
    times = [run.row.minutes for run in runs]
    return runs[times.index(median_low(times))] if runs else None  # type: ignore[type-var]


def _line(drawn: DrawnSet, accelerator: str, run: DrawnRun, metric: str, limit: int) -> Rows:
    names = {"set": named(drawn.row.submitter, drawn.row.system), "accelerator": accelerator}
    shown = ((one.position, one.values[metric]) for one in run.evaluations(metric))
    return [
        {**names, "at": vega.rounded(at), "value": vega.rounded(value, 4)}
        for at, value in vega.thinned(shown, limit)
    ]


def _convergence_layers(quality: str, unit: str, look: Mapping[str, Spec]) -> list[Spec]:
    x = vega.quantitative("at", f"{unit} trained")
    y = vega.quantitative("value", quality)
    order = {"field": "at", "type": "quantitative"}
    by_set = {"detail": vega.nominal("set"), "order": order, "color": look["color"]}
    line = {"type": "line", "size": 1.2, "opacity": 0.6}
    facts = vega.tooltip("set", "accelerator", "at", "value")
    return [
        vega.layer("target", vega.TARGET_RULE, y={"field": "target", "type": "quantitative"}),
        vega.layer("points", line, x=x, y=y, **by_set),
        vega.layer("points", vega.dots(18, 0.8), x=x, y=y, **look, tooltip=facts),
    ]


# ---- a comparison: speed of systems, per dollar, accelerator and joule too ----------------


_MEASURE_HEIGHT = 16  # pixels, of each measure of a system
_SMALL = 0.1  # ratios below it are shown with two digits
_ROOM = 4.0  # times: free space left of bars on a logarithmic axis, for their labels
_AXIS: Spec = {"field": "ratio", "type": "quantitative", "title": "times the baseline"}
_LOG_RATIOS_FROM = 10  # smallest to largest ratio: above it the axis is logarithmic
_MEASURES = {  # by name in the legend: the field of a row, and the colour
    "speed": ("speed", vega.BLUE),
    "per dollar": ("performance_per_dollar", vega.GREEN),
    "per accelerator": ("speed_per_accelerator", vega.GREY),
    "per joule": ("performance_per_joule", vega.ORANGE),
}


def comparison(rows: Iterable[ComparisonRow]) -> Chart | None:
    """Return a chart of the ratios of all results to their baselines; None if there are none."""
    compared = [row for row in rows if not row.baseline]
    rounds = {row.result.round for row in compared}
    ratios = [ratio for row in compared for ratio in _ratios(row, named=len(rounds) > 1)]
    if not ratios:
        return None
    title = "Relative to the baseline of each benchmark (1 = equal)"
    text = f"{wording.counted(len(ratios), 'ratio')} to the baseline of each benchmark."
    subject = f"round {', '.join(sorted(filter(None, rounds)))}" if any(rounds) else ""
    return Chart("comparison", title, text, _comparison_spec(ratios), {"ratios": ratios}, subject)


def _ratios(row: ComparisonRow, *, named: bool) -> Iterator[Mapping[str, Any]]:
    """Yield the ratios of a row, which is in two lines; its round is named if ``named``."""
    result = row.result
    owner = f"{result.submitter}: " if result.submitter else ""
    round_ = f"round {result.round}" if named and result.round else ""
    group = ", ".join(filter(None, (*result.group, round_)))
    for name, (field, _) in _MEASURES.items():
        ratio = getattr(row, field)
        if ratio is not None and isfinite(ratio):
            yield {
                "set": f"{owner}{result.system}\n{group}",
                "measure": name,
                "ratio": vega.rounded(ratio, 7),
                "label": f"{ratio:.2f}" if ratio >= _SMALL else f"{ratio:.2g}",
            }


def _comparison_spec(ratios: list[Mapping[str, Any]]) -> Spec:
    """Return the bars; the axis is logarithmic if they span more than ``_LOG_RATIOS_FROM``."""
    drawn = {ratio["measure"] for ratio in ratios}
    measures = [name for name in _MEASURES if name in drawn]
    values = [1.0, *(ratio["ratio"] for ratio in ratios)]
    least = min(values)
    most = max(values)
    logarithmic = most > _LOG_RATIOS_FROM * least
    split = {**_LANES, "labelExpr": r"split(datum.label, '\n')"}
    position: Spec = {
        "y": vega.nominal("set", title=None, sort=None, axis=split),
        "yOffset": vega.nominal("measure", sort=measures),
        "x": _logarithmic_axis(least, most) if logarithmic else _AXIS,
    }
    # Bars begin at 0 or, on a logarithmic axis, at 1.
    begin: Spec = {"x2": {"datum": 1}} if logarithmic else {}
    scale = {"domain": measures, "range": [_MEASURES[name][1] for name in measures]}
    color = vega.nominal("measure", scale=scale)
    facts = vega.tooltip("set", "measure", "ratio")
    layers = [
        vega.layer("", {"type": "rule", "strokeDash": [4, 3]}, x={"datum": 1}),
        vega.layer("", {"type": "bar"}, **position, **begin, color=color, tooltip=facts),
        *_labels(position, beside_bars=logarithmic),
    ]
    lanes = len({ratio["set"] for ratio in ratios}) * (len(measures) + 1)
    return vega.labelled("ratios", layers, _MEASURE_HEIGHT * lanes)


def _logarithmic_axis(least: float, most: float) -> Spec:
    room = _ROOM if least < 1 else 1
    scale = {"type": "log", "domain": [vega.rounded(least / room), most], "nice": False}
    ticks = {"values": vega.decades(least / room, most), "format": ",~r"}
    return {**_AXIS, "title": "times the baseline, logarithmic", "scale": scale, "axis": ticks}


def _labels(position: Spec, *, beside_bars: bool) -> Iterator[Spec]:
    """Yield the labels right of the bars; ``beside_bars``, left of those that end left of 1."""
    sides = {"left": {"gte": 1}, "right": {"lt": 1}} if beside_bars else {"left": {"gte": 0}}
    for align, bounds in sides.items():
        mark = {"type": "text", "align": align, "dx": 4 if align == "left" else -4}
        label = vega.layer("", mark, **position, text=vega.nominal("label"))
        yield {"transform": [{"filter": {"field": "ratio", **bounds}}], **label}
