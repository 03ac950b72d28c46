"""Speed against the official checker, as a ratio measured in one run on one simulated submission.

Usage: python bench/official.py [benchmark...]
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mlperf_logging.package_checker import package_checker

from mlperf_pkg.checker import Options, check
from mlperf_pkg.resources import data_folder
from mlperf_pkg.simulate import RunPlan, simulate_set

SYSTEM = "bow-pod16"
REPEATS = 3


def make_submission(root: Path, benchmarks: list[str]) -> int:
    """A Closed submission of round 2.0; the number of its logs."""
    (root / "systems").mkdir(parents=True)
    shutil.copy(data_folder("systems") / f"{SYSTEM}.json", root / "systems")
    count = 0
    for benchmark in benchmarks:
        plan = RunPlan("2.0", benchmark, "closed", SYSTEM, "Test", minutes=20.0)
        folder = root / "results" / SYSTEM / benchmark
        folder.mkdir(parents=True)
        for index, log in enumerate(simulate_set(plan, seed=1)):
            (folder / f"result_{index}.txt").write_bytes(log)
            count += 1
    return count


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def official(root: Path) -> None:
    package_checker.check_training_package(
        str(root), "training", "2.0.0", False, False, False, False, False, ""
    )


def main(benchmarks: list[str]) -> None:
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "Test"
        logs = make_submission(root, benchmarks)
        pairs = [
            (seconds(lambda: official(root)), seconds(lambda: check([str(root)], Options())))
            for _ in range(REPEATS)
        ]
    theirs, ours = (min(times) for times in zip(*pairs, strict=True))
    print(f"{logs} logs of {', '.join(benchmarks)}")
    print(f"official package_checker {theirs:.3f} s, mlperf-pkg check {ours:.3f} s")
    print(f"ratio {theirs / ours:.0f}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["resnet", "bert", "rnnt"])
