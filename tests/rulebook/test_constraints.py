"""Constraints at their limits."""

from typing import Any

import pytest

from mlperf_pkg.rulebook.constraints import holds
from mlperf_pkg.rulebook.formula import number_if_none


@pytest.mark.parametrize(
    ("value", "constraints", "expected"),
    [
        pytest.param(3.000009, {"whole": True}, True, id="nearly whole"),
        pytest.param(3.000011, {"whole": True}, False, id="not whole"),
        pytest.param(2.999991, {"whole": True}, True, id="nearly whole, from below"),
        pytest.param(2.999989, {"whole": True}, False, id="not whole, from below"),
        pytest.param(8.000036, {"multiple_of": 4}, True, id="nearly a multiple"),
        pytest.param(8.000044, {"multiple_of": 4}, False, id="not a multiple"),
    ],
)
def test_the_tolerance_of_whole_numbers(
    value: float, constraints: dict[str, Any], expected: bool
) -> None:
    assert holds(value, constraints) is expected


@pytest.mark.parametrize(
    ("value", "needed", "words"),
    [
        pytest.param("big", "above 0", "a number ", id="text instead of a number"),
        pytest.param(None, "at least 5", "a number of ", id="null instead of a number"),
        pytest.param(-3, "above 0", "", id="a number out of bounds"),
        pytest.param("big", "an integer", "", id="not a bound"),
    ],
)
def test_a_bound_of_what_is_not_a_number(value: Any, needed: str, words: str) -> None:
    assert number_if_none(value, needed) == words
