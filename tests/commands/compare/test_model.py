"""Results, and the names that they go by."""

from __future__ import annotations

import pytest

from mlperf_pkg.commands.compare.ratios import Result

A = Result(
    argument=0,
    round="1.0",
    submitter="One",
    system="a",
    system_name="A",
    benchmark="resnet",
    division="closed",
    minutes=20.0,
    path="One/results/a/resnet",
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", True), ("A", True), ("one", True), ("One/a", True), ("1.0 a", True), ("1.0 one/a", True),
        ("1.0*", True), ("o*", True), ("b", False), ("0.7 a", False), ("One/results/a/resnet", True),
    ],
)  # fmt: skip
def test_a_result_goes_by_system_submitter_and_round(name: str, expected: bool) -> None:
    assert A.matches(name) is expected
