"""What changed in reference points: from the data of the installed mlperf-logging."""

from __future__ import annotations

import pytest

from mlperf_pkg.results.rcp import ReferenceRuns, changed_points
from mlperf_pkg.rulebook.explain.describe import loaded
from mlperf_pkg.rulebook.load import load_round

CHANGES = [
    # Rounds and benchmark, batch sizes of points that were added, removed, changed.
    ("2.0", "2.1", "ssd", [1280, 2048], [], []),
    ("2.0", "2.1", "bert", [], [], [448]),
    ("2.0", "2.1", "resnet", [], [], []),
    ("2.1", "2.0", "ssd", [], [1280, 2048], []),
    ("0.7", "1.0", "bert", [], [], []),  # no points in 0.7: nothing to compare with
]


@pytest.mark.parametrize(("old", "new", "benchmark", "added", "removed", "changed"), CHANGES)
def test_points_between_rounds(
    old: str, new: str, benchmark: str, added: list[int], removed: list[int], changed: list[int]
) -> None:
    before, after = load_round("training", old), load_round("training", new)
    points = list(
        changed_points(before, loaded(before, benchmark), after, loaded(after, benchmark))
    )
    assert [point.batch_size for point in points if not point.old] == added
    assert [point.batch_size for point in points if not point.new] == removed
    assert [point.batch_size for point in points if point.old and point.new] == changed


def test_all_points_of_a_new_benchmark_are_new() -> None:
    before, after = load_round("training", "5.1"), load_round("training", "6.0")
    points = list(changed_points(before, None, after, loaded(after, "gpt_oss_20b")))
    assert [(point.batch_size, point.old) for point in points] == [
        (16, None),
        (32, None),
        (64, None),
    ]
    assert points[0].new == ReferenceRuns(20, 194560)
