"""The chart of scores: those of all systems in one benchmark, the fastest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from typing import Any

from mlperf_pkg.commands.charts.chart import (
    BLUE,
    GREEN,
    GREY,
    Chart,
    Look,
    Rows,
    Spec,
    by_look,
    decades,
    prepared,
    rounded,
    tooltip,
    view,
)
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import ResultSetRow

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
        [chart] = prepared("scoreboard", benchmark, partial(map, _chart, [of_benchmark]))
        yield benchmark, chart


def _chart(rows: list[ResultSetRow]) -> Chart:
    ordered = sorted(rows, key=lambda row: (row.score_minutes or 0, row.path))
    fastest, slowest = ordered[0].score_minutes or 0, ordered[-1].score_minutes or 0
    scores = [_score(order, row) for order, row in enumerate(ordered)]
    best = f"{ordered[0].submitter or ''} {ordered[0].system or ''}".strip()
    return Chart(
        name="scoreboard",
        title=f"Scores: {ordered[0].benchmark}",
        description=(
            f"{wording.counted(len(ordered), 'score')} from {wording.minutes(fastest)} minutes"
            f" ({best}) to {wording.minutes(slowest)} minutes."
        ),
        spec=_spec(scores, logarithmic=slowest > _LOG_FROM * fastest),
        data={"scores": scores},
        subject=_subject(rows),
    )


def _subject(rows: Iterable[ResultSetRow]) -> str:
    rounds = sorted({row.round for row in rows})
    return f"round {rounds[0]}" if len(rounds) == 1 else f"rounds {', '.join(rounds)}"


def _score(order: int, row: ResultSetRow) -> Mapping[str, Any]:
    return {
        "set": _label(row),
        "minutes": rounded(row.score_minutes or 0, 7),
        "label": wording.minutes(row.score_minutes),
        "division": row.division if row.division in _DIVISIONS else _OTHER,
        "official": wording.VERDICTS[row.verdict.official],
        "rules": wording.VERDICTS[row.verdict.rules],
        "order": order,
    }


def _label(row: ResultSetRow) -> str:
    return f"{row.submitter}: {row.system}" if row.submitter else row.system or row.id


def _ticks(scores: Rows, *, logarithmic: bool) -> Spec:
    """Return the ticks of a logarithmic axis, which would have nine per decade."""
    minutes = [score["minutes"] for score in scores]
    return {"values": decades(min(minutes), max(minutes))} if logarithmic else {}


def _spec(scores: Rows, *, logarithmic: bool) -> Spec:
    present = {score["division"] for score in scores}
    divisions = [division for division in _DIVISIONS if division in present]
    lanes = len({score["set"] for score in scores}) + 1  # and some room
    position: Spec = {
        "y": {
            "field": "set",
            "type": "nominal",
            "title": None,
            "sort": {"field": "order", "op": "min"},
            "axis": _LANES,
        },
        "x": {
            "field": "minutes",
            "type": "quantitative",
            "title": "minutes" + (", logarithmic" if logarithmic else ""),
            "scale": {"type": "log"} if logarithmic else {"zero": True},
            "axis": {"format": ",~r", **_ticks(scores, logarithmic=logarithmic)},
        },
    }
    looks = {
        channel: by_look("division", channel, _DIVISIONS, divisions)
        for channel in ("color", "shape")
    }
    facts = tooltip("set", "minutes", "division", "official", "rules")
    return view(
        [
            {
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {**position, **looks, "tooltip": facts},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 9},
                "encoding": {**position, "text": {"field": "label", "type": "nominal"}},
            },
        ],
        _LANE_HEIGHT * lanes,
        data={"name": "scores"},
        padding={"left": 5, "top": 5, "right": 45, "bottom": 5},
    )
