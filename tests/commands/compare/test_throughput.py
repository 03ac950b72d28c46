"""How fast a run trained."""

from typing import Any

import pytest

from mlperf_pkg.commands.compare.reading import Training, mean, read_training
from mlperf_pkg.infra.source import Source
from tests.helpers.logs import line, run_of


def training(log: bytes) -> Training:
    return read_training(Source("log", log), run_of(log))


def small(benchmark: str, position: Any, *more: bytes, samples: int = 1000, end: int = 2) -> bytes:
    """A run of two minutes that converged at ``position`` after one; ``more`` lines follow."""
    good = {"resnet": 0.76, "bert": 0.73, "minigo": 0.6, "ssd": 0.35, "dlrm": 0.81}[benchmark]
    lines = (
        line("submission_benchmark", 0, benchmark),
        line("submission_division", 0, "closed"),
        line("global_batch_size", 0, 32),
        line("train_samples", 0, samples),
        line("run_start", 1),
        line("eval_accuracy", end, good, epoch_num=position),
        line("run_stop", 3, status="success"),
    )
    return b"".join([*lines, *more])


def test_samples_are_counted_until_the_run_converged() -> None:
    late = line("train_samples", 2, 90_000)
    assert [
        (log, rate)
        for log, rate in (
            # The data set of the Closed division is that of the rules, whatever is logged.
            (small("resnet", 10), 10 * 1281167 / 60),
            (small("ssd", 5, samples=4572), 5 * 1170301 / 60),
            (small("bert", 64_000), 64_000 / 60),
            (small("bert", 1), None),  # no number of samples
            (small("bert", 1, late), 90_000 / 60),  # the number of a step
            (small("dlrm", 1.5), 0.5 * 4195197692 / 60),
            (small("dlrm", 18), None),  # no number of epochs
            (small("minigo", 20), None),
            (small("resnet", "ten"), None),
            (small("resnet", 10).replace(b'"success"', b'"aborted"'), None),
            (small("resnet", 10).replace(b"0.76", b"0.1"), None),
            (small("resnet", 10, end=4), 10 * 1281167 / 120),  # evaluated later
            (small("resnet", 10, end=3).replace(b"180000", b"60000"), None),  # in no time
        )
        if training(log).samples_per_second != (rate and pytest.approx(rate))
    ] == []


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        ("throughput", [10.0, 30, 20], 20.0),
        ("tracked_stats", [{"throughput": 4}, {"loss": 3}, {"throughput": 6}], 5.0),
        ("throughput", ["fast", None, True, float("nan"), -1, [5], 10**400], None),
        ("tracked_stats", [{"throughput": {}}, [], "x"], None),
    ],
)
def test_logged_throughput_is_the_median(key: str, values: Any, expected: float | None) -> None:
    more = (line(key, 2, value) for value in values)
    assert training(small("resnet", 10, *more)).logged_throughput == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("FLOAT 16.16", ("16.16",)),
        (16.16, ("16.16",)),
        ("bf16", ("bf16",)),
        ("", ()),
        (None, ()),
        ({"a": 1}, ()),
    ],
)
def test_precision_is_what_the_log_says(
    value: str | float | dict[str, int] | None, expected: tuple[str] | tuple[()]
) -> None:
    assert training(small("resnet", 10, line("precision", 0, value))).precision == expected


def test_the_mean_ignores_unknown_values() -> None:
    assert (mean([1.0, None, 3.0]), mean([None])) == (2.0, None)
