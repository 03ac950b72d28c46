"""Simulated runs are what the official checkers call valid, and what the plan says."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.rcp_checker import rcp_checker

from mlperf_pkg.errors import UserError
from mlperf_pkg.rcp import reference_points
from mlperf_pkg.simulate import DIVISIONS, FAILURES, ROUNDS, RunPlan, simulate_run, simulate_set

TARGETS = {"resnet": 0.759, "bert": 0.72, "rnnt": 0.058}
RUNS = {"resnet": 5, "bert": 10, "rnnt": 10}
RECIPES = [("resnet", "lars"), ("resnet", "sgd"), ("bert", "lamb"), ("rnnt", "lamb")]
PLAN = RunPlan("2.0", "resnet", "closed", system="box16", organization="Example Org")
SOURCE = Path(__file__).parents[2]

recipes = pytest.mark.parametrize(("benchmark", "optimizer"), RECIPES)
PLANS = [
    replace(PLAN, round=round_name, benchmark=benchmark, optimizer=optimizer, division=division)
    for round_name, (benchmark, optimizer), division in product(ROUNDS, RECIPES, DIVISIONS)
]


def named(plan: RunPlan) -> str:
    return f"{plan.round}-{plan.benchmark}-{plan.optimizer}-{plan.division}"


recipes = pytest.mark.parametrize(("benchmark", "optimizer"), RECIPES)
plans = pytest.mark.parametrize("plan", PLANS, ids=named)
closed_plans = pytest.mark.parametrize(
    "plan", [plan for plan in PLANS if plan.division == "closed"], ids=named
)


def records(log: bytes) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix(":::MLLOG ")) for line in log.decode().splitlines()]


def values(log: bytes) -> dict[str, Any]:
    return {record["key"]: record["value"] for record in records(log)}


def time_of(log: bytes, key: str) -> int:
    return next(int(record["time_ms"]) for record in records(log) if record["key"] == key)


def run_ms(log: bytes) -> int:
    return time_of(log, "run_stop") - time_of(log, "run_start")


def status(log: bytes) -> str:
    last = records(log)[-1]
    assert last["key"] == "run_stop"
    return str(last["metadata"]["status"])


def evaluations(log: bytes) -> list[tuple[int, float]]:
    return [
        (record["metadata"]["epoch_num"], record["value"])
        for record in records(log)
        if record["key"] == "eval_accuracy"
    ]


def reaches(benchmark: str, metric: float) -> bool:
    target = TARGETS[benchmark]
    return metric <= target if benchmark == "rnnt" else metric >= target


def officially_valid(log: bytes, folder: Path, round_name: str) -> bool:
    path = folder / "result_0.txt"
    path.write_bytes(log)
    mlp_compliance.enqueued_configs.clear()
    checker = mlp_compliance.make_checker("training", f"{round_name}.0", quiet=False, werror=True)
    valid, *_ = mlp_compliance.main(str(path), f"training_{round_name}.0/common.yaml", checker)
    return bool(valid)


def official_rcp(logs: list[bytes], folder: Path, round_name: str) -> tuple[bool, str, float]:
    for number, log in enumerate(logs):
        (folder / f"result_{number}.txt").write_bytes(log)
    passed, message, normalization = rcp_checker.check_directory(
        str(folder), "training", f"{round_name}.0", False, False, rcp_pass="pruned_rcps"
    )
    return bool(passed), message, float(normalization)


@plans
def test_success_is_officially_valid(plan: RunPlan, tmp_path: Path) -> None:
    log = simulate_run(plan, 1)
    assert officially_valid(log, tmp_path, plan.round)
    assert status(log) == "success"
    found = values(log)
    assert found["submission_benchmark"] == plan.benchmark
    assert found["submission_division"] == plan.division
    assert (found["submission_org"], found["submission_platform"]) == ("Example Org", "box16")
    assert (found["opt_name"], found["seed"]) == (plan.optimizer, 1)


@plans
@pytest.mark.parametrize("failure", FAILURES)
def test_failure_is_aborted_and_officially_invalid(
    plan: RunPlan, failure: str, tmp_path: Path
) -> None:
    log = simulate_run(replace(plan, failure=failure), 1)
    assert status(log) == "aborted"
    assert not any(reaches(plan.benchmark, metric) for _, metric in evaluations(log))
    # An Open run need not reach the target, and no official rule reads the status.
    pardoned = plan.division == "open" and failure == "diverged"
    assert officially_valid(log, tmp_path, plan.round) is pardoned


def test_failures_stop_late_or_early_at_the_same_pace() -> None:
    plan = replace(PLAN, minutes=36.0)
    (*_, (converged, _)) = evaluations(simulate_run(plan, 1))
    diverged = simulate_run(replace(plan, failure="diverged"), 1)
    aborted = simulate_run(replace(plan, failure="aborted"), 1)
    assert evaluations(diverged)[-1][0] > converged
    assert run_ms(diverged) == round(evaluations(diverged)[-1][0] / converged * 36 * 60_000)
    assert evaluations(aborted) == []
    assert run_ms(aborted) == round(0.5 / converged * 36 * 60_000)


@closed_plans
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_closed_set_passes_the_official_rcp_test_unscaled(
    plan: RunPlan, seed: int, tmp_path: Path
) -> None:
    logs = simulate_set(plan, seed)
    assert len(logs) == RUNS[plan.benchmark]
    assert official_rcp(logs, tmp_path, plan.round) == (True, "RCP found", 1.0)


@pytest.mark.parametrize(
    ("benchmark", "batch_size", "message"),
    [
        ("resnet", 408, "RCP not found but slower convergence on smaller batch size"),
        ("resnet", 3520, "RCP Interpolation"),
        ("bert", 448, "RCP Interpolation"),
        ("bert", 2500, "RCP Interpolation"),
        ("rnnt", 4096, "RCP Interpolation"),
        ("rnnt", 128, "RCP not found but slower convergence on smaller batch size"),
    ],
)
def test_other_batch_sizes_pass_too(
    benchmark: str, batch_size: int, message: str, tmp_path: Path
) -> None:
    logs = simulate_set(replace(PLAN, benchmark=benchmark, batch_size=batch_size), 5)
    assert official_rcp(logs, tmp_path, "2.0") == (True, message, 1.0)


def test_batch_size_above_all_reference_points_has_no_reference(tmp_path: Path) -> None:
    logs = simulate_set(replace(PLAN, batch_size=100_000), 5)
    message = "Missing RCP, please submit RCP with BS = 100000"
    assert official_rcp(logs, tmp_path, "2.0")[:2] == (False, message)


@pytest.mark.parametrize(
    ("benchmark", "accelerators", "batch_size"),
    [("resnet", 1, 1632), ("resnet", 16, 3264), ("resnet", 10_000, 67840), ("rnnt", 8, 1024)],
)
def test_batch_size_is_the_nearest_reference(
    benchmark: str, accelerators: int, batch_size: int
) -> None:
    plan = replace(PLAN, benchmark=benchmark, accelerators=accelerators)
    log = simulate_run(plan, 1)
    points = reference_points("training", "2.0.0", benchmark, runs=RUNS[benchmark], drop=1)
    assert values(log)["global_batch_size"] in {point.batch_size for point in points}
    assert values(log)["global_batch_size"] == batch_size


@pytest.mark.parametrize(
    ("benchmark", "batch_size", "every"),
    [("resnet", 3264, 4), ("bert", 256, 150_000), ("bert", 6144, 200_000), ("rnnt", 2048, 1)],
)
def test_evaluation_frequency(benchmark: str, batch_size: int, every: int) -> None:
    logs = simulate_set(replace(PLAN, benchmark=benchmark, batch_size=batch_size), 3)
    firsts = set()
    for log in logs:
        points = [point for point, _ in evaluations(log)]
        firsts.add(points[0])
        assert {after - before for before, after in pairwise(points)} == {every}
    assert len(firsts) == 1
    (first,) = firsts
    assert 1 <= first <= every if benchmark == "resnet" else first == every


@recipes
def test_training_is_logged_without_a_gap(benchmark: str, optimizer: str) -> None:
    log = records(simulate_run(replace(PLAN, benchmark=benchmark, optimizer=optimizer), 1))
    starts = [r["metadata"]["epoch_num"] for r in log if r["key"] == "epoch_start"]
    stops = [r["metadata"]["epoch_num"] for r in log if r["key"] == "epoch_stop"]
    blocks = [r["metadata"] for r in log if r["key"] == "block_start"]
    assert starts == stops
    assert sum(block["epoch_count"] for block in blocks) == len(starts)
    if benchmark != "bert":
        assert starts == list(range(1, len(starts) + 1))


@pytest.mark.parametrize(
    ("benchmark", "optimizer", "expected"),
    [
        ("resnet", "lars", {"lars_opt_momentum": 0.9, "lars_opt_end_learning_rate": 1e-4}),
        ("resnet", "lars", {"lars_opt_learning_rate_decay_poly_power": 2, "lars_epsilon": 0}),
        ("resnet", "sgd", {"sgd_opt_base_learning_rate": 1.275, "sgd_opt_momentum": 0.9}),
        ("resnet", "sgd", {"sgd_opt_weight_decay": 0.00005, "sgd_opt_end_learning_rate": 1e-4}),
        ("resnet", "sgd", {"sgd_opt_learning_rate_decay_steps": 14916}),
        ("bert", "lamb", {"num_warmup_steps": 0, "start_warmup_step": 0}),
        ("bert", "lamb", {"opt_base_learning_rate": 0.001085, "max_sequence_length": 512}),
        ("rnnt", "lamb", {"opt_weight_decay": 1e-3, "opt_gradient_clip_norm": 1}),
        ("rnnt", "lamb", {"opt_lamb_epsilon": 1e-9, "eval_samples": 2703}),
    ],
)
def test_hyperparameters(benchmark: str, optimizer: str, expected: dict[str, float]) -> None:
    plan = replace(PLAN, benchmark=benchmark, optimizer=optimizer, batch_size=3264)
    found = values(simulate_run(plan, 1))
    assert {key: found[key] for key in expected} == expected


def test_runs_of_a_set_follow_one_another_with_seeds_of_their_own() -> None:
    logs = simulate_set(PLAN, 11, runs=7)
    times = [[record["time_ms"] for record in records(log)] for log in logs]
    assert len(logs) == 7
    assert all(before[-1] < after[0] for before, after in pairwise(times))
    assert times[0][0] == ROUNDS["2.0"].start_ms
    assert len({values(log)["seed"] for log in logs}) == 7
    assert len(set(logs)) == 7


@recipes
def test_minutes_are_the_mean_of_the_set(benchmark: str, optimizer: str) -> None:
    plan = replace(PLAN, benchmark=benchmark, optimizer=optimizer, minutes=12.5)
    logs = simulate_set(plan, 4)
    minutes = [run_ms(log) / 60_000 for log in logs]
    lengths = [evaluations(log)[-1][0] for log in logs]
    assert fmean(minutes) == pytest.approx(12.5, abs=1e-5)
    assert len(set(minutes)) > 1
    for time, length in zip(minutes, lengths, strict=True):
        assert time / 12.5 == pytest.approx(length / fmean(lengths), rel=0.011)


def test_more_accelerators_train_faster() -> None:
    fleets = [replace(PLAN, accelerators=number) for number in (1, 8, 64, 4096)]
    times = [run_ms(simulate_run(plan, 1)) for plan in fleets]
    assert times == sorted(times, reverse=True)
    assert times[0] == 200 * 60_000


def test_start_time() -> None:
    first, *_ = records(simulate_run(replace(PLAN, start_ms=1_234), 1))
    assert first["time_ms"] == 1_234


@settings(max_examples=60, deadline=None)
@given(
    plan=st.sampled_from(PLANS),
    minutes=st.floats(0.01, 10_000),
    accelerators=st.integers(1, 8192),
    seed=st.integers(),
)
def test_any_success(plan: RunPlan, minutes: float, accelerators: int, seed: int) -> None:
    log = simulate_run(replace(plan, minutes=minutes, accelerators=accelerators), seed)
    times = [record["time_ms"] for record in records(log)]
    *before, last = [reaches(plan.benchmark, metric) for _, metric in evaluations(log)]
    assert run_ms(log) == round(minutes * 60_000)
    assert times == sorted(times)
    assert 0 < time_of(log, "init_stop") - time_of(log, "init_start") < 30 * 60_000
    assert last
    assert not any(before)


def test_same_seed_same_bytes_and_different_seed_different_bytes() -> None:
    assert simulate_run(PLAN, 1) == simulate_run(PLAN, 1)
    assert simulate_run(PLAN, 1) != simulate_run(PLAN, 2)
    assert simulate_set(PLAN, 1) == simulate_set(PLAN, 1)
    assert not set(simulate_set(PLAN, 1)) & set(simulate_set(PLAN, 2))


def test_same_bytes_from_another_place_and_process(tmp_path: Path) -> None:
    elsewhere = tmp_path / "site (copy)+"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / "mlperf_pkg", elsewhere / "mlperf_pkg", ignore=ignored)
    shutil.copytree(SOURCE / "rules", elsewhere / "mlperf_pkg" / "data" / "rules")
    program = (
        f"import sys; sys.path.insert(0, {str(elsewhere)!r})\n"
        "from mlperf_pkg.simulate import RunPlan, simulate_run\n"
        f"sys.stdout.buffer.write(simulate_run({PLAN!r}, 1))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True
    )
    assert told.stdout == simulate_run(PLAN, 1)
    assert records(told.stdout)[0]["metadata"]["file"] == "simulate/writer.py"


def test_logging_of_the_process_is_neither_used_nor_changed() -> None:
    before = simulate_run(PLAN, 1)
    handlers, names = list(logging.root.handlers), set(logging.root.manager.loggerDict)
    logging.disable(logging.CRITICAL)
    try:
        assert simulate_run(PLAN, 1) == before
    finally:
        logging.disable(logging.NOTSET)
    assert logging.root.handlers == handlers
    assert set(logging.root.manager.loggerDict) == names


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("round", "0.5", r"unknown round: '0\.5' \(known: 1\.0, 1\.1, 2\.0"),
        ("benchmark", "vgg", r"unknown benchmark of round 2\.0: 'vgg' \(known: resnet, bert, rnnt"),
        ("division", "half", r"unknown division: 'half' \(known: closed, open\)"),
        ("optimizer", "adam", r"unknown optimizer of resnet: 'adam' \(known: lars, sgd\)"),
        ("failure", "fire", r"unknown failure: 'fire' \(known: diverged, aborted"),
        ("failure", "", r"unknown failure: ''"),
        ("minutes", 0.0, r"minutes must be a positive number, not 0"),
        ("minutes", float("nan"), r"minutes must be a positive number, not nan"),
        ("minutes", float("inf"), r"minutes must be a positive number, not inf"),
        ("accelerators", -1, r"accelerators must be a positive number, not -1"),
        ("batch_size", 0, r"batch_size must be a positive number, not 0"),
    ],
)
def test_impossible_plans_are_refused(field: str, value: Any, message: str) -> None:
    plan = replace(PLAN, **{field: value})
    with pytest.raises(UserError, match=message):
        simulate_run(plan, 1)
    with pytest.raises(UserError, match=message):
        simulate_set(plan, 1)


def test_impossible_number_of_runs_is_refused() -> None:
    with pytest.raises(UserError, match="runs must be a positive number, not 0"):
        simulate_set(PLAN, 1, runs=0)
