"""Which round a run is of, where nobody says it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mlperf_pkg.rulebook.files import rounds
from mlperf_pkg.rulebook.rounds import round_of_run, round_of_tree


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["training_results_v2.0"], ("training", "2.0")),
        (["hpc_results_v3.0"], ("hpc", "3.0")),
        (["hpc_v1.0"], ("hpc", "1.0")),
        (["v5.1"], ("training", "5.1")),
        (["results", "NVIDIA", "v0.7", "v1.0"], ("training", "0.7")),
        (["v2"], None),
        (["version_v2.0"], None),
        ([], None),
    ],
)
def test_round_of_tree(parts: list[str], expected: tuple[str, str] | None) -> None:
    assert round_of_tree(parts) == expected


@pytest.mark.parametrize(
    ("usage", "day", "benchmark", "expected"),
    [
        ("training", "2020-01-01", "resnet", "0.7"),
        ("training", "2020-06-20", "bert", "0.7"),
        ("training", "2020-07-24", "bert", "0.7"),
        ("training", "2020-07-25", "bert", "1.0"),
        ("training", "2020-06-20", "rnnt", "1.0"),
        ("training", "2022-05-20", "resnet", "2.0"),
        ("training", "2023-05-01", "gpt3", "3.0"),
        ("training", "2023-10-06", "stable_diffusion", "3.1"),
        ("training", "2025-05-30", "llama31_405b", "5.0"),
        ("training", "2025-05-31", "llama31_405b", "5.1"),
        ("training", "2025-05-01", "llama31_8b", "5.1"),
        ("training", "2099-01-01", "resnet", "4.0"),
        ("training", "2099-01-01", "unheard of", rounds("training")[-1]),
        ("training", "2022-05-20", "unheard of", "2.0"),
        ("training", "2022-05-20", "", "2.0"),
        ("training", "1970-01-01", "", rounds("training")[-1]),
        ("hpc", "2021-10-10", "deepcam", "1.0"),
        ("hpc", "2022-09-01", "deepcam", "2.0"),
        ("hpc", "2021-10-10", "openfold", "3.0"),
    ],
)
def test_round_of_run(usage: str, day: str, benchmark: str, expected: str) -> None:
    time_ms = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000
    assert round_of_run(usage, time_ms, benchmark)[0] == expected


@pytest.mark.parametrize("time_ms", [1e300, float("nan"), float("inf"), -1e300])
def test_times_out_of_this_world(time_ms: float) -> None:
    name, reason = round_of_run("training", time_ms, "resnet")
    assert name in ("0.7", "4.0")
    assert reason
