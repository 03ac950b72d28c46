"""The parallel reading of a check: any number of processes gives the same report."""

from pathlib import Path

import pytest

from mlperf_pkg.checker import reading
from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.render.table import json_text
from mlperf_pkg.results.report import as_json
from tests.helpers.trees import simulated, write_set


def report(logs: Path, jobs: int) -> str:
    return json_text(as_json(check([str(logs)], Options(jobs=jobs)).report))


def test_the_report_does_not_depend_on_the_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two loose result sets, whose logs are of different sizes."""
    monkeypatch.setattr(reading, "PARALLEL_FROM_BYTES", 0)
    for benchmark in ("resnet", "bert"):
        logs = simulated(benchmark)
        cut = tuple(log[: len(log) - 300 * index] for index, log in enumerate(logs))
        write_set(tmp_path / benchmark, cut)
    alone = report(tmp_path, 1)
    assert '"LOG101"' in alone
    assert report(tmp_path, 2) == report(tmp_path, 5) == alone
