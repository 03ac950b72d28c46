"""What is measured: simulated rounds of any size, and published submissions where there are any."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from mlperf_pkg.resources import data_folder
from mlperf_pkg.simulate import RunPlan, simulate_set

SYSTEM = "bow-pod16"
BENCHMARKS = ("resnet", "bert", "rnnt")  # 5 + 10 + 10 logs
LOGS = 25
ROUND = "training_results_v2.0"

_SHARED = Path(__file__).parents[2] / "shared"
CORPUS = Path(os.environ.get("MLPERF_PKG_CORPUS", _SHARED / "corpus"))
ARCHIVE = _SHARED / "bench" / "v2.0-NVIDIA.tar.gz"


def submission(root: Path) -> None:
    """A Closed submission of round 2.0 with ``LOGS`` logs."""
    (root / "systems").mkdir(parents=True)
    shutil.copy(data_folder("systems") / f"{SYSTEM}.json", root / "systems")
    for benchmark in BENCHMARKS:
        plan = RunPlan("2.0", benchmark, "closed", SYSTEM, root.name, minutes=20.0)
        folder = root / "results" / SYSTEM / benchmark
        folder.mkdir(parents=True)
        for index, log in enumerate(simulate_set(plan, seed=1)):
            (folder / f"result_{index}.txt").write_bytes(log)


def simulated_round(folder: Path, submitters: int) -> Path:
    """A round in which so many submitters hand in the same 25 logs; hard links, so it is small."""
    folder = folder / str(submitters) / ROUND
    submission(folder / "Submitter1")
    for number in range(2, submitters + 1):
        shutil.copytree(folder / "Submitter1", folder / f"Submitter{number}", copy_function=os.link)
    return folder


def published(folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and places of the published submissions that are to be had here."""
    if ARCHIVE.is_file():
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder / ROUND, filter="data")
        yield "v2.0-NVIDIA", folder / ROUND
    yield from ((name, CORPUS / name) for name in ("v5.0", "v5.1") if (CORPUS / name).is_dir())


def logs(folder: Path) -> list[Path]:
    """The logs of runs below a folder."""
    return sorted(path for path in folder.rglob("result_*.txt") if path.is_file())


def sample(tree: Path, folder: Path, most: int) -> tuple[Path, int]:
    """A copy of the result sets of one submission, smallest first, up to ``most`` logs.

    Returns where it is and how many logs it has: at least one result set.
    """
    sets = sorted((len(logs(place)), str(place)) for place in tree.glob("*/results/*/*"))
    root = Path(sets[0][1]).parents[2]
    count = 0
    for size, name in sets:
        place = Path(name)
        if place.parents[2] == root and size and (not count or count + size <= most):
            shutil.copytree(place, folder / root.name / place.relative_to(root))
            count += size
    shutil.copytree(root / "systems", folder / root.name / "systems")
    return folder / root.name, count
