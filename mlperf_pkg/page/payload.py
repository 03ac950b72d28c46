"""The charts of a page as data: what many of them share is said once, and all of it compressed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from mlperf_pkg.charts import CONFIG, Chart
from mlperf_pkg.report import as_json

_GZIP = 31  # of zlib: a gzip stream, whose head holds neither name nor time


def packed(text: str) -> str:
    """Text for a browser's ``DecompressionStream("gzip")``, in Base64; the same each time."""
    compressor = zlib.compressobj(9, wbits=_GZIP)
    data = compressor.compress(text.encode()) + compressor.flush()
    return base64.b64encode(data).decode("ascii")


def payload(places: Mapping[str, Sequence[Chart]]) -> str:
    """The charts of each place of a page, by its id, as JSON.

    ``{"config", "specs": [...], "data": [...], "charts": {id: [[spec, title, description,
    {name: data}], ...]}}``, in which specs and data are told by their index.
    """
    specs, data = _Table(), _Table()
    charts = {
        place: [
            [
                specs.index(chart.spec),
                chart.title,
                chart.description,
                {name: data.index(list(rows)) for name, rows in chart.data.items()},
            ]
            for chart in several
        ]
        for place, several in places.items()
    }
    listed = {"config": CONFIG, "specs": specs.listed, "data": data.listed, "charts": charts}
    return json.dumps(as_json(listed), separators=(",", ":"), allow_nan=False)


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
