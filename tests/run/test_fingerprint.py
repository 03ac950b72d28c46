"""What tells a copy of a run from another run."""

from __future__ import annotations

import pytest

from mlperf_pkg.log.record import Record
from mlperf_pkg.run.fingerprint import Trace


def digest(start: float, values: list[float], *, stopped: bool = True) -> bytes | None:
    trace = Trace()
    stop = [Record("run_stop", start + 1e6, None, {})] if stopped else []
    evaluations = [Record("eval_accuracy", start + 10.0 * n, v, {}) for n, v in enumerate(values)]
    for record in (Record("run_start", start, None, {}), *evaluations, *stop):
        trace.see(record, 0)
    assert trace.digest == trace.digest
    return trace.digest


# However many there are: few are told as they are, many hashed.
@pytest.mark.parametrize("count", [2, 3, 62, 63, 64, 65, 127, 128, 1000])
def test_copies_are_told_from_others(count: int) -> None:
    values = [n / 1000 for n in range(count)]
    copy = digest(5.0, values)
    assert copy is not None
    assert digest(7.0, values) == copy
    assert digest(5.0, [*values[:-1], 9.0]) != copy
    assert digest(5.0, [9.0, *values[1:]]) != copy
    assert digest(5.0, values[:-1]) != copy


@pytest.mark.parametrize(
    ("values", "stopped"), [([], True), ([0.5], True), ([0.5] * 100, False), ([], False)]
)
def test_too_little_tells_nothing(values: list[float], stopped: bool) -> None:
    assert digest(5.0, values, stopped=stopped) is None
