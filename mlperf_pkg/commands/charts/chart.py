"""A chart as a value: a Vega-Lite view and, apart from it, the data that it shows.

Text of strangers is only ever in the data: never a field's name, never part of an expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, TypeVar

from msgspec import Struct

_Item = TypeVar("_Item")

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH = 640  # pixels, where no page gives one

# Dark enough on white, light enough on black: at least 3:1 on both (WCAG 2, 1.4.11).
BLUE, GREY, RED, ORANGE, GREEN = "#3d7fc4", "#85898f", "#d9534a", "#c2701c", "#2e8b57"

CONFIG: Spec = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "tickColor": "currentColor",
        "domainColor": "currentColor",
        "gridColor": "currentColor",
        "gridOpacity": 0.12,
        "labelLimit": 200,
        "labelOverlap": "greedy",
        "labelSeparation": 8,
    },
    "axisX": {"tickCount": {"expr": "ceil(width / 75)"}},
    "legend": {
        "labelColor": "currentColor",
        "orient": "top",
        "title": None,
        "symbolOpacity": 1,
        "labelLimit": 300,
    },
    "text": {"color": "currentColor", "font": "system-ui, sans-serif"},
}
"""How charts look in a page: text takes the colour of the text around it, dark or light."""


class Chart(Struct, frozen=True):
    """``spec`` refers to ``data`` by name; ``description`` says in words what is to be seen."""

    name: str
    title: str
    description: str
    spec: Spec
    data: Mapping[str, Rows]

    def document(self) -> Spec:
        """The chart with its data and of a fixed size, for a file of its own."""
        return {
            "$schema": SCHEMA,
            "padding": 10,
            **self.spec,
            "title": self.title,
            "description": self.description,
            "width": WIDTH,
            "datasets": {name: list(rows) for name, rows in self.data.items()},
            "config": {**_in_ink(CONFIG), "background": "white"},
        }


def view(layers: Sequence[Spec], height: int, **more: Any) -> Spec:
    """A view of these layers as wide as its place in the page."""
    fit = {"type": "fit-x", "contains": "padding"}
    return {"width": "container", "height": height, "autosize": fit, "layer": list(layers), **more}


def quantitative(field: str, title: str | None = None, **scale: Any) -> Spec:
    """The encoding of numbers in ``field``; the axis need not begin at zero."""
    named = {} if title is None else {"title": title}
    zero = {} if scale.get("type") == "log" else {"zero": False}
    return {"field": field, "type": "quantitative", **named, "scale": {**zero, **scale}}


def tooltip(*fields: str) -> list[Spec]:
    """What is told of a mark: the fields, which are named as a reader would name them."""
    return [{"field": field, "type": "nominal"} for field in fields]


def thinned(items: Iterable[_Item], most: int) -> list[_Item]:
    """At most ``most`` + 1 of the items, evenly chosen, with the first and the last."""
    listed = list(items)
    chosen = listed[:: max(1, ceil(len(listed) / most))]
    return chosen if not listed or chosen[-1] is listed[-1] else [*chosen, listed[-1]]


def rounded(value: float, digits: int = 5) -> float:
    """As many significant digits as a chart can show."""
    return float(f"{value:.{digits}g}")


def _in_ink(config: Spec) -> Spec:
    """A configuration for paper, where there is no text around a chart."""
    return {
        name: _in_ink(value) if isinstance(value, dict) else _INK.get(str(value), value)
        for name, value in config.items()
    }


_INK = {"currentColor": "#222222"}
