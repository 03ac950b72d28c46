"""The ``Chart`` value, its look, and the pieces of Vega-Lite that all charts share.

Text from logs is only in the data of a chart, never in the name of a field or in an expression.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from json import dumps, loads
from math import ceil, floor, log10
from typing import Any, TypeVar

from msgspec import Struct

from mlperf_pkg.checker.reading import guarded
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.text import visible

_Item = TypeVar("_Item")

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


class SharedRows(tuple[Mapping[str, Any], ...]):
    """Rows that several charts have in common; whoever prepares them knows them by identity."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Return the same for the same object only."""
        return id(self)

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same object."""
        return self is other

    def __ne__(self, other: object) -> bool:
        """Return whether it is another object."""
        return self is not other


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH = 640  # pixels, in files

# Dark enough on white, light enough on black: at least 3:1 on both (WCAG 2, 1.4.11).
BLUE = "#3d7fc4"
GREY = "#85898f"
RED = "#d9534a"
ORANGE = "#c2701c"
GREEN = "#2e8b57"
TARGET_RULE: Spec = {"type": "rule", "color": ORANGE, "strokeDash": [6, 4], "size": 2}

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
"""The look of charts in a page: their text has the colour of the text around them."""

_CONFIG_OF_FILES = loads(dumps(CONFIG).replace("currentColor", "#222222"))
_TITLE = {"anchor": "start", "frame": "bounds", "subtitlePadding": 4, "offset": 12}


class Look(Struct, frozen=True):
    """How marks of one kind look."""

    color: str
    shape: str


class Chart(Struct, frozen=True):
    """A Vega-Lite view, ``spec``, which refers to its ``data`` by name.

    ``description`` says in words what the chart shows, ``subject`` what it is about, for a file
    of its own. A chart that could not be prepared is empty, and ``missing`` says why. ``notice`` is
    what must stand below it in a file of its own.
    """

    name: str
    title: str
    description: str
    spec: Spec
    data: Mapping[str, Rows]
    subject: str = ""
    missing: str = ""
    notice: tuple[str, ...] = ()

    def document(self) -> Spec:
        """Return the chart with its data and a fixed size, for a file of its own.

        All strings are made visible: the library that draws ends the process on some characters.
        """
        title = {"text": self.title, "subtitle": self.subject, **_TITLE}
        datasets = {name: list(rows) for name, rows in self.data.items()}
        document = {
            "$schema": SCHEMA,
            "padding": 12,
            **self.spec,
            "title": title,
            "description": self.description,
            "width": WIDTH,
            "datasets": datasets,
            "config": {**_CONFIG_OF_FILES, "background": "white"},
        }
        visible_document: Spec = _all_visible(document)
        return visible_document


def prepared(name: str, path: str, function: Callable[[], Iterable[Any]]) -> list[Any]:
    """Return the charts of a function, without None; a ``Chart`` that is ``missing`` if it raises.

    Raises:
        UserError: as the function.
    """
    action = f"preparing the chart {name}"
    charts = guarded(path, action, lambda: list(filter(None, function())))
    if isinstance(charts, Unchecked):
        reason = f"internal error of mlperf-pkg ({charts.found}); {charts.hint}"
        return [Chart(name, name, "", {}, {}, missing=reason)]
    return charts


def view(layers: Sequence[Spec], height: int, **more: Any) -> Spec:
    """Return a view of these layers that is as wide as its container."""
    fit = {"type": "fit-x", "contains": "padding"}
    return {"width": "container", "height": height, "autosize": fit, "layer": list(layers), **more}


def labelled(data: str, layers: Sequence[Spec], height: int) -> Spec:
    """Return a view of these layers of ``data``, with room for labels to the right of it."""
    padding = {"left": 12, "top": 12, "right": 45, "bottom": 10}
    return view(layers, height, data={"name": data}, padding=padding)


def quantitative(
    field: str, title: str | None = None, axis: Spec | None = None, **scale: Any
) -> Spec:
    """Return the encoding of numbers in ``field``; the axis need not begin at zero."""
    encoding: Spec = {"field": field, "type": "quantitative"}
    if title is not None:
        encoding["title"] = title
    if scale.get("type") != "log":
        scale = {"zero": False, **scale}
    encoding["scale"] = scale
    if axis is not None:
        encoding["axis"] = axis
    return encoding


def nominal(field: str, **more: Any) -> Spec:
    """Return the encoding of text in ``field``."""
    return {"field": field, "type": "nominal", **more}


def styled(
    field: str, looks: Mapping[str, Look], present: Iterable[str], **more: Any
) -> dict[str, Spec]:
    """Return the encodings of ``field`` as ``color`` and ``shape``, for the values ``present``.

    Charts of points use both channels: colour alone is not accessible.
    """
    values = set(present)
    names = [name for name in looks if name in values]
    colors = [looks[name].color for name in names]
    shapes = [looks[name].shape for name in names]
    return {
        "color": nominal(field, scale={"domain": names, "range": colors}, **more),
        "shape": nominal(field, scale={"domain": names, "range": shapes}, **more),
    }


def layer(data: str, mark: Spec, **encoding: Any) -> Spec:
    """Return a layer of a chart: a mark for each row of ``data`` (empty: of the whole chart)."""
    spec: Spec = {"mark": mark, "encoding": encoding}
    if data:
        return {"data": {"name": data}, **spec}
    return spec


def dots(size: float, opacity: float = 1) -> Spec:
    """Return a mark of filled points, of ``size`` square pixels."""
    return {"type": "point", "filled": True, "size": size, "opacity": opacity}


def decades(least: float, most: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten around these numbers: ticks of a logarithmic axis.

    Over more than three decades they are the powers of ten.
    """
    first = floor(log10(least))
    last = ceil(log10(most))
    steps = [1, 2, 5]
    if last - first > 3:  # noqa: PLR2004
        steps = [1]
    ticks = []
    for power in range(first, last + 1):
        ticks += [rounded(step * 10.0**power) for step in steps]
    return ticks


def tooltip(*fields: str) -> list[Spec]:
    """Return the tooltip of a mark: these fields, whose names readers see."""
    return [nominal(field) for field in fields]


def thinned(items: Iterable[_Item], limit: int) -> list[_Item]:
    """Return at most ``limit`` + 1 of the items, evenly chosen, with the first and the last."""
    candidates = list(items)
    step = max(1, ceil(len(candidates) / limit))
    chosen = candidates[::step]
    if candidates and chosen[-1] is not candidates[-1]:
        chosen.append(candidates[-1])
    return chosen


def rounded(value: float, digits: int = 5) -> float:
    """Return a number rounded to the significant digits that a chart can show."""
    return float(f"{value:.{digits}g}")


def _all_visible(value: Any) -> Any:
    if isinstance(value, str):
        lines = value.split("\n")  # labels may have several lines
        return "\n".join(map(visible, lines))
    if isinstance(value, Mapping):
        return {visible(name): _all_visible(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_all_visible(item) for item in value]
    return value
