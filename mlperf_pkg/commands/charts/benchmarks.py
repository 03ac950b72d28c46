"""The charts of systems beside each other: scores, convergence, and the ratios of a comparison."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from statistics import median_low
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

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
    labelled,
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
from mlperf_pkg.commands.compare.ratios import ComparisonRow, Result
from mlperf_pkg.commands.notice import SPEED_UP, ShownResult, notice, score
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.run.evaluations import goals

_OTHER = "no division"
_DIVISIONS = {
    "closed": Look(BLUE, "circle"),
    "open": Look(GREEN, "square"),
    _OTHER: Look(GREY, "cross"),
}
_LANES = {"ticks": False, "domain": False, "labelLimit": 330, "labelOverlap": False}
_LANE_HEIGHT = 18  # pixels
_LOG_FROM = 8  # slowest to fastest: above it the axis is logarithmic
_SCORE_LABEL: Spec = {"type": "text", "align": "left", "dx": 9}


def scoreboard(
    rows: Iterable[ResultSetRow], shown: Mapping[str, ShownResult]
) -> Iterator[tuple[str, Chart]]:
    """Yield a chart for each benchmark that has a score, with its name.

    ``shown`` has what must stand beside each result, by the id of its set.
    """
    scored = [row for row in rows if row.score_minutes and isfinite(row.score_minutes)]
    by_benchmark = by_key((row.benchmark, row) for row in scored)
    for benchmark, benchmark_rows in sorted(by_benchmark.items()):
        board = partial(_board, shown)
        [chart] = prepared("scoreboard", benchmark, partial(map, board, [benchmark_rows]))
        results = [shown[row.id] for row in benchmark_rows]
        yield benchmark, replace(chart, notice=(f"{_BESIDE}.", *notice(results)))


def _board(shown: Mapping[str, ShownResult], rows: list[ResultSetRow]) -> Chart:
    ordered = sorted(rows, key=lambda row: (row.score_minutes or 0, row.path))
    fastest = ordered[0]
    slowest = ordered[-1]
    best = f"{fastest.submitter or ''} {fastest.system or ''}".strip()
    least = fastest.score_minutes or 0
    most = slowest.score_minutes or 0
    text = f"{wording.counted(len(ordered), 'score')} from {wording.minutes(least)} minutes"
    text += f" ({best}) to {wording.minutes(most)} minutes."
    scores = [_score(row, order, shown[row.id]) for order, row in enumerate(ordered)]
    return Chart(
        "scoreboard",
        title=f"Scores: {fastest.benchmark}",
        description=text,
        spec=_board_spec(scores, logarithmic=most > _LOG_FROM * least),
        data={"scores": scores},
        subject=_rounds(rows),
    )


def _rounds(rows: Iterable[ResultSetRow]) -> str:
    rounds = sorted({row.round for row in rows})
    if len(rounds) > 1:
        return f"rounds {', '.join(rounds)}"
    return f"round {rounds[0]}"


def _score(row: ResultSetRow, order: int, result: ShownResult) -> Mapping[str, Any]:
    division = _OTHER
    if row.division in _DIVISIONS:
        division = row.division
    name = named(row.submitter, row.system) or row.id
    return {
        "set": name + _in_brackets(result),
        "minutes": rounded(row.score_minutes or 0, 7),
        "label": score(row.score_minutes, is_verified=result.is_verified),
        "division": division,
        "official": wording.VERDICTS[row.verdict.official],
        "rules": wording.VERDICTS[row.verdict.rules],
        "order": order,
    }


_BESIDE = "Beside each system: its number of accelerators, and its category"


def _in_brackets(result: ShownResult) -> str:
    """Return what must stand beside a system, as far as it is known: `` (16, Preview)``."""
    facts = [result.category]
    if result.accelerators:
        facts.insert(0, f"{result.accelerators:,}")
    text = ", ".join(filter(None, facts))
    return f" ({text})" if text else ""


def _board_spec(scores: Rows, *, logarithmic: bool) -> Spec:
    title = "minutes"
    scale: Spec = {"zero": True}
    ticks: Spec = {"format": ",~r"}
    if logarithmic:
        title = "minutes, logarithmic"
        scale = {"type": "log"}
        minutes = [score["minutes"] for score in scores]
        # A logarithmic axis would have nine ticks per decade.
        ticks["values"] = decades(min(minutes), max(minutes))
    sort = {"field": "order", "op": "min"}
    x = {"field": "minutes", "type": "quantitative", "title": title, "scale": scale, "axis": ticks}
    y = nominal("set", title=None, sort=sort, axis={"grid": True, **_LANES})
    looks = styled("division", _DIVISIONS, (score["division"] for score in scores))
    facts = tooltip("set", "minutes", "division", "official", "rules")
    layers = [
        layer("", dots(80), y=y, x=x, **looks, tooltip=facts),
        layer("", _SCORE_LABEL, y=y, x=x, text=nominal("label")),
    ]
    lanes = len({score["set"] for score in scores}) + 1  # and some room
    return labelled("scores", layers, _LANE_HEIGHT * lanes)


PURPLE = "#8f63c4"
TEAL = "#2a8fa3"
PINK = "#c95fa0"
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


class Looks:
    """The looks of accelerators: the most frequent ones have their own, ``OTHERS`` share one."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names of all accelerators, as often as they are used."""
        spellings = by_key((plain_name(name), name) for name in names)
        self._names: dict[str, str] = {}
        for plain in sorted(spellings, key=lambda plain: (-len(spellings[plain]), plain)):
            most_frequent, _ = Counter(spellings[plain]).most_common(1)[0]
            self._names[plain] = _shortened(most_frequent) or _UNKNOWN
        self._looks = dict(zip(self._names.values(), PALETTE, strict=False))
        self._looks[OTHERS] = _REST

    def name(self, accelerator: str) -> str:
        """Return the name of an accelerator in the legend."""
        name = self.spelling(accelerator)
        if name not in self._looks:
            return OTHERS
        return name

    def spelling(self, accelerator: str) -> str:
        """Return the most frequent name of an accelerator, without its vendor."""
        return self._names[plain_name(accelerator)]

    def encoding(self, names: Iterable[str]) -> dict[str, Spec]:
        """Return the encodings of the field ``accelerator``, for the ``names`` of a chart."""
        return styled("accelerator", self._looks, names, legend=_LEGEND)


def _shortened(name: str) -> str:
    words = [word for word in name.split() if word not in _LEFT_OUT]
    return " ".join(words) or name


def named(submitter: str | None, system: str | None) -> str:
    """Return the name of a result set among those of its benchmark."""
    return ": ".join(filter(None, (submitter, system)))


# ---- convergence: a line for each result set, that of its median run ----------------------


_LINE: Spec = {"type": "line", "size": 1.2, "opacity": 0.6}


class _ConvergenceLine(Struct, frozen=True):
    """A result set of a chart, the name of its accelerator in the legend, and the drawn run."""

    drawn: DrawnSet
    accelerator: str
    run: DrawnRun

    def points(self, metric: str, limit: int) -> Iterator[Mapping[str, Any]]:
        """Yield about ``limit`` evaluations of a metric."""
        row = self.drawn.row
        name = named(row.submitter, row.system)
        for evaluation in thinned(self.run.evaluations(metric), limit):
            value = evaluation.values[metric]
            yield {
                "set": name,
                "accelerator": self.accelerator,
                "at": rounded(evaluation.position),
                "value": rounded(value, 4),
            }


def convergence(
    benchmark: str, members: Sequence[tuple[DrawnSet, str]], looks: Looks, max_points: int
) -> Iterator[Chart]:
    """Yield the chart of several result sets, each with its accelerator, if they were evaluated."""
    lines = list(_lines(members, looks))
    if len(lines) <= 1:
        return
    first = lines[0].drawn
    targets = goals(first.rules)
    metric = next(iter(targets), "")
    points: list[Mapping[str, Any]] = []
    for line in lines:
        points += line.points(metric, max_points)
    if not points:
        return
    quality = metric or "evaluation"
    text = (
        f"{quality} against {first.unit} trained; each result set is shown by its run with the"
        " median time."
    )
    target: Rows = []
    if metric in targets:
        target = [{"target": targets[metric]}]
        text += f" The dashed line is the target, {targets[metric]:g}."
    encoding = looks.encoding(line.accelerator for line in lines)
    spec = view(_convergence_layers(quality, first.unit, encoding), 320)
    title = f"Convergence of all result sets: {benchmark}"
    yield Chart("convergence", title, text, spec, {"points": points, "target": target})


def _lines(members: Iterable[tuple[DrawnSet, str]], looks: Looks) -> Iterator[_ConvergenceLine]:
    for drawn, accelerator in members:
        run = _typical(drawn)
        if run:
            yield _ConvergenceLine(drawn, looks.name(accelerator), run)


def _typical(drawn: DrawnSet) -> DrawnRun | None:
    """Return the run with the median time among those that count and have evaluations."""
    by_minutes: dict[float, DrawnRun] = {}
    minutes: list[float] = []
    for run in drawn.runs:
        if run.state == COUNTS and run.curve.evaluations and run.row.minutes is not None:
            minutes.append(run.row.minutes)
            by_minutes.setdefault(run.row.minutes, run)
    if not minutes:
        return None
    return by_minutes[median_low(minutes)]


def _convergence_layers(quality: str, unit: str, looks: Mapping[str, Spec]) -> list[Spec]:
    x = quantitative("at", f"{unit} trained")
    y = quantitative("value", quality)
    order = {"field": "at", "type": "quantitative"}
    by_set = {"detail": nominal("set"), "order": order, "color": looks["color"]}
    target = {"field": "target", "type": "quantitative"}
    facts = tooltip("set", "accelerator", "at", "value")
    return [
        layer("target", TARGET_RULE, y=target),
        layer("points", _LINE, x=x, y=y, **by_set),
        layer("points", dots(18, 0.8), x=x, y=y, **looks, tooltip=facts),
    ]


# ---- a comparison: speed of systems, per dollar, accelerator and joule too ----------------


_MEASURE_HEIGHT = 16  # pixels, of each measure of a system
_MOST_COMPARED = 30  # systems of a chart
_SMALL = 0.1  # ratios below it are shown with two digits
_ROOM = 4.0  # times: free space left of bars on a logarithmic axis, for their labels
_AXIS: Spec = {"field": "ratio", "type": "quantitative", "title": "times the baseline"}
_LOG_RATIOS_FROM = 10  # smallest to largest ratio: above it the axis is logarithmic
_BASELINE: Spec = {"type": "rule", "strokeDash": [4, 3], "opacity": 0.4}
_MEASURES = {  # by name in the legend: the field of a row, and the colour
    "speed": ("speed", BLUE),
    "per dollar": ("performance_per_dollar", GREEN),
    "per accelerator": ("speed_per_accelerator", GREY),
    "per joule": ("performance_per_joule", ORANGE),
}


def comparisons(rows: Iterable[ComparisonRow], *, all_sizes: bool) -> Iterator[Chart]:
    """Yield a chart of the ratios to the baseline for each group of results that has any.

    It shows systems with as many accelerators as the baseline, if any; all with ``all_sizes``.
    """
    groups = by_key((row.result.group, row) for row in rows)
    for group, members in groups.items():
        baselines = [row for row in members if row.baseline]
        compared = [row for row in members if not row.baseline and row.speed is not None]
        if baselines and compared:
            title = f"{group.title}: speed relative to {baselines[0].result.name} (1 = equal)"
            yield _comparison(title, baselines[0].result, compared, all_sizes=all_sizes)


def _comparison(
    title: str, baseline: Result, compared: list[ComparisonRow], *, all_sizes: bool
) -> Chart:
    size = baseline.accelerators
    same = [row for row in compared if row.result.accelerators == size]
    measures = dict(_MEASURES)
    subject = "systems with any number of accelerators"
    if size and same and not all_sizes:
        subject = f"systems with {wording.counted(size, 'accelerator')}, like the baseline"
        compared = same
        del measures["per accelerator"]  # which is the speed
    more = len(compared) - _MOST_COMPARED
    if more > 0:
        subject += f"; {more} slower systems are not shown"
    rounds = {baseline.round, *(row.result.round for row in compared)}
    ratios: list[Mapping[str, Any]] = []
    for row in compared[:_MOST_COMPARED]:
        ratios += _ratios(row, measures, named=len(rounds) > 1)
    text = f"{wording.counted(len(ratios), 'ratio')} to the baseline, of {subject}."
    results = [baseline.shown, *(row.result.shown for row in compared[:_MOST_COMPARED])]
    return Chart(
        "comparison",
        title,
        text,
        _comparison_spec(ratios),
        {"ratios": ratios},
        subject,
        notice=(
            f"{_BESIDE}; the baseline: {baseline.name}{_in_brackets(baseline.shown)}.",
            *notice(results, [f"{SPEED_UP}, also per dollar, accelerator and joule"]),
        ),
    )


def _ratios(
    row: ComparisonRow, measures: Iterable[str], *, named: bool
) -> Iterator[Mapping[str, Any]]:
    """Yield the ratios of a row for these measures; its round is named if ``named``."""
    result = row.result
    system = result.system
    if result.submitter:
        system = f"{result.submitter}: {result.system}"
    if named and result.round:
        system = f"{result.round} {system}"
    system += _in_brackets(result.shown)
    for name in measures:
        field, _ = _MEASURES[name]
        ratio = getattr(row, field)
        if ratio is None or not isfinite(ratio):
            continue
        label = f"{ratio:.2f}"
        if ratio < _SMALL:
            label = f"{ratio:.2g}"
        yield {
            "set": system,
            "measure": name,
            "ratio": rounded(ratio, 7),
            "label": label,
        }


def _comparison_spec(ratios: list[Mapping[str, Any]]) -> Spec:
    """Return the bars; the axis is logarithmic if they span more than ``_LOG_RATIOS_FROM``."""
    drawn = {ratio["measure"] for ratio in ratios}
    measures = [name for name in _MEASURES if name in drawn]
    values = [1.0, *(ratio["ratio"] for ratio in ratios)]
    logarithmic = max(values) > _LOG_RATIOS_FROM * min(values)
    position: Spec = {
        "y": nominal("set", title=None, sort=None, axis=_LANES),
        "yOffset": nominal("measure", sort=measures),
        "x": _AXIS,
    }
    beginning: Spec = {}
    # Bars begin at 0 or, on a logarithmic axis, at 1.
    if logarithmic:
        position["x"] = _logarithmic_axis(min(values), max(values))
        beginning = {"x2": {"datum": 1}}
    layers = [
        layer("", _BASELINE, x={"datum": 1}),
        _ratio_bars(measures, {**position, **beginning}),
        *_ratio_labels(position, beside_bars=logarithmic),
    ]
    lanes = len({ratio["set"] for ratio in ratios}) * (len(measures) + 1)
    return labelled("ratios", layers, _MEASURE_HEIGHT * lanes)


def _ratio_bars(measures: Sequence[str], position: Spec) -> Spec:
    colors = []
    for measure in measures:
        _, color = _MEASURES[measure]
        colors.append(color)
    scale = {"domain": measures, "range": colors}
    facts = tooltip("set", "measure", "ratio")
    bar = {"type": "bar"}
    return layer("", bar, **position, color=nominal("measure", scale=scale), tooltip=facts)


def _logarithmic_axis(least: float, most: float) -> Spec:
    if least < 1:
        least /= _ROOM
    scale = {"type": "log", "domain": [rounded(least), most], "nice": False}
    ticks = {"values": decades(least, most), "format": ",~r"}
    return {
        **_AXIS,
        "title": "multiple of the baseline (logarithmic scale)",
        "scale": scale,
        "axis": ticks,
    }


def _ratio_labels(position: Spec, *, beside_bars: bool) -> Iterator[Spec]:
    """Yield the labels right of the bars; ``beside_bars``, left of those that end left of 1."""
    if not beside_bars:
        yield _ratio_label("left", 4, {"gte": 0}, position)
        return
    yield _ratio_label("left", 4, {"gte": 1}, position)
    yield _ratio_label("right", -4, {"lt": 1}, position)


def _ratio_label(align: str, dx: int, bounds: Spec, position: Spec) -> Spec:
    """Return the labels of the ratios within ``bounds``."""
    mark = {"type": "text", "align": align, "dx": dx}
    label = layer("", mark, **position, text=nominal("label"))
    return {"transform": [{"filter": {"field": "ratio", **bounds}}], **label}
