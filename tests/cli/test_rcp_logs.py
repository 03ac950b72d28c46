"""``mlperf-pkg rcp check``, ``new`` and ``bootstrap``, against the official RCP checker, live."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.rcp_checker import rcp_checker as official

from mlperf_pkg.infra.resources import official_folder
from tests.helpers import program
from tests.helpers.logs import edited
from tests.helpers.trees import simulated, write_set, write_submission

Logs = tuple[bytes, ...]
REFERENCE = simulated(runs=10)  # resnet of 2.0: a submission has 5


def streams(*arguments: str | Path) -> tuple[int, str, str]:
    result = program.call("rcp", *arguments)
    return result.exit_code, result.stdout, result.stderr


def report(*arguments: str | Path) -> list[dict[str, Any]]:
    _, text, errors = streams("check", *arguments, "--format", "json")
    assert not errors
    sets: list[dict[str, Any]] = json.loads(text)["result_sets"]
    return sets


@lru_cache
def package_points() -> dict[str, Any]:
    file = official_folder() / "rcp_checker/training_2.0.0/rcps_resnet.json"
    points: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return points


def batch_size(logs: Path) -> int:
    return int(report(logs)[0]["rcp"]["batch_size"])


def theirs(logs: Path, points: Path | None, ruleset: str = "2.0.0") -> tuple[bool, str, float]:
    """The outcome of the official checker with --custom_rcps."""
    with points.open(encoding="utf-8") if points else nullcontext() as stream:
        passed, message, factor = official.check_directory(
            str(logs), "training", ruleset, False, False, rcp_file=stream, rcp_pass="pruned_rcps"
        )
    return bool(passed), message, float(factor)


def as_theirs(row: dict[str, Any]) -> tuple[bool, str, float]:
    test = row["rcp"]
    return test["official_pass"], test["message"], test["normalization"]


OPEN = tuple(
    edited(log, "eval_accuracy", value=0.8, metadata={"epoch_num": 1})
    for log in simulated(division="open")
)
HUGE = tuple(edited(log, "global_batch_size", value=10**400) for log in simulated())


# ---- check --------------------------------------------------------------------------------


def points_at(size: int, values: list[float]) -> dict[str, Any]:
    return {
        f"new_{size}": {
            "Benchmark": "resnet",
            "BS": size,
            "Hyperparams": {},
            "Epochs to converge": values,
        }
    }


POINTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "slower": lambda size: points_at(size, [90, 91, 92, 93, 90, 91, 92, 93, 90, 91]),
    "faster": lambda size: points_at(size, [5, 6, 5, 6, 5, 6, 5, 6, 5, 6]),
    "a little slower": lambda size: points_at(size, [30, 60, 40, 50, 45, 35, 41, 42, 48, 33]),
    "smaller only": lambda size: points_at(size // 2, [30, 40, 35, 36, 37, 38, 39, 40, 41, 42]),
    "larger only": lambda size: points_at(size * 2, [30, 40, 35, 36, 37, 38, 39, 40, 41, 42]),
    "both sides": lambda size: {
        **points_at(size // 2, [30, 31, 32, 33, 34, 35, 36, 37, 38, 39]),
        **points_at(size * 2, [40, 41, 42, 43, 44, 45, 46, 47, 48, 49]),
    },
}


@pytest.mark.parametrize("name", POINTS)
def test_custom_points_as_the_official_checker(name: str, tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    file = tmp_path / "points.json"
    file.write_text(json.dumps(POINTS[name](batch_size(logs))), "utf-8")
    [row] = report(logs, "--custom", file)
    assert as_theirs(row) == theirs(logs, file)
    assert row["custom"] is True
    assert row["before"]["official_pass"] is theirs(logs, None)[0]


@pytest.mark.parametrize("name", POINTS)
def test_merged_points_as_the_official_checker(name: str, tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    points = POINTS[name](batch_size(logs))
    file, together = tmp_path / "points.json", tmp_path / "together.json"
    file.write_text(json.dumps(points), "utf-8")
    sizes = {point["BS"] for point in points.values()}
    kept = {key: point for key, point in package_points().items() if point["BS"] not in sizes}
    together.write_text(json.dumps({**kept, **points}), "utf-8")
    [row] = report(logs, "--custom", file, "--merge")
    assert as_theirs(row) == theirs(logs, together)


def test_the_points_of_the_package(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    [row] = report(logs)
    assert as_theirs(row) == theirs(logs, None)
    assert (row["state"], row["custom"], row["before"]) == ("pass", False, None)


def test_check_also_shows_the_outcome_of_the_package(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    file = tmp_path / "points.json"
    file.write_text(json.dumps(POINTS["slower"](batch_size(logs))), "utf-8")
    status, text, _ = streams("check", logs, "--custom", file)
    words = " ".join(text.split())
    assert status == 1
    assert "FAIL" in text
    assert "with the points of mlperf-logging: pass (RCP" in words
    assert "1 result set: 1 FAIL" in text
    assert max(map(len, text.splitlines()[1:])) <= 80


@pytest.mark.parametrize(
    ("logs", "status", "words"),
    [
        (simulated(), 0, "1 result set: 1 pass"),
        (simulated(runs=4), 0, "4 of 5 runs"),
        (simulated(runs=2), 2, "2 of 5 runs"),
        (
            simulated(benchmark="minigo"),
            2,
            "the official checker crashes: it does not cover minigo",
        ),
    ],
)
def test_check(logs: Logs, status: int, words: str, tmp_path: Path) -> None:
    actual, text, errors = streams("check", write_set(tmp_path, logs))
    assert (actual, errors) == (status, "")
    assert words in " ".join(text.split())


def test_check_of_a_tree_with_points_of_one_benchmark(tmp_path: Path) -> None:
    tree = write_submission(tmp_path / "v2.0", "resnet", "bert")
    file = tmp_path / "points.json"
    file.write_text(json.dumps(POINTS["slower"](256)), "utf-8")
    rows = {row["benchmark"]: row for row in report(tree, "--custom", file)}
    assert {name: row["custom"] for name, row in rows.items()} == {"bert": False, "resnet": True}
    status, text, _ = streams("check", tree, "--format", "csv")
    assert (status, len(text.splitlines())) == (0, 3)


def test_check_refuses_points_of_other_benchmarks(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    file = tmp_path / "points.json"
    point = {**points_at(8, [1.0] * 9)["new_8"], "Benchmark": "bert\x1b[2J"}
    file.write_text(json.dumps({"a": point}), "utf-8")
    status, _, errors = streams("check", logs, "--custom", file)
    assert status == 2
    assert errors.endswith(
        "points of bert\\x1b[2J; expected a benchmark of the result sets: resnet\n"
    )


def test_check_refuses_a_pipe(tmp_path: Path) -> None:
    logs = write_set(tmp_path / "logs", simulated())
    os.mkfifo(tmp_path / "pipe")
    status, _, errors = streams("check", logs, "--custom", tmp_path / "pipe")
    assert (status, errors) == (2, f"mlperf-pkg: error: {tmp_path / 'pipe'}: not a file\n")


def test_an_empty_folder(tmp_path: Path) -> None:
    for command in ("check", "new"):
        assert streams(command, tmp_path)[0] == 2


# ---- new ----------------------------------------------------------------------------------


def failed(log: bytes) -> bytes:
    return edited(log, "run_stop", metadata={"status": "aborted"})


REFUSED: dict[str, tuple[Logs, str]] = {
    "too few": (REFERENCE[:9], "9 logs; expected at least 10 (2N, as a submission has N = 5 runs)"),
    "mixed batch sizes": (
        (edited(REFERENCE[0], "global_batch_size", value=64), *REFERENCE[1:]),
        "batch sizes ",
    ),
    "no batch size": (
        tuple(edited(log, "global_batch_size", value="x") for log in REFERENCE),
        "batch size 'x'; expected a positive number",
    ),
    "not converged": (
        (failed(REFERENCE[0]), *REFERENCE[1:]),
        "not converged (1 log): result_0.txt",
    ),
    "copies": ((*REFERENCE, REFERENCE[0]), "copies of other logs (1 log): result_10.txt"),
    "other hyperparameters": (
        (edited(REFERENCE[0], "lars_opt_base_learning_rate", value=3), *REFERENCE[1:]),
        "lars_opt_base_learning_rate is 10.284 (9 logs) and 3 (1 log); expected one value",
    ),
    "several benchmarks": (
        (*REFERENCE, *simulated(benchmark="bert")),
        "the logs are of several benchmarks or rounds: ",
    ),
    "an unknown benchmark": (
        tuple(edited(log, "submission_benchmark", value="\x1b[2Jx") for log in REFERENCE),
        "does not have \\x1b[2Jx",
    ),
    "odd epochs": (
        tuple(
            edited(log, "eval_accuracy", value=0.8, metadata={"epoch_num": 10**400})
            for log in REFERENCE
        ),
        "no number of epochs or samples to converge (10 logs): ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_new_refuses(name: str, tmp_path: Path) -> None:
    logs, reason = REFUSED[name]
    file = tmp_path / "new.json"
    status, text, errors = streams("new", write_set(tmp_path / "logs", logs), "-o", file)
    assert (status, text) == (2, "")
    assert reason in errors
    assert all(line.isprintable() for line in errors.splitlines())
    assert not file.exists()


def test_new_names_all_reasons(tmp_path: Path) -> None:
    logs = (failed(REFERENCE[0]), edited(REFERENCE[1], "global_batch_size", value=64))
    _, _, errors = streams("new", write_set(tmp_path / "logs", logs))
    assert errors.startswith("mlperf-pkg: error: the logs do not make a reference point:\n  2 logs")
    assert "\n  batch sizes " in errors
    assert "\n  not converged (1 log): " in errors


@pytest.mark.parametrize(
    ("benchmark", "round_"),
    [
        ("resnet", "2.0"),
        ("bert", "2.0"),
        ("stable_diffusion", "5.0"),
        ("llama2_70b_lora", "5.1"),
        ("flux1", "5.1"),
        ("llama31_405b", "5.0"),
        ("dlrm_dcnv2", "5.1"),
        ("rgat", "5.1"),
        ("unet3d", "2.0"),
    ],
)
def test_the_official_checker_accepts_a_new_point(
    benchmark: str, round_: str, tmp_path: Path
) -> None:
    required = official.submission_runs["training"][benchmark]
    reference = simulated(benchmark=benchmark, round_=round_, runs=2 * required, seed=3)
    logs = write_set(tmp_path / "reference", reference)
    file = tmp_path / "new.json"
    status, _, errors = streams("new", logs, "--round", round_, "-o", file, "--precision", "BF16")
    assert status == 0, errors
    [point] = json.loads(file.read_text("utf-8")).values()
    with file.open(encoding="utf-8") as stream:
        checker = official.RCP_Checker("training", f"{round_}.0", benchmark, False, stream)
    [record] = checker.rcp_data.values()
    assert len(record["Epochs to converge"]) == 2 * required
    assert (point["Creator"], point["Precision"]) == ("Graphcore", "BF16")
    assert (point["When"], point["BS"]) == (f"Prior to {round_} submission", record["BS"])
    assert not any(
        isinstance(value, str) and "e-" in value for value in point["Hyperparams"].values()
    )

    submission = simulated(benchmark=benchmark, round_=round_, seed=4)
    own = write_set(tmp_path / "own", submission)
    _, text, _ = streams("check", own, "--round", round_, "--custom", file, "--format", "json")
    [row] = json.loads(text)["result_sets"]
    assert as_theirs(row) == theirs(own, file, f"{round_}.0")


def test_new_counts_the_samples_of_bert(tmp_path: Path) -> None:
    """With the option as the official checker with --bert_train_samples; by default, epochs."""
    runs = (
        edited(
            edited(log, "eval_accuracy", metadata={"epoch_num": 1}),
            "train_samples",
            value=2_500_000 + number,
        )
        for number, log in enumerate(simulated(benchmark="bert", runs=20))
    )
    logs = write_set(tmp_path, tuple(runs))
    files = map(str, logs.glob("result_*.txt"))
    _, samples, _ = official.get_submission_epochs(files, "2.0.0", bert_train_samples=True)
    for options, expected in (((), [1] * 20), (("--rcp-bert-train-samples",), sorted(samples))):
        status, text, errors = streams("new", logs, "--round", "2.0", *options)
        assert status == 0, errors
        [point] = json.loads(text).values()
        assert sorted(point["Epochs to converge"]) == expected


def test_new_names_all_platforms(tmp_path: Path) -> None:
    other = edited(REFERENCE[0], "submission_platform", value="another")
    status, text, _ = streams("new", write_set(tmp_path, (other, *REFERENCE[1:])))
    [point] = json.loads(text).values()
    assert (status, point["Platform"]) == (0, "another, bow-pod16")


def test_new_prints_notes_on_the_point(tmp_path: Path) -> None:
    status, text, errors = streams(
        "new", write_set(tmp_path, REFERENCE), "--creator", "A", "--when", "B"
    )
    [(name, point)] = json.loads(text).items()
    assert (status, point["Creator"], point["When"]) == (0, "A", "B")
    assert errors.startswith(f"note: {name}: 10 runs, mean ")
    assert "with the points of mlperf-logging" in errors


# ---- bootstrap ----------------------------------------------------------------------------


def test_bootstrap_is_deterministic() -> None:
    arguments = ("bootstrap", "bert", "--round", "5.0", "--batch-size", "448", "--resamples", "200")
    first, again = streams(*arguments)[1], streams(*arguments)[1]
    other = streams(*arguments, "--seed", "1")[1]
    assert first == again != other
    assert "Efron and\n  Tibshirani" in first
    assert max(map(len, first.splitlines())) <= 80


def estimates(*arguments: str) -> dict[str, Any]:
    status, text, _ = streams("bootstrap", *arguments, "--format", "json")
    assert status == 0
    fields: dict[str, Any] = json.loads(text)
    return fields


@pytest.mark.parametrize("size", ["448", "1000", "16384"])
def test_the_interval_contains_the_estimate(size: str) -> None:
    fields = estimates("bert", "--round", "5.0", "--batch-size", size)
    for name in ("mean", "limit"):
        assert fields[name]["low"] < fields[name]["value"] < fields[name]["high"]
    assert (fields["fails_percent"] is None) is (size == "1000")


def test_a_wide_reference_fails_as_often_as_the_test_aims_at() -> None:
    """197 runs that differ: the t-test keeps its 5 %."""
    fields = estimates("unet3d", "--round", "4.0", "--batch-size", "56", "--resamples", "5000")
    assert fields["fails_percent"] == pytest.approx(5, abs=1)


def test_the_runs_of_a_pruned_point_are_reference_runs_too() -> None:
    """448 converges faster in 2.0 than the points beside it, so all sets drawn from it pass."""
    fields = estimates("bert", "--round", "2.0", "--batch-size", "448")
    assert fields["fails_percent"] == 0


def test_equal_runs_have_no_interval() -> None:
    _, text, _ = streams("bootstrap", "gpt3", "--round", "4.1", "--batch-size", "6144")
    assert "1,409,286,144 to 1,409,286,144" in text
    assert "All runs of a point are equal: resampling cannot estimate its uncertainty." in text
    assert "With 6 reference runs, the true interval is wider" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gpt3", "--batch-size", "61440"), "batch size 61440 is larger than all points"),
        (("gpt3",), "Missing option '--batch-size'"),
        (("gpt3", "--batch-size", "64", "--resamples", "1"), "not in the range"),
    ],
)
def test_bootstrap_refuses(arguments: tuple[str, ...], message: str) -> None:
    status, _, errors = streams("bootstrap", *arguments)
    assert (status, message in errors) == (2, True)
