"""Which settings rules name, and what a log says of them."""

from typing import Any

import pytest

from mlperf_pkg.commands.diff.reading import MAX_VALUES, read_settings, settings_named
from mlperf_pkg.commands.diff.runs import MAX_CHARACTERS
from mlperf_pkg.infra.source import Source
from tests.helpers.logs import joined


@pytest.mark.parametrize(
    ("usage", "round_", "named", "not_named"),
    [
        (
            "training",
            "2.0",
            "global_batch_size opt_name lars_epsilon opt_lamb_beta_1 sgd_opt_momentum",
            "eval_accuracy seed run_start submission_org weights_initialization",
        ),
        ("training", "6.1", "tensor_parallelism", "cache_clear"),
        ("training", "0.7", "lr_rates", "actual_selfplay_games_per_generation epoch_start"),
        ("hpc", "1.0", "opt_betas scheduler_milestones", "eval_error staging_stop"),
    ],
)
def test_settings_named(usage: str, round_: str, named: str, not_named: str) -> None:
    settings = settings_named(usage, round_)
    assert settings.issuperset(named.split())
    assert settings.isdisjoint(not_named.split())


def record(value: Any, key: str = "a") -> dict[str, Any]:
    return {"key": key, "value": value, "time_ms": 1, "metadata": {}}


def settings(log: bytes) -> dict[str, str]:
    return read_settings(Source("log", log), frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1], "1"),
        ([1.0], "1"),
        ([1, 1.0, 1], "1"),
        ([0.5, 2], "0.5, 2"),
        (["1"], '"1"'),
        ([True], "true"),
        ([None], "null"),
        ([{"b": 1, "a": [2]}], '{"a": [2], "b": 1}'),
        (["\x1b[31m"], '"\\u001b[31m"'),
        ([1e300], "1e+300"),
        ([float("nan")], "NaN"),
        (list(range(100)), ", ".join(map(str, range(MAX_VALUES)))),
    ],
)
def test_values(values: Any, text: str) -> None:
    assert settings(joined([record(value) for value in values])) == {"a": text}


def test_other_keys_and_lines_are_passed_over() -> None:
    """Hyperparameters that no rule names are read, too."""
    named = [record(1), record(2, "c"), record(3, "b"), record(4, "opt_new")]
    log = b"noise\n:::MLLOG {\n" + joined(named)
    assert settings(log) == {"a": "1", "b": "3", "opt_new": "4"}


def test_long_values_stay_apart() -> None:
    first, second = (settings(joined([record("x" * MAX_CHARACTERS + end)]))["a"] for end in "yz")
    assert first != second
    assert len(first) < MAX_CHARACTERS + 100
