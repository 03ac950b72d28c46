"""Simulated runs are what the plan says."""

import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.mllog.mllog import MLLogger
from mlperf_logging.result_summarizer import result_summarizer
from msgspec.structs import replace

from mlperf_pkg.errors import UserError
from mlperf_pkg.simulate import RunPlan, simulate_power, simulate_run, simulate_set
from mlperf_pkg.simulate.runs import LogEvent, write
from tests.helpers.examples import examples
from tests.helpers.logs import records
from tests.helpers.official import official_rcp
from tests.helpers.simulated_logs import PLANS, evaluations, reached, run_ms, time_of, values

RECIPES = [("resnet", "lars"), ("resnet", "sgd"), ("bert", "lamb"), ("rnnt", "lamb")]
PLAN = RunPlan("2.0", "resnet", "closed", system="box16", organization="Example Org")
SOURCE = Path(__file__).parents[2]

recipes = pytest.mark.parametrize(("benchmark", "optimizer"), RECIPES)


def test_failures_stop_late_or_early_at_the_same_pace() -> None:
    plan = replace(PLAN, minutes=36.0)
    (*_, (converged, _)) = evaluations(simulate_run(plan, 1))
    diverged = simulate_run(replace(plan, failure="diverged"), 1)
    aborted = simulate_run(replace(plan, failure="aborted"), 1)
    assert evaluations(diverged)[-1][0] > converged
    assert run_ms(diverged) == round(evaluations(diverged)[-1][0] / converged * 36 * 60_000)
    assert evaluations(aborted) == []
    assert run_ms(aborted) == round(0.5 / converged * 36 * 60_000)


@pytest.mark.parametrize(
    ("benchmark", "batch_size", "expected"),
    [
        (
            "resnet",
            408,
            (True, "RCP not found but slower convergence on smaller batch size", 1.0),
        ),
        ("resnet", 100_000, (False, "Missing RCP, please submit RCP with BS = 100000")),
        ("bert", 2500, (True, "RCP Interpolation", 1.0)),
    ],
    ids=["below all points", "above all points", "between points"],
)
def test_other_batch_sizes_pass_too(
    benchmark: str, batch_size: int, expected: tuple[bool | str | float, ...], tmp_path: Path
) -> None:
    """Those above all reference points have no reference."""
    logs = simulate_set(replace(PLAN, benchmark=benchmark, batch_size=batch_size), 5)
    verdict = official_rcp(logs, tmp_path, "training", "2.0.0")
    assert verdict[: len(expected)] == expected


@pytest.mark.parametrize(("accelerators", "batch_size"), [(1, 1632), (16, 3264), (10_000, 67840)])
def test_batch_size_is_the_nearest_reference(accelerators: int, batch_size: int) -> None:
    log = simulate_run(replace(PLAN, accelerators=accelerators), 1)
    assert values(log)["global_batch_size"] == batch_size


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


def test_runs_of_a_set_follow_one_another_with_seeds_of_their_own() -> None:
    logs = simulate_set(PLAN, 11, runs=7)
    times = [[record["time_ms"] for record in records(log)] for log in logs]
    assert all(before[-1] < after[0] for before, after in pairwise(times))
    assert times[0][0] == 1_651_795_200_000
    assert len({values(log)["seed"] for log in logs}) == 7
    assert logs == simulate_set(PLAN, 11, runs=7)
    assert not {*logs} & {*simulate_set(PLAN, 12, runs=7)}


def test_statistics_are_between_start_and_stop() -> None:
    log = simulate_run(replace(PLAN, statistics=500), 1)
    keys = [record["key"] for record in records(log)]
    assert keys.count("tracked_stats") == 500
    assert keys.index("run_start") < keys.index("tracked_stats")
    assert keys[-1] == "run_stop"
    plain = b"".join(x for x in log.splitlines(True) if b"tracked_stats" not in x)
    assert plain == simulate_run(PLAN, 1)


@recipes
def test_minutes_are_the_mean_of_the_set(benchmark: str, optimizer: str) -> None:
    plan = replace(PLAN, benchmark=benchmark, optimizer=optimizer, minutes=12.5)
    logs = simulate_set(plan, 4)
    minutes = [run_ms(log) / 60_000 for log in logs]
    lengths = [evaluations(log)[-1][0] for log in logs]
    assert fmean(minutes) == pytest.approx(12.5, abs=1e-5)
    assert len(set(minutes)) > 1
    assert [
        (time, length)
        for time, length in zip(minutes, lengths, strict=True)
        if time / 12.5 != pytest.approx(length / fmean(lengths), rel=0.011)
    ] == []


def test_more_accelerators_train_faster() -> None:
    fleets = [replace(PLAN, accelerators=number) for number in (1, 8, 64, 4096)]
    times = [run_ms(simulate_run(plan, 1)) for plan in fleets]
    assert times == sorted(times, reverse=True)
    assert times[0] == 200 * 60_000


@pytest.mark.parametrize(
    ("failure", "lost"),
    [
        ("missing_key", b'"lars_opt_weight_decay"'),
        ("no_run_stop", b'"run_stop"'),
        ("truncated", b'"run_stop"'),
    ],
)
def test_failures_that_lose_something(failure: str, lost: bytes) -> None:
    whole = simulate_run(PLAN, 1)
    log = simulate_run(replace(PLAN, failure=failure), 1)
    assert (lost in whole, lost in log) == (True, False)
    assert log.splitlines()[0] == whole.splitlines()[0]
    assert log.endswith(b"\n") is (failure != "truncated")


def test_a_failure_that_changes_a_value() -> None:
    right = values(simulate_run(PLAN, 1))
    wrong = values(simulate_run(replace(PLAN, failure="wrong_value"), 1))
    assert {key for key in right if right[key] != wrong[key]} == {"lars_opt_weight_decay"}


@pytest.mark.parametrize(
    ("round_", "benchmark", "batch_size", "message"),
    [
        ("6.1", "deepseekv3_671b", 64, r"global_batch_size 64 \(rule DSV101\)"),
        ("6.1", "qwen35_397b_grpo", 250, r"num_generations_per_prompt 16 \(rule QWEN120\)"),
        # No double times 1152 equals this batch size times 8e-5, as the official checker asks.
        ("5.0", "llama31_405b", 1984, r"opt_base_learning_rate 0\.00013778 "),
    ],
)
def test_batch_sizes_that_the_rules_forbid_are_refused(
    round_: str, benchmark: str, batch_size: int, message: str
) -> None:
    plan = replace(PLAN, round=round_, benchmark=benchmark, batch_size=batch_size)
    with pytest.raises(UserError, match=f"the rules do not allow {message}"):
        simulate_run(plan, 1)


@examples(60)
@given(
    plan=st.sampled_from(PLANS),
    minutes=st.floats(0.01, 10_000),
    accelerators=st.integers(1, 8192),
    seed=st.integers(),
)
def test_any_success(plan: RunPlan, minutes: float, accelerators: int, seed: int) -> None:
    log = simulate_run(replace(plan, minutes=minutes, accelerators=accelerators), seed)
    times = [record["time_ms"] for record in records(log)]
    *before, last = reached(log, plan)
    assert run_ms(log) == round(minutes * 60_000)
    assert times == sorted(times)
    assert 0 < time_of(log, "init_stop") - time_of(log, "init_start") < 30 * 60_000
    assert last
    assert not any(before)


def test_same_bytes_from_another_place_and_process(tmp_path: Path) -> None:
    elsewhere = tmp_path / "site (copy)+"
    shutil.copytree(SOURCE / "mlperf_pkg", elsewhere / "mlperf_pkg")
    shutil.copytree(SOURCE / "rules", elsewhere / "mlperf_pkg" / "data" / "rules")
    program = (
        f"import sys; sys.path.insert(0, {str(elsewhere)!r})\n"
        "from mlperf_pkg.simulate import RunPlan, simulate_run\n"
        f"sys.stdout.buffer.write(simulate_run({PLAN!r}, 1))"
    )
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    assert output == simulate_run(PLAN, 1)
    assert records(output)[0]["metadata"]["file"] == "simulate/writer.py"


@pytest.mark.parametrize("simulate", [simulate_run, simulate_set])
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("round", "0.5", r"unknown round: '0\.5' \(known: 0\.7, 1\.0, 1\.1, 2\.0"),
        (
            "benchmark",
            "gpt3",
            r"benchmark of round 2\.0: 'gpt3' .*\); the first round of gpt3 is 3\.0",
        ),
        ("optimizer", "adam", r"unknown optimizer of resnet: 'adam' \(known: lars, sgd\)"),
        ("minutes", float("nan"), r"minutes is nan; expected a positive number"),
        ("minutes", 1e13, r"minutes is 10000000000000\.0; expected at most 1e\+12"),
    ],
    ids=["round", "benchmark", "optimizer", "minutes not a number", "too many minutes"],
)
def test_impossible_plans_are_refused(
    field: str, value: str | float, message: str, simulate: Callable[[RunPlan, int], object]
) -> None:
    plan = replace(PLAN, **{field: value})
    with pytest.raises(UserError, match=message):
        simulate(plan, 1)


# ---- power: the energy that it should be by the official summarizer -----------------------

MEASURED = RunPlan("4.1", "llama2_70b_lora", "closed", "box16", "Example Org", accelerators=16)
START = 1_728_510_042_000


@pytest.mark.parametrize(("seconds", "accelerators"), [(1, 16), (59.5, 8), (600, 24)])
def test_energy(seconds: float, accelerators: int, tmp_path: Path) -> None:
    plan = replace(MEASURED, accelerators=accelerators)
    nodes, length = accelerators // 8, int(seconds * 1000)
    logs = simulate_power(plan, 1, START, START + length)
    folder = tmp_path / "power" / "result_0"
    folder.mkdir(parents=True)
    for name, log in logs.items():
        (folder / name).write_bytes(log)
    joules = result_summarizer._compute_total_power(
        str(tmp_path), "x/result_0.txt", length, "4.1.0"
    )
    watts = 0.96 * (nodes * (1500 + 8 * 700) + (nodes > 1) * 900)
    assert joules == pytest.approx(watts * seconds, rel=0.05)
    meters = [f"node_{number}.txt" for number in range(nodes)]
    assert list(logs) == [*meters, *(["sw_0.txt"] if nodes > 1 else [])]
    assert len({*logs.values()}) == len(logs)


@pytest.mark.parametrize(("length", "samples"), [(500, 60), (59_000, 60), (120_500, 121)])
def test_samples_are_many_and_a_second_apart_at_most(length: int, samples: int) -> None:
    log = simulate_power(MEASURED, 1, START, START + length)["node_1.txt"]
    times = [record["time_ms"] for record in records(log) if record["key"] == "power_reading"]
    assert len(times) == samples
    assert all(0 <= later - earlier <= 1000 for earlier, later in pairwise([START, *times]))
    assert times[-1] == START + length


# ---- lines as the official logger writes them ---------------------------------------------

EVENTS = [
    LogEvent("submission_org", 'Örg "quoted" \\ \n\x1b \ud83d\ude00'),
    LogEvent("init_start"),
    LogEvent("init_stop", metadata={"status": "success"}),
    LogEvent("opt_learning_rate", 1e-7),
    LogEvent("eval_accuracy", {"BBOX": 0.377, "SEGM": 1e22}, {"epoch_num": 12}),
    LogEvent("d_adam_betas", [0.9, 0.999, None, True, [], {}]),
    LogEvent("start", -1, {"step": 2**63}),
    LogEvent("epoch_stopped", ""),
]


def officially(event: LogEvent, time_ms: int) -> str:
    kept = Mock(spec=logging.Logger)
    logger, (_, underscore, end) = MLLogger(kept), event.key.rpartition("_")
    log = {"_start": logger.start, "_stop": logger.end}.get(underscore + end, logger.event)
    log(event.key, event.value, metadata=dict(event.metadata), time_ms=time_ms)
    (level, line), _ = kept.log.call_args
    assert level == logging.INFO
    return f"{line}\n"


def without_caller(line: str) -> str:
    """The file and line number of the caller are ours."""
    return re.sub(r'"file": "[^"]*", "lineno": \d+', "", line)


@pytest.mark.parametrize("event", EVENTS)
def test_lines_are_those_of_the_official_logger(event: LogEvent) -> None:
    line = write([(1_728_510_042_000, event)]).decode("ascii")
    assert without_caller(line) == without_caller(officially(event, 1_728_510_042_000))
    assert line.startswith(':::MLLOG {"namespace": "", "time_ms": 1728510042000, ')
