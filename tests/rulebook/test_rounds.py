"""Which round a run is of, where nobody says it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook.rounds import round_of_run, round_of_tree
from mlperf_pkg.run.identity import infer_round
from mlperf_pkg.run.model import LogFile
from tests.helpers.corpus import ROUNDS, corpus_folder, expected, needs_corpus


@pytest.mark.parametrize(
    ("parts", "found"),
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
def test_round_of_tree(parts: list[str], found: tuple[str, str] | None) -> None:
    assert round_of_tree(parts) == found


@pytest.mark.parametrize(
    ("usage", "day", "benchmark", "found"),
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
        ("training", "2099-01-01", "unheard of", "6.1"),
        ("training", "2022-05-20", "unheard of", "2.0"),
        ("training", "2022-05-20", "", "2.0"),
        ("training", "1970-01-01", "", "6.1"),
        ("hpc", "2021-10-10", "deepcam", "1.0"),
        ("hpc", "2022-09-01", "deepcam", "2.0"),
        ("hpc", "2021-10-10", "openfold", "3.0"),
    ],
)
def test_round_of_run(usage: str, day: str, benchmark: str, found: str) -> None:
    time_ms = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000
    assert round_of_run(usage, time_ms, benchmark)[0] == found


@pytest.mark.parametrize("time_ms", [1e300, float("nan"), float("inf"), -1e300])
def test_times_out_of_this_world(time_ms: float) -> None:
    name, reason = round_of_run("training", time_ms, "resnet")
    assert name in ("0.7", "4.0")
    assert reason


@needs_corpus
def test_dates_alone_find_the_round_of_nearly_all_published_logs() -> None:
    """All of training (1,910 logs); of HPC all but those that were submitted again (35 of 145)."""
    folder = corpus_folder()
    assert folder is not None
    found: dict[str, list[bool]] = {"training": [], "hpc": []}
    for tree in ROUNDS:
        usage = "hpc" if tree.startswith("hpc") else "training"
        for path in expected(tree)["logs"]:
            file = folder / tree / path
            log = LogFile(Source(path, file), usage)
            found[usage].append(infer_round(log)[0] == tree.rpartition("v")[2])
    assert (sum(found["training"]), len(found["training"])) == (1910, 1910)
    assert (sum(found["hpc"]), len(found["hpc"])) == (110, 145)
