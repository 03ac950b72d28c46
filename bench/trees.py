"""Trees to measure: simulated rounds of any size, and published submissions if available."""

import os
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.simulate import RunPlan, simulate_set

SYSTEM = "bow-pod16"
BENCHMARKS = ("resnet", "bert", "rnnt")  # 5 + 10 + 10 logs
LOGS = 25
ROUND = "training_results_v2.0"
ROUNDS = ("v5.0", "v5.1")  # published rounds, measured as a whole

_SHARED = Path(__file__).parents[2] / "shared"
CORPUS = Path(os.environ.get("MLPERF_PKG_CORPUS", _SHARED / "corpus"))
ARCHIVE = _SHARED / "bench" / "v2.0-NVIDIA.tar.gz"


def submission(root: Path, seed: int) -> None:
    """Write a Closed submission of round 2.0 with ``LOGS`` logs."""
    (root / "systems").mkdir(parents=True)
    shutil.copy(data_folder("systems") / f"{SYSTEM}.json", root / "systems")
    for benchmark in BENCHMARKS:
        plan = RunPlan("2.0", benchmark, "closed", SYSTEM, root.name, minutes=20.0)
        folder = root / "results" / SYSTEM / benchmark
        folder.mkdir(parents=True)
        for index, log in enumerate(simulate_set(plan, seed=seed)):
            (folder / f"result_{index}.txt").write_bytes(log)


def simulated_rounds(folder: Path, sizes: Iterable[int]) -> Iterator[tuple[str, Path]]:
    """Yield the name and folder of a round for each number of submitters, the largest last.

    Each submitter has runs of its own; smaller rounds are hard links to the first of the largest.
    """
    *smaller, most = sorted(sizes)
    for number in range(1, most + 1):
        submission(_simulated(folder, most) / f"Submitter{number}", seed=number)
    for count in smaller:
        for number in range(1, count + 1):
            submitter = f"Submitter{number}"
            whole, part = (_simulated(folder, size) / submitter for size in (most, count))
            shutil.copytree(whole, part, copy_function=os.link)
    yield from ((f"simulated {n * LOGS}", _simulated(folder, n)) for n in (*smaller, most))


def _simulated(folder: Path, submitters: int) -> Path:
    return folder / str(submitters) / ROUND


def published(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and folder of each published submission on this machine."""
    if ARCHIVE.is_file():
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder / ROUND, filter="data")
        yield "v2.0-NVIDIA", folder / ROUND
    yield from ((name, CORPUS / name) for name in ROUNDS if (CORPUS / name).is_dir())


def corpus() -> list[Path]:
    """Return all published rounds on this machine."""
    return sorted(path for path in CORPUS.glob("*v[0-9]*") if path.is_dir())


def logs(folder: Path) -> list[Path]:
    """Return the logs of runs below a folder."""
    return sorted(path for path in folder.rglob("result_*.txt") if path.is_file())


def sample(tree: Path, folder: Path, most: int) -> tuple[Path, int]:
    """Copy result sets of one submission, up to ``most`` logs but at least one set.

    Prefer sets whose logs have the mean size of the tree. Return the folder of the copy and its
    number of logs.
    """
    usual = _mean_size(tree)
    sets = [path for path in sorted(tree.glob("*/results/*/*")) if logs(path)]
    sets.sort(key=lambda result_set: abs(_mean_size(result_set) - usual))
    root = sets[0].parents[2]
    count = 0
    for result_set in sets:
        size = len(logs(result_set))
        if result_set.parents[2] == root and (not count or count + size <= most):
            shutil.copytree(result_set, folder / root.name / result_set.relative_to(root))
            count += size
    shutil.copytree(root / "systems", folder / root.name / "systems")
    return folder / root.name, count


def submissions(tree: Path, folder: Path) -> Iterator[Path]:
    """Copy each submission of a tree, because the official programs write into their input."""
    for results in sorted(tree.glob("*/results")):
        yield Path(shutil.copytree(results.parent, folder / results.parent.name))


def _mean_size(folder: Path) -> float:
    """Return the mean size of a log in bytes."""
    sizes = [log.stat().st_size for log in logs(folder)]
    return sum(sizes) / len(sizes)
