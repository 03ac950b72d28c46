"""What the official summarizer takes from one log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlperf_pkg.logsummary import LogSummary, LogSummaryReader
from mlperf_pkg.mllog import Record


def summary(*records: tuple[str, Any, float], train_samples: bool = False) -> LogSummary:
    reader = LogSummaryReader(train_samples, steps=False)
    for key, value, time_ms in records:
        metadata = {"epoch_num": 3, "status": "success"}
        record = Record(key, time_ms, value, metadata)
        raw = json.dumps({"key": key, "value": value, "metadata": metadata}).encode()
        reader.see(raw, record)
    reader.see(b"no record", None)
    return reader.result()


@pytest.mark.parametrize(
    ("records", "span"),
    [
        ([("run_start", 1), ("run_stop", 5), ("run_stop", 9)], (1.0, 5.0)),
        ([("run_start", 1), ("run_start", 2), ("run_stop", 5)], (2.0, 5.0)),
        ([("run_stop", 1), ("run_start", 2), ("run_stop", 5)], (2.0, 1.0)),
        ([("run_start", 1)], None),
        ([("run_stop", 1)], None),
    ],
)
def test_span(records: list[tuple[str, float]], span: tuple[float, float] | None) -> None:
    assert summary(*((key, None, time_ms) for key, time_ms in records)).span_ms == span


@pytest.mark.parametrize(
    ("nodes", "per_node", "scale"),
    [(4, 8, 32), ("4", 8, 32), (4, 0, 4), (4, None, None), ("many", 8, None), (None, 8, None)],
)
def test_instance_scale(nodes: Any, per_node: Any, scale: int | None) -> None:
    records = ("number_of_nodes", nodes, 0.0), ("accelerators_per_node", per_node, 0.0)
    assert summary(*records).instance_scale == scale


def test_epochs_only_where_the_run_counts_samples() -> None:
    records = (
        ("submission_benchmark", "bert", 0.0),
        ("eval_accuracy", 0.8, 1.0),
        ("train_samples", 5000, 2.0),
        ("run_stop", None, 3.0),
    )
    assert summary(*records).epochs is None
    epochs = summary(*records, train_samples=True).epochs
    assert epochs
    assert epochs.to_converge == 3
