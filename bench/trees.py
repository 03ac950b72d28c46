"""What is measured: simulated rounds of any size, and published submissions where there are any."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.simulate import RunPlan, simulate_set

SYSTEM = "bow-pod16"
BENCHMARKS = ("resnet", "bert", "rnnt")  # 5 + 10 + 10 logs
LOGS = 25
ROUND = "training_results_v2.0"
ROUNDS = ("v5.0", "v5.1")  # published, and whole

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
    yield from ((name, CORPUS / name) for name in ROUNDS if (CORPUS / name).is_dir())


def logs(folder: Path) -> list[Path]:
    """The logs of runs below a folder."""
    return sorted(path for path in folder.rglob("result_*.txt") if path.is_file())


def sample(tree: Path, folder: Path, most: int) -> tuple[Path, int]:
    """A copy of result sets of one submission, up to ``most`` logs but at least one set.

    First come the sets whose logs are of the tree's usual size. Returns where the copy is and how
    many logs it has.
    """
    usual = _mean_size(tree)
    sets = [place for place in sorted(tree.glob("*/results/*/*")) if logs(place)]
    sets.sort(key=lambda place: abs(_mean_size(place) - usual))
    root = sets[0].parents[2]
    count = 0
    for place in sets:
        size = len(logs(place))
        if place.parents[2] == root and (not count or count + size <= most):
            shutil.copytree(place, folder / root.name / place.relative_to(root))
            count += size
    shutil.copytree(root / "systems", folder / root.name / "systems")
    return folder / root.name, count


def submissions(tree: Path, folder: Path) -> Iterator[Path]:
    """A copy of each submission of a tree, as the official programs write into what they check."""
    for place in sorted(tree.glob("*/results")):
        yield Path(shutil.copytree(place.parent, folder / place.parent.name))


def _mean_size(place: Path) -> float:
    """Bytes of a log, in the mean."""
    sizes = [log.stat().st_size for log in logs(place)]
    return sum(sizes) / len(sizes)
