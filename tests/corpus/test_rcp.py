"""The RCP test over every result set of the corpus, against what the official checker said."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.results import rcp

CORPUS = os.environ.get("MLPERF_PKG_CORPUS")
LOGS = Path(CORPUS) if CORPUS else Path(__file__).parents[3] / "shared" / "corpus"
FILES = sorted((LOGS.parent / "expected").glob("*v*.json"))

RUNS = {
    **dict.fromkeys(["gpt3", "llama31_405b"], 3),
    **dict.fromkeys(["deepcam", "maskrcnn", "oc20", "resnet", "retinanet", "ssd"], 5),
    "unet3d": 40,
}

pytestmark = pytest.mark.skipif(not FILES, reason=f"no expected results beside {LOGS}")


RESULT_SETS = [
    pytest.param(file.stem, path, expected, id=f"{file.stem}:{path}")
    for file in FILES
    if file.stem != "v0.7"  # before the first reference convergence points
    for path, expected in json.loads(file.read_text(encoding="utf-8"))["result_sets"].items()
]


def train_samples(result_set: Path) -> list[float]:
    """Samples to converge, which `to_converge` of a set with `bert_train_samples` does not tell."""
    key = re.compile(r'"train_samples", "value": (\d+)')
    logs = (log.read_text(encoding="latin-1") for log in result_set.glob("result_*.txt"))
    return [float(key.findall(log)[-1]) for log in logs]


def judged(usage: str, ruleset: str, benchmark: str, expected: dict[str, Any]) -> rcp.RcpResult:
    runs, drop = RUNS.get(benchmark, 10), 4 if benchmark == "unet3d" else 1
    points = rcp.prune(rcp.reference_points(usage, ruleset, benchmark, runs=runs, drop=drop))
    return rcp.judge(
        points,
        expected["global_batch_size"],
        expected["to_converge"],
        runs=runs,
        drop=drop,
        allowance=rcp.allowance(usage, benchmark),
    )


@pytest.mark.parametrize(("name", "path", "expected"), RESULT_SETS)
def test_agrees_with_the_official_checker(name: str, path: str, expected: dict[str, Any]) -> None:
    usage, benchmark = "hpc" if name.startswith("hpc") else "training", path.rpartition("/")[2]
    assert rcp.is_covered(usage, benchmark) is (expected["rcp_died"] is None)
    if expected["rcp"] is None:
        return
    if expected["bert_train_samples"] and benchmark == "bert":
        expected = {**expected, "to_converge": train_samples(LOGS / name / path)}
    result = judged(usage, name.rpartition("v")[2] + ".0", benchmark, expected)
    assert expected["rcp"] == {
        "official_pass": result.official_pass,
        "message": result.message,
        "normalization": pytest.approx(result.normalization, rel=1e-12),
    }
