"""Values that charts are made of."""

from collections.abc import Callable
from operator import eq, ne

import pytest

from mlperf_pkg.commands.charts.chart import SharedRows

ROWS = SharedRows([{"a": 1}])


@pytest.mark.parametrize(
    ("compare", "other", "expected"),
    [
        pytest.param(eq, ROWS, True, id="the same are equal"),
        pytest.param(ne, ROWS, False, id="the same do not differ"),
        pytest.param(eq, SharedRows(ROWS), False, id="copies are not equal"),
        pytest.param(ne, SharedRows(ROWS), True, id="copies differ"),
    ],
)
def test_shared_rows_are_compared_by_identity(
    compare: Callable[[object, object], bool], other: SharedRows, expected: bool
) -> None:
    assert compare(ROWS, other) is expected
