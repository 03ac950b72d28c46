"""The charts of a benchmark over its systems: time against accelerators, and over the rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log2

from msgspec import Struct

from mlperf_pkg.checks.names import plain_name
from mlperf_pkg.commands.charts.chart import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    Chart,
    Look,
    Spec,
    by_look,
    decades,
    quantitative,
    rounded,
    tooltip,
    view,
)
from mlperf_pkg.results import wording

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

    def encoding(self, names: Iterable[str], *channels: str) -> Spec:
        """Return the encoding of the field ``accelerator``, for the ``names`` of a chart."""
        present = set(names)
        ordered = [name for name in self._looks if name in present]
        return {
            channel: {**by_look("accelerator", channel, self._looks, ordered), "legend": _LEGEND}
            for channel in channels
        }


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
    rows = [_row(point, looks) for point in points]
    ideal = [
        {"accelerators": rounded(size), "minutes": rounded(best.cost / size)}
        for size in (least, most)
    ]
    names = [looks.name(point.accelerator) for point in points]
    return Chart(
        name="scaling",
        title=f"Time against accelerators: {benchmark}",
        description=(
            f"{wording.counted(len(points), 'score')} by number of accelerators, both axes"
            " logarithmic. The dashed line is ideal scaling from the most efficient result:"
            f" {best.submitter} {best.system}."
        ),
        spec=_scaling_spec(_x(least, most), _y(points), looks.encoding(names, "color", "shape")),
        data={"points": rows, "ideal": ideal},
    )


def _row(point: Point, looks: Looks) -> Mapping[str, object]:
    return {
        "set": named(point.submitter, point.system),
        "accelerator": looks.name(point.accelerator),
        "model": point.accelerator or _UNKNOWN,
        "accelerators": point.accelerators,
        "minutes": rounded(point.minutes, 7),
    }


def _x(least: float, most: float) -> Spec:
    ticks = [2**step for step in range(ceil(log2(least)), floor(log2(most)) + 1)]
    axis = {"values": ticks, "format": ",d"}
    scale = {"type": "log", "base": 2, "domain": [rounded(least), rounded(most)], "nice": False}
    return {**quantitative("accelerators", "accelerators", **scale), "axis": axis}


def _y(points: Iterable[Point]) -> Spec:
    minutes = [point.minutes for point in points]
    low, high = min(minutes) / _ROOM, max(minutes) * _ROOM
    ticks = [tick for tick in decades(low, high) if low <= tick <= high]
    scale = {"type": "log", "domain": [rounded(low), rounded(high)], "nice": False}
    if len(ticks) < 2:  # noqa: PLR2004
        ticks = sorted({rounded(min(minutes), 3), rounded(max(minutes), 3)})
    axis = {"format": ",~r", "values": ticks}
    return {**quantitative("minutes", "minutes", **scale), "axis": axis}


def _scaling_spec(x: Spec, y: Spec, look: Spec) -> Spec:
    line = {"type": "line", "strokeDash": [6, 4], "color": GREY, "clip": True}
    mark = {"type": "point", "filled": True, "size": 70, "opacity": 0.85}
    facts = tooltip("set", "model", "accelerators", "minutes")
    return view(
        [
            {"data": {"name": "ideal"}, "mark": line, "encoding": {"x": x, "y": y}},
            {
                "data": {"name": "points"},
                "mark": mark,
                "encoding": {"x": x, "y": y, **look, "tooltip": facts},
            },
        ],
        260,
    )


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
    present = [name for name in _TRENDS if best.get(name)]
    values = [float(str(row["minutes"])) for row in rows]
    ticks = [min(values), max(values)]
    look = {name: by_look("kind", name, _TRENDS, present) for name in ("color", "shape")}
    x: Spec = {
        "field": "round",
        "type": "ordinal",
        "sort": rounds,
        "title": None,
        "axis": {"labelAngle": 0, "grid": False},
    }
    scale = {"type": "log", "domain": [ticks[0] / _ROOM, ticks[1] * _ROOM], "nice": False}
    y: Spec = {
        **quantitative("minutes", "minutes", **scale),
        "axis": {"values": ticks, "format": ",.3~r", "labelOverlap": False},
    }
    facts = tooltip("kind", "round", "minutes")
    return Chart(
        name="trend",
        title=f"Best scores by round: {benchmark}",
        description="In minutes, logarithmic; rounds with the same target.",
        spec=view(
            [
                {
                    "mark": {"type": "line", "opacity": 0.6},
                    "encoding": {"x": x, "y": y, "color": look["color"]},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                    "encoding": {"x": x, "y": y, **look, "tooltip": facts},
                },
            ],
            80,
            data={"name": "best"},
        ),
        data={"best": rows},
    )
