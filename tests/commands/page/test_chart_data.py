"""Charts as the data of a page, and back."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import accumulate
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.commands.page.html import columns, packable, packed, payload
from tests.helpers.charts import charts, drawn


def values(kind: str, *parts: Any) -> list[Any]:
    """The column as the page reads it."""
    if kind == "v":
        return [v for v, n in zip(parts[::2], parts[1::2], strict=True) for _ in range(n)]
    decimals, *steps = parts
    return [round(unit / 10**decimals, decimals) for unit in accumulate(steps)]


def rows(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    cells = {name: values(*column) for name, column in table.items()}
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 5)) | st.integers(-(10**7), 10**7)
CELLS = st.fixed_dictionaries({"a": NUMBERS, "b": st.text(max_size=3) | st.none() | NUMBERS})


@given(st.lists(CELLS, max_size=20))
def test_columns_lose_nothing(table: list[dict[str, Any]]) -> None:
    assert rows(columns(table)) == table


def test_numbers_too_large_to_be_counted_in_decimals_stay_as_they_are() -> None:
    assert rows(columns([{"a": 1e300}, {"a": 2}])) == [{"a": 1e300}, {"a": 2}]


def test_what_charts_share_occurs_once() -> None:
    shown = [packable(chart, {}) for chart in charts(drawn("bert")).values()]
    document = json.loads(payload({"s0": shown, "s1": shown}))
    assert document["charts"]["s0"] == document["charts"]["s1"]
    assert len(document["specs"]) == len(shown)


def test_rows_that_charts_share_are_packed_once() -> None:
    chart, packed_rows = charts(drawn("bert"))["rcp"], dict[int, dict[str, list[Any]]]()
    first, second = packable(chart, packed_rows), packable(chart, packed_rows)
    assert all(first.data[name] is second.data[name] for name in chart.data)


@given(st.text())
def test_packed(text: str) -> None:
    data = packed(text.encode("utf-8", "ignore").decode())
    assert data.isascii()
    assert not set(data) & set("<>&\"'")
    assert zlib.decompress(base64.b64decode(data), 31) == text.encode("utf-8", "ignore")
