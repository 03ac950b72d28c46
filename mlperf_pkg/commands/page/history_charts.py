"""The charts of the page of all rounds.

Their rows refer to entries by ``row``, the index in the table of the page, which the page completes
with the fields of the table: ``minutes``, ``accelerators``, ``round`` and others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

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
    decades,
    dots,
    layer,
    nominal,
    quantitative,
    rounded,
    styled,
    tooltip,
    view,
)
from mlperf_pkg.commands.page.history import (
    ON_EIGHT,
    OVERALL,
    Entry,
    Series,
    Span,
    Trend,
    moore_gain,
    year_of,
)
from mlperf_pkg.results import wording

_PURPLE, _PINK = "#9a6bc0", "#c4569b"
_COLORS = [BLUE, ORANGE, GREEN, RED, _PURPLE]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down"]
_OTHERS, _OWN, _MOORE = "others", "your results", "Moore's law"
_FIXED_LOOKS = {
    _OTHERS: Look(GREY, "cross"),
    _OWN: Look(_PINK, "triangle-right"),
    _MOORE: Look(GREY, "triangle-up"),
}
_NAMED = len(_COLORS)  # series with a line; the rest is ``_OTHERS``
_HEIGHT = 320
_NARROW, _STEPS = 8, (1, 1.5, 2, 3, 4, 5, 7)
_FACTS = tooltip("round", "submitter", "system", "accelerators", "accelerator", "minutes", "status")
_LOG: dict[str, Any] = {"type": "log", "nice": False, "padding": 10}
_ALL_TICKS = {"tickCount": 99}  # Vega leaves out values of an axis that are more than its count
_POINT = dots(70, cursor="pointer")
_OF = nominal("of")
_MOORE_LINE = {"type": "line", "color": GREY, "strokeDash": [3, 4], "strokeWidth": 1.5}


def trend_charts(trend: Trend) -> list[Chart]:
    """Return the charts of one benchmark: over rounds, the same accelerators, scaling."""
    charts = (_over_rounds(trend), _gains(trend), _scaling(trend))
    return [chart for chart in charts if chart]


def against_moore(trends: Iterable[Trend]) -> Chart:
    """Return the chart of the gains of all benchmarks since their first round."""
    points, lanes = [], []
    for trend in trends:
        for span in trend.spans:
            lane = f"{trend.names[-1]}, since {span.rounds[0]}"
            of_lane = list(_records(lane, span))
            points += of_lane
            lanes += [(max(point["gain"] for point in of_lane), lane)] if of_lane else []
    gains = [point["gain"] for point in points] or [1.0]
    ticks = {"values": _ticks(1.0, max(gains)), "format": ",~r", **_ALL_TICKS}
    x = quantitative("gain", "times as fast, logarithmic", ticks, **_LOG, domainMin=0.95)
    ordered = [lane for _, lane in sorted(lanes, reverse=True)]
    axis = {"grid": True, "ticks": False, "domain": False, "labelOverlap": False}
    y = nominal("lane", title=None, sort=ordered, axis=axis)
    looks = _looks([OVERALL, ON_EIGHT, _MOORE])
    facts = [*tooltip("series", "gain"), *_FACTS]
    layers = [layer("points", _POINT, x=x, y=y, **looks, tooltip=facts)]
    return Chart(
        name="moore",
        title="How many times as fast as in the first round",
        description=(
            "The fastest Closed result of all rounds with the same target against that of the first"
            " of these rounds, overall and on 8 accelerators. Moore's law: twice as fast every two"
            " years, in the time from the first round to that of the fastest result overall."
        ),
        spec=view(layers, 22 * max(1, len(lanes))),
        data={"points": points},
    )


def _records(lane: str, span: Span) -> Iterator[Mapping[str, Any]]:
    for series in (span.overall, span.on_eight):
        if series.is_line:
            gain = rounded(series.record_gain, 4)
            yield {"lane": lane, "series": series.name, "gain": gain, "row": series.best.index}
    if span.overall.is_line:
        yield {"lane": lane, "series": _MOORE, "gain": rounded(span.overall.record_moore, 4)}


# ---- over rounds --------------------------------------------------------------------------


def _over_rounds(trend: Trend) -> Chart:
    fastest = [series for span in trend.spans for series in (span.overall, span.on_eight)]
    points = [
        {"row": entry.index, "series": series.name, "of": number, "year": _year(entry)}
        for number, series in enumerate(fastest)
        for entry in series.entries
    ]
    own = [{"row": entry.index, "series": _OWN, "year": _year(entry)} for entry in trend.own]
    moore = [row for number, series in enumerate(fastest) for row in _moore(number, series)]
    changes = [
        {"year": round((_year(old.entries[-1]) + _year(new.entries[0])) / 2, 3), "at": "new target"}
        for old, new in pairwise(span.overall for span in trend.spans)
    ]
    x, y = _rounds_axis(trend), _minutes_axis(fastest, trend.own)
    looks = _looks(_in_order([*points, *own]))
    rule = {"type": "rule", "strokeDash": [2, 3], "color": RED}
    label = {"type": "text", "align": "left", "dx": 4, "y": 8}
    layers = [
        layer("changes", rule, x=x),
        layer("changes", label, x=x, text={"field": "at"}),
        layer("moore", _MOORE_LINE, x=x, y=y, detail=_OF),
        *_lines_and_points({"x": x, "y": y}, looks),
        layer("own", _POINT, x=x, y=y, **looks, tooltip=_FACTS),
    ]
    return _chart(
        "trend",
        "Fastest results of each round",
        " ".join(_trend_in_words(trend)),
        layers,
        {"points": points, "own": own, "moore": moore, "changes": changes},
    )


def _trend_in_words(trend: Trend) -> Iterator[str]:
    yield "Closed division, all availabilities; minutes are normalised."
    for span in trend.spans:
        yield f"{_rounds_in_words(span.rounds)}: the target is {span.target}."
        for series in (span.overall, span.on_eight):
            if series.is_line:
                first, best = series.first, series.best
                yield (
                    f"Fastest {series.name}: {_minutes(first)} minutes in {first.row.round},"
                    f" {_minutes(best)} in {best.row.round}, {series.record_gain:.2f} times as fast"
                    f" (Moore's law: {series.record_moore:.2f})."
                )
    if len(trend.spans) > 1:
        yield "Rounds with different targets cannot be compared, so no line joins them."
    yield "Dashed grey: Moore's law, twice as fast every two years."


def _moore(number: int, series: Series) -> Iterator[Mapping[str, Any]]:
    if series.is_line:
        for entry in (series.first, series.last):
            minutes = series.first.minutes / moore_gain(entry.year - series.first.year)
            yield {"of": number, "year": _year(entry), "minutes": rounded(minutes)}


# ---- the same accelerators, and scaling ---------------------------------------------------


def _gains(trend: Trend) -> Chart | None:
    """Return the chart of the same number of the same accelerators over rounds."""
    of_spans = [
        (number, series) for number, span in enumerate(trend.spans) for series in span.gains
    ]
    of_spans.sort(key=lambda pair: -len(pair[1].entries))
    shown = of_spans[:_NAMED]
    if not shown:
        return None
    points = [
        {"row": entry.index, "series": series.name, "of": span, "year": _year(entry)}
        for span, series in shown
        for entry in series.entries
    ]
    series = [one for _, one in shown]
    position = {"x": _rounds_axis(trend), "y": _minutes_axis(series)}
    looks = _looks([one.name for one in series])
    best = max((one for _, one in of_spans), key=lambda one: one.gain)
    more = f" ({len(shown)} of {len(of_spans)} shown)" if len(of_spans) > len(shown) else ""
    return _chart(
        "gains",
        "The same accelerators over rounds",
        "What software gained: the fastest Closed result on the same number of the same"
        f" accelerators, in rounds with the same target{more}. The largest gain is"
        f" {best.gain:.2f}, of {best.name}. Power limits are not distinguished.",
        _lines_and_points(position, looks),
        {"points": points},
    )


def _scaling(trend: Trend) -> Chart | None:
    span = trend.latest
    named, others = span.scaling[:_NAMED], span.scaling[_NAMED:]
    if not named:
        return None
    points = [
        {"row": entry.index, "series": series.name, "of": series.name}
        for series in named
        for entry in series.entries
    ]
    rest = [
        {"row": entry.index, "series": _OTHERS} for series in others for entry in series.entries
    ]
    own = [entry for entry in trend.own if entry.accelerators]
    rest += [{"row": entry.index, "series": _OWN} for entry in own]
    ideal = [row for series in named for row in _ideal(series)]
    all_entries = [entry for series in span.scaling for entry in series.entries] + own
    numbers = [entry.accelerators for entry in all_entries]
    ticks = {"values": _powers(min(numbers), max(numbers)), "format": ",~r", **_ALL_TICKS}
    x = quantitative("accelerators", "accelerators, logarithmic", ticks, **_LOG, base=2)
    y = _minutes_axis(span.scaling, own)
    looks = _looks(_in_order([*points, *rest]))
    dotted = {"type": "line", "strokeDash": [2, 4], "strokeWidth": 1.2}
    layers = [
        layer("rest", _POINT, x=x, y=y, **looks, tooltip=_FACTS),
        layer("ideal", dotted, x=x, y=y, color=looks["color"], detail=_OF),
        *_lines_and_points({"x": x, "y": y}, looks),
    ]
    return _chart(
        "scaling",
        "Time against number of accelerators",
        f"The fastest Closed result of each number of an accelerator in"
        f" {_rounds_in_words(span.rounds)}. Dotted: ideal scaling, half the time on twice the"
        " accelerators, from the result with the fewest accelerator-minutes.",
        layers,
        {"points": points, "rest": rest, "ideal": ideal},
    )


def _ideal(series: Series) -> Iterator[Mapping[str, Any]]:
    """Yield the ends of the line of ideal scaling; none for a single number."""
    if series.is_line:
        work = min(entry.minutes * entry.accelerators for entry in series.entries)
        for entry in (series.first, series.last):
            number = entry.accelerators
            yield {
                "series": series.name,
                "of": series.name,
                "accelerators": number,
                "minutes": rounded(work / number),
            }


# ---- pieces -------------------------------------------------------------------------------


def _chart(
    name: str, title: str, text: str, layers: Iterable[Spec], data: Mapping[str, Rows]
) -> Chart:
    """Return a chart without the layers that have no data."""
    drawn = [one for one in layers if data[one["data"]["name"]]]
    return Chart(name, title, text, view(drawn, _HEIGHT), data)


def _in_order(points: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(point["series"] for point in points))


def _lines_and_points(position: Spec, looks: Mapping[str, Spec]) -> list[Spec]:
    return [
        layer("points", {"type": "line"}, **position, color=looks["color"], detail=_OF),
        layer("points", _POINT, **position, **looks, tooltip=_FACTS),
    ]


def _looks(names: Sequence[str]) -> dict[str, Spec]:
    """Return the encodings of series as colour and shape."""
    colors, shapes = iter(_COLORS), iter(_SHAPES)
    looks = {
        name: _FIXED_LOOKS[name] if name in _FIXED_LOOKS else Look(next(colors), next(shapes))
        for name in names
    }
    return styled("series", looks, names, legend={"labelLimit": 165})


def _rounds_axis(trend: Trend) -> Spec:
    """Return the axis of time, with the names of rounds at their days of submission."""
    rounds = dict.fromkeys([*trend.rounds, *(entry.row.round for entry in trend.own)])
    years = {round(year_of(trend.usage, name), 3): name for name in rounds}
    names = ", ".join(f"'{year:.3f}': '{name}'" for year, name in years.items())
    axis = {
        "values": list(years),
        "labelExpr": f"{{{names}}}[format(datum.value, '.3f')]",
        "grid": False,
        "labelSeparation": 2,
        **_ALL_TICKS,
    }
    return quantitative("year", "round, by day of submission", axis)


def _minutes_axis(series: Iterable[Series], own: Iterable[Entry] = ()) -> Spec:
    minutes = [entry.minutes for one in series for entry in one.entries]
    minutes += [entry.minutes for entry in own]
    axis = {"values": _ticks(min(minutes), max(minutes)), "format": ",~r"}
    return quantitative("minutes", "minutes, logarithmic", axis, **_LOG)


def _ticks(least: float, most: float) -> list[float]:
    """Return the ticks of a logarithmic axis; ``decades`` has too few for a narrow one."""
    if most / least > _NARROW:
        return decades(least, most)
    first, last = floor(log10(least)), ceil(log10(most))
    return [rounded(step * 10.0**n) for n in range(first, last + 1) for step in _STEPS]


def _powers(least: int, most: int) -> list[int]:
    powers = [1 << power for power in range(most.bit_length() + 1)]
    within = [power for power in powers if least <= 2 * power and power <= 2 * most]
    return within[:: 2 if len(within) > 9 else 1]  # noqa: PLR2004 - labels that fit a phone


def _year(entry: Entry) -> float:
    return round(entry.year, 3)


def _minutes(entry: Entry) -> str:
    return wording.minutes(entry.row.score_minutes)


def _rounds_in_words(rounds: Sequence[str]) -> str:
    return f"Round {rounds[0]}" if len(rounds) == 1 else f"Rounds {rounds[0]} to {rounds[-1]}"
