"""How fast a run trained."""

from typing import Any

import pytest

from mlperf_pkg.commands.compare.reading import Training, mean, read_training
from mlperf_pkg.infra.source import Source
from mlperf_pkg.run.model import LogFile
from mlperf_pkg.run.reading import read_run
from tests.helpers.logs import good_log, joined, records


def training(log: bytes, round_: str = "2.0") -> Training:
    run = read_run(LogFile(Source("log", log), "training", round_))
    return read_training(Source("log", log), run)


def small(benchmark: str, position: Any, batch: int = 32, samples: int = 1000) -> bytes:
    """A run of 100 seconds that converged at ``position`` after 50."""
    good = {"resnet": 0.76, "bert": 0.73, "minigo": 0.6, "ssd": 0.35, "dlrm": 0.81}[benchmark]
    rows = [
        ("submission_benchmark", 0, benchmark, {}),
        ("submission_division", 0, "closed", {}),
        ("global_batch_size", 0, batch, {}),
        ("train_samples", 0, samples, {}),
        ("run_start", 1_000, None, {}),
        ("eval_accuracy", 51_000, good, {"epoch_num": position}),
        ("run_stop", 101_000, None, {"status": "success"}),
    ]
    place = {"file": "f", "lineno": 1}
    return joined(
        [
            {"key": key, "time_ms": time, "value": value, "metadata": place | data}
            for key, time, value, data in rows
        ]
    )


def test_samples_are_counted_until_the_run_converged() -> None:
    for log, rate in (
        # The data set of the Closed division is that of the rules, whatever is logged.
        (small("resnet", 10), 10 * 1281167 / 50),
        (small("ssd", 5, samples=4572), 5 * 1170301 / 50),
        (small("bert", 64_000), 64_000 / 50),
        (small("bert", 1), None),  # no number of samples
        (small("dlrm", 1.5), 0.5 * 4195197692 / 50),
        (small("dlrm", 18), None),  # no number of epochs
        (small("minigo", 20), None),
        (small("resnet", "ten"), None),
        (small("resnet", 10).replace(b'"success"', b'"aborted"'), None),
        (small("resnet", 10).replace(b"0.76", b"0.1"), None),
        (small("resnet", 10).replace(b"51000", b"151000"), 10 * 1281167 / 100),  # evaluated later
    ):  # fmt: skip
        assert training(log).samples_per_second == (rate and pytest.approx(rate))


def test_bert_that_numbers_steps_may_log_its_samples_at_the_end() -> None:
    lines = small("bert", 1).splitlines(keepends=True)
    late = b':::MLLOG {"key": "train_samples", "time_ms": 60000, "value": 90000, "metadata": {}}\n'
    assert training(b"".join([*lines, late])).samples_per_second == 1800.0


def test_logged_throughput_is_the_median() -> None:
    for key, values, expected in (
        ("throughput", [10.0, 30, 20], 20.0),
        ("tracked_stats", [{"throughput": 4}, {"loss": 3}, {"throughput": 6}], 5.0),
        ("throughput", ["fast", None, True, float("nan"), -1, [5], 10**400], None),
        ("tracked_stats", [{"throughput": {}}, [], "x"], None),
    ):
        more = [{"key": key, "time_ms": 2000, "value": value, "metadata": {}} for value in values]
        assert training(small("resnet", 10) + joined(more)).logged_throughput == expected


def test_precision_is_what_the_log_says() -> None:
    for value, expected in (
        ("FLOAT 16.16", ("16.16",)),
        ("16.32", ("16.32",)),
        (16.16, ("16.16",)),
        ("bf16", ("bf16",)),
        ("", ()),
        (None, ()),
        ({"a": 1}, ()),
    ):
        more = joined([{"key": "precision", "time_ms": 1, "value": value, "metadata": {}}])
        assert training(small("resnet", 10) + more).precision == expected


def test_a_simulated_run_has_a_rate_and_says_no_precision() -> None:
    log = good_log()
    times = {record["key"]: record["time_ms"] for record in records(log)}
    epochs = max(e["metadata"]["epoch_num"] for e in records(log) if e["key"] == "eval_accuracy")
    seconds = (times["eval_accuracy"] - times["run_start"]) / 1000
    speed = training(log)
    assert speed.samples_per_second == pytest.approx(epochs * 1281167 / seconds)
    assert speed.precision == ()


def test_the_mean_ignores_unknown_values() -> None:
    assert mean([1.0, None, 3.0]) == 2.0
    assert mean([None]) is None
