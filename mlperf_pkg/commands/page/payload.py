"""The charts of a page as data: what many of them share is said once, and all of it compressed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from mlperf_pkg.commands.charts import CONFIG, Chart
from mlperf_pkg.commands.charts.chart import Rows
from mlperf_pkg.results.report import as_json

_GZIP = 31  # of zlib: a gzip stream, whose head holds neither name nor time

MAX_TEXT = 1000  # characters
_MOST_DECIMALS = 8
_EXACT = 2**53 / 10**_MOST_DECIMALS  # numbers below it are whole in units of the last decimal


def packed(text: str) -> str:
    """Text for a browser's ``DecompressionStream("gzip")``, in Base64; the same each time."""
    compressor = zlib.compressobj(9, wbits=_GZIP)
    data = compressor.compress(text.encode()) + compressor.flush()
    return base64.b64encode(data).decode("ascii")


def payload(places: Mapping[str, Sequence[Chart]]) -> str:
    """The charts of each place of a page, by its id, as JSON.

    ``{"config", "specs": [...], "data": [...], "charts": {id: [[spec, title, description,
    {name: data}], ...]}}``, in which specs and data are told by their index, and data are as
    ``columns`` gives them.
    """
    specs, data = _Table(), _Table()
    charts = {
        place: [
            [
                specs.index(chart.spec),
                short(chart.title),
                short(chart.description),
                {name: data.index(columns(rows)) for name, rows in chart.data.items()},
            ]
            for chart in several
        ]
        for place, several in places.items()
    }
    listed = {"config": CONFIG, "specs": specs.listed, "data": data.listed, "charts": charts}
    return json.dumps(as_json(listed), separators=(",", ":"), allow_nan=False)


def short(text: str) -> str:
    """A text of a stranger, as much of it as anybody would read."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def columns(rows: Rows) -> dict[str, list[Any]]:
    """Rows by column, as what is alike compresses best: half the size of the rows themselves.

    Numbers become ``["n", decimals, first, difference, ...]`` in units of the last decimal, and
    everything else ``["v", value, how often in a row, ...]``.
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
    """How many decimals tell a number, up to as many as any chart can show."""
    return next((n for n in range(_MOST_DECIMALS) if round(value, n) == value), _MOST_DECIMALS)


class _Table:
    """Values in the order of their first use."""

    def __init__(self) -> None:
        self.listed: list[Any] = []
        self._known: dict[str, int] = {}

    def index(self, value: Any) -> int:
        key = json.dumps(value, sort_keys=True)
        if key not in self._known:
            self._known[key] = len(self.listed)
            self.listed.append(value)
        return self._known[key]
