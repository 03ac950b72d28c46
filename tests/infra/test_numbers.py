"""Which JSON values are numbers, as Python reads them and for figures."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mlperf_pkg.infra.json_values import is_number, to_finite, to_float

INF = math.inf


@pytest.mark.parametrize(
    ("value", "as_python", "finite"),
    [
        (1, 1.0, 1.0),
        (-2.5, -2.5, -2.5),
        (0, 0.0, 0.0),
        (True, 1.0, None),
        (False, 0.0, None),
        (INF, INF, None),
        (-INF, -INF, None),
        (10**308, 1e308, 1e308),
        (10**400, INF, None),
        (-(10**400), -INF, None),
        (None, None, None),
        ("1", None, None),
        ([1], None, None),
        ({}, None, None),
    ],
)
def test_numbers(value: Any, as_python: float | None, finite: float | None) -> None:
    assert (to_float(value), to_finite(value)) == (as_python, finite)
    assert is_number(value) is (as_python is not None)


def test_nan_is_a_number_but_not_a_finite_one() -> None:
    assert is_number(math.nan)
    assert to_float(math.nan) is not None
    assert to_finite(math.nan) is None
