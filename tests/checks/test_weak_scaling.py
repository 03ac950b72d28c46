"""Weak scaling: many models at once, against the official summarizer."""

from __future__ import annotations

from typing import Any

import pytest
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.log.record import Record
from mlperf_pkg.results.scoring import Score, Span, weak_score
from mlperf_pkg.run.scale import InstanceScale

MINUTE = 60_000.0


@pytest.mark.parametrize(
    ("runs", "required", "score"),
    [
        ([Span("a", 0, MINUTE), Span("b", MINUTE, 3 * MINUTE)], 2, Score(3.0)),
        ([Span("a", 5, 5 + MINUTE)], 1, Score(1.0)),
        ([Span("a", 0, MINUTE)], 2, Score(None, (), "only 1 of 2 models were trained")),
        ([], 1, Score(None, (), "only 0 of 1 models were trained")),
    ],
)
def test_from_the_first_start_to_the_last_stop(
    runs: list[Span], required: int, score: Score
) -> None:
    assert weak_score(runs, [], required) == score


def test_models_that_are_not_trained_are_dropped() -> None:
    score = weak_score([Span("a", 0, MINUTE)], [("b", True), ("c", False)], 1)
    assert score == Score(1.0, (("b", "did not converge"), ("c", "has no time")))


@pytest.mark.parametrize(
    ("records", "scale"),
    [
        ([("number_of_nodes", 128), ("accelerators_per_node", 4)], 512),
        ([("accelerators_per_node", 0), ("number_of_nodes", 7)], 7),
        ([("number_of_nodes", "2"), ("accelerators_per_node", "8")], 16),
        ([("number_of_nodes", 1), ("number_of_nodes", 2), ("accelerators_per_node", 3)], 6),
        ([("number_of_nodes", 2), ("accelerators_per_node", 3), ("number_of_nodes", 9)], 6),
        ([("number_of_nodes", 2), ("number_of_nodes", None), ("accelerators_per_node", 3)], None),
        ([("number_of_nodes", 2)], None),
        ([("number_of_nodes", "x"), ("accelerators_per_node", 3)], None),
        ([], None),
    ],
)
def test_instance_scale(records: list[tuple[str, Any]], scale: int | None) -> None:
    reader = InstanceScale()
    for key, value in records:
        reader.take(Record(key, 0, value, {}), 0)
    assert reader.result() == scale
    assert official_scale(records) == scale


def official_scale(records: list[tuple[str, Any]]) -> int | None:
    class Line:
        def __init__(self, key: str, value: Any) -> None:
            self.key, self.value = key, {"value": value}

    try:
        scale: int = result_summarizer._query_instance_scale(
            [Line(key, value) for key, value in records]
        )
    except ValueError:
        return None
    return scale
