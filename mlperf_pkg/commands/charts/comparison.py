"""The chart of a comparison: speed of systems, per dollar, accelerator and joule too; its file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from mlperf_pkg.commands.charts import chart as vega
from mlperf_pkg.commands.charts.chart import Chart, Spec
from mlperf_pkg.commands.charts.drawing import file_format, picture_of
from mlperf_pkg.commands.compare.ratios import Row
from mlperf_pkg.errors import UserError
from mlperf_pkg.results import wording

_LANE_HEIGHT = 16  # pixels, of each measure of a system
_LANES = {"ticks": False, "domain": False, "labelLimit": 330, "labelOverlap": False}
_SMALL = 0.1  # ratios below it are shown with two digits
_ROOM = 4.0  # times: free space left of bars on a logarithmic axis, for their labels
_AXIS: Spec = {"field": "ratio", "type": "quantitative", "title": "times the baseline"}
_LOG_FROM = 10  # smallest to largest ratio: above it the axis is logarithmic


_MEASURES = {  # by name in the legend: the field of a row, and the colour
    "speed": ("speed", vega.BLUE),
    "per dollar": ("performance_per_dollar", vega.GREEN),
    "per accelerator": ("speed_per_accelerator", vega.GREY),
    "per joule": ("performance_per_joule", vega.ORANGE),
}


def comparison(rows: Iterable[Row]) -> Chart | None:
    """Return a chart of the ratios of all results to their baselines; None if there are none."""
    compared = [row for row in rows if not row.baseline]
    rounds = {row.result.round for row in compared}
    ratios = [ratio for row in compared for ratio in _ratios(row, named=len(rounds) > 1)]
    if not ratios:
        return None
    return Chart(
        name="comparison",
        title="Relative to the baseline of each benchmark (1 = equal)",
        description=f"{wording.counted(len(ratios), 'ratio')} to the baseline of each benchmark.",
        spec=_spec(ratios),
        data={"ratios": ratios},
        subject=f"round {', '.join(sorted(filter(None, rounds)))}" if any(rounds) else "",
    )


def _ratios(row: Row, *, named: bool) -> Iterator[Mapping[str, Any]]:
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


def _spec(ratios: list[Mapping[str, Any]]) -> Spec:
    """Return the bars; the axis is logarithmic if they span more than ``_LOG_FROM``."""
    drawn = {ratio["measure"] for ratio in ratios}
    measures = [name for name in _MEASURES if name in drawn]
    values = [1.0, *(ratio["ratio"] for ratio in ratios)]
    least, most = min(values), max(values)
    logarithmic = most > _LOG_FROM * least
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
    return vega.labelled("ratios", layers, _LANE_HEIGHT * lanes)


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


def ratio_picture(file: Path) -> Callable[[Sequence[Row]], bytes]:
    """Return a function that draws rows in the format of ``file``.

    Raises:
        UserError: ``file`` is neither .svg nor .png, or vl-convert-python is not installed. The
            function raises it if there is no ratio to draw.
    """
    format_ = file_format(file, ".svg", ".png")

    def picture(rows: Sequence[Row]) -> bytes:
        charts = vega.prepared("comparison", str(file), lambda: [comparison(rows)])
        if not charts:
            raise UserError(f"{file}: no ratio to draw")
        return picture_of(charts[0], format_, file)

    return picture
