"""Every kind of simulated run, and what the tests read from the logs."""

from itertools import product
from typing import Any

from mlperf_pkg.rulebook.constraints import holds
from mlperf_pkg.rulebook.documents import rounds, usages
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.simulate import RunPlan, refusal
from mlperf_pkg.simulate.plan import optimizers
from tests.helpers.logs import records

ALL_KINDS = [
    (usage, name, *kind)
    for usage in usages()
    for name in rounds(usage)
    for kind in product(load_round(usage, name).benchmarks, DIVISIONS)
]
"""The usage, round, benchmark and division of every kind, in the order of the rulebook."""

PLANS = [
    RunPlan(name, benchmark, division, "box16", "Example Org", optimizer=optimizer, usage=usage)
    for usage, name, benchmark, division in ALL_KINDS
    if not refusal(usage, name, benchmark, division)
    for optimizer in optimizers(usage, name, benchmark) or (None,)
]
"""A plan of every kind of which the official checker accepts logs, with each optimizer."""


def values(log: bytes) -> dict[str, Any]:
    return {record["key"]: record["value"] for record in records(log)}


def time_of(log: bytes, key: str) -> int:
    return next(int(record["time_ms"]) for record in records(log) if record["key"] == key)


def run_ms(log: bytes) -> int:
    return time_of(log, "run_stop") - time_of(log, "run_start")


def evaluations(log: bytes) -> list[tuple[int, float]]:
    """Of a benchmark that counts in ``epoch_num`` and logs its metric as ``eval_accuracy``."""
    return [
        (record["metadata"]["epoch_num"], record["value"])
        for record in records(log)
        if record["key"] == "eval_accuracy"
    ]


def reached(log: bytes, plan: RunPlan) -> list[bool]:
    """Whether the target is reached, for each evaluation."""
    evaluations: dict[float, Any] = {}
    for record in records(log):
        if record["key"] in ("eval_accuracy", "eval_error"):
            metadata, value = record["metadata"], record["value"]
            units = ("samples_count", "step_num", "epoch_num")
            at = next(float(metadata[unit]) for unit in units if unit in metadata)
            name = metadata.get("metric")
            evaluations[at] = evaluations.get(at, {}) | {name: value} if name else value
    benchmark = load_benchmark(plan.usage, plan.round, plan.benchmark)
    assert benchmark
    return [holds(value, benchmark.target) for value in evaluations.values()]
