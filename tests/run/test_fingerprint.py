"""Copies of a run have one fingerprint, other runs others."""

from __future__ import annotations

import pytest

from mlperf_pkg.log.block import Block
from mlperf_pkg.log.record import Record
from mlperf_pkg.run.fingerprint import Fingerprint


def digest(start: float, values: list[float], *, stopped: bool = True) -> bytes | None:
    fingerprint = Fingerprint()
    stop = [Record("run_stop", start + 1e6, None, {})] if stopped else []
    evaluations = [Record("eval_accuracy", start + 10.0 * n, v, {}) for n, v in enumerate(values)]
    records = [Record("run_start", start, None, {}), *evaluations, *stop]
    for first in range(0, len(records), 50):
        fingerprint.take_block(Block(b"", first, records[first : first + 50]))
    assert fingerprint.digest == fingerprint.digest
    return fingerprint.digest


# However many there are: few are kept as they are, many are hashed.
@pytest.mark.parametrize("count", [2, 3, 62, 63, 64, 65, 127, 128, 1000])
def test_copies_have_one_fingerprint(count: int) -> None:
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
def test_a_short_run_has_no_fingerprint(values: list[float], stopped: bool) -> None:
    assert digest(5.0, values, stopped=stopped) is None
