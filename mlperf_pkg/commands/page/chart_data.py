"""The charts of a page as compressed JSON, with the parts that charts share stored once."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.commands.charts.chart import CONFIG, Chart, Rows
from mlperf_pkg.commands.page.template import short
from mlperf_pkg.results.report import as_json

_GZIP = 31  # of zlib: a gzip stream, with neither name nor time in its header

_MOST_DECIMALS = 8
_EXACT = 2**53 / 10**_MOST_DECIMALS  # numbers below it are exact in units of the last decimal


def packed(text: str) -> str:
    """Return text as gzip in Base64, the same each time, for ``DecompressionStream``."""
    compressor = zlib.compressobj(9, wbits=_GZIP)
    data = compressor.compress(text.encode()) + compressor.flush()
    return base64.b64encode(data).decode("ascii")


def packable(chart: Chart, packed_rows: dict[int, dict[str, list[Any]]]) -> Chart:
    """Return a chart with short strings, and with its data as ``columns`` returns them.

    ``packed_rows`` keeps the columns by the ``id`` of their rows, which many charts share.
    """
    for rows in chart.data.values():
        if id(rows) not in packed_rows:
            packed_rows[id(rows)] = columns(rows)
    return replace(
        chart,
        title=short(chart.title),
        description=short(chart.description),
        data={name: packed_rows[id(rows)] for name, rows in chart.data.items()},
    )


def payload(charts: Mapping[str, Sequence[Chart]]) -> str:
    """Return ``packable`` charts as JSON, by the id of the element that shows them.

    ``{"config", "specs": [...], "data": [...], "charts": {id: [[spec, title, description,
    {name: data}], ...]}}``, in which specs and data are indexes, and data are as ``columns``
    returns them.
    """
    specs, data = _Table(), _Table()
    packed_charts = {
        element: [
            [
                specs.index(chart.spec),
                chart.title,
                chart.description,
                {name: data.index(table) for name, table in chart.data.items()},
            ]
            for chart in element_charts
            if not chart.missing
        ]
        for element, element_charts in charts.items()
    }
    document = {
        "config": CONFIG,
        "specs": specs.values,
        "data": data.values,
        "charts": packed_charts,
    }
    return json.dumps(as_json(document), separators=(",", ":"), allow_nan=False)


def columns(rows: Rows) -> dict[str, list[Any]]:
    """Return rows as columns, which compress to half the size of the rows.

    Numbers become ``["n", decimals, first, difference, ...]`` in units of the last decimal, and
    everything else ``["v", value, repetitions, ...]``.
    """
    fields = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in fields}


def _column(values: Sequence[Any]) -> list[Any]:
    if all(type(value) in (int, float) and abs(value) < _EXACT for value in values):
        decimals = max(map(_decimals, values))
        units = [round(value * 10**decimals) for value in values]
        return ["n", decimals, *(after - before for before, after in pairwise([0, *units]))]
    values = [short(value) if isinstance(value, str) else value for value in values]
    runs = ((value, len(list(alike))) for value, alike in groupby(values))
    return ["v", *(part for run in runs for part in run)]


def _decimals(value: float) -> int:
    """Return the number of decimals of a number, up to as many as a chart can show."""
    text = repr(value)
    if "e" in text:
        return next((n for n in range(_MOST_DECIMALS) if round(value, n) == value), _MOST_DECIMALS)
    return min(_MOST_DECIMALS, len(text.partition(".")[2].rstrip("0")))


class _Table:
    """Different values in the order of their first use."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._indexes: dict[str, int] = {}

    def index(self, value: Any) -> int:
        key = json.dumps(value, sort_keys=True)
        if key not in self._indexes:
            self._indexes[key] = len(self.values)
            self.values.append(value)
        return self._indexes[key]
