"""Published numbers are rounded normally; equal ones share a rank."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.commands.results.publication import ranks, rounded


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (0.0, 0.0),
        (9.8064, 9.806),
        (9.8065, 9.807),  # Python's format says 9.806
        (0.6325, 0.633),
        (4.0085, 4.009),
        (273.1399999, 273.14),
    ],
)
def test_rounding(value: float | None, expected: float | None) -> None:
    assert rounded(value) == expected


@given(st.floats(0, 1e9))
def test_rounding_is_to_the_nearest(value: float) -> None:
    result = rounded(value)
    assert result is not None
    assert abs(Decimal(repr(result)) - Decimal(repr(value))) <= Decimal("0.000501")
    assert rounded(result) == result


def test_ranks_are_within_groups_and_shared() -> None:
    values = [("a", 2.0), ("b", 9.0), ("a", 1.0), ("a", 2.0), ("a", 3.0)]
    assert ranks(values) == [(2, 4), (1, 1), (1, 4), (2, 4), (4, 4)]
