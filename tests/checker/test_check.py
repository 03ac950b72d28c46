"""The parallel reading of a check: any number of processes gives the same report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mlperf_pkg.simulate import RunPlan, simulate_set

_CHECK = """
import sys
from mlperf_pkg.checker import reading
from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.results.report import as_json
from mlperf_pkg.render.table import json_text
reading.PARALLEL_FROM_BYTES = 0
options = Options(jobs=int(sys.argv[2]))
sys.stdout.write(json_text(as_json(check([sys.argv[1]], options).report)))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two loose result sets, whose logs are of different sizes."""
    root = tmp_path_factory.mktemp("logs")
    for benchmark in ("resnet", "bert"):
        plan = RunPlan("2.0", benchmark, "closed", "bow-pod16", "Test", minutes=20.0)
        (root / benchmark).mkdir()
        for index, log in enumerate(simulate_set(plan, seed=1)):
            (root / benchmark / f"result_{index}.txt").write_bytes(log[: len(log) - 300 * index])
    return root


def report(logs: Path, jobs: int) -> bytes:
    arguments = [sys.executable, "-c", _CHECK, str(logs), str(jobs)]
    return subprocess.run(arguments, capture_output=True, check=True).stdout


@pytest.mark.parametrize("jobs", [2, 3, 5])
def test_the_report_does_not_depend_on_the_number_of_processes(logs: Path, jobs: int) -> None:
    alone = report(logs, 1)
    assert b'"LOG101"' in alone
    assert report(logs, jobs) == alone
