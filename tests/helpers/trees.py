"""Small submission trees made of simulated logs."""

import json
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.simulate import RunPlan, simulate_set

SYSTEM = "bow-pod16"


@lru_cache
def simulated(
    benchmark: str = "resnet",
    division: str = "closed",
    round_: str = "2.0",
    runs: int | None = None,
    seed: int = 7,
) -> tuple[bytes, ...]:
    """The logs of one result set, with the required number of runs by default."""
    more: Any = {"round": round_, "benchmark": benchmark, "division": division, "minutes": 20.0}
    plan = RunPlan(system=SYSTEM, organization="Graphcore", **more)
    return tuple(simulate_set(plan, seed=seed, runs=runs))


def simulated_models(runs: int) -> tuple[bytes, ...]:
    """The logs of models that a system of HPC trains, at once or one after another."""
    more: Any = {"usage": "hpc", "round": "3.0", "benchmark": "cosmoflow", "division": "closed"}
    plan = RunPlan(system="box", organization="ACME", **more)
    return tuple(simulate_set(plan, seed=3, runs=runs))


def write_system(folder: Path, name: str = SYSTEM, **changes: Any) -> Path:
    """A system description, with other values for some fields; ``...`` leaves one out."""
    defaults = json.loads((data_folder("systems") / f"{SYSTEM}.json").read_text("utf-8"))
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {key: value for key, value in {**defaults, **changes}.items() if value is not ...}
    path.write_text(json.dumps(fields, indent=2), "utf-8")
    return path


def write_set(folder: Path, logs: tuple[bytes, ...]) -> Path:
    """A folder of ``result_0.txt`` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, log in enumerate(logs):
        (folder / f"result_{index}.txt").write_bytes(log)
    return folder


def write_submission(root: Path, *benchmarks: str, division: str = "closed", seed: int = 7) -> Path:
    """A valid submission of one system; another ``seed`` gives other runs."""
    write_system(root / "systems", division=division)
    for benchmark in benchmarks or ("resnet",):
        write_set(root / "results" / SYSTEM / benchmark, simulated(benchmark, division, seed=seed))
    return root


def write_code(root: Path, *benchmarks: str) -> Path:
    """Code for benchmarks of a submission, with the file that the logs name."""
    for benchmark in benchmarks or ("resnet",):
        folder = root / "benchmarks" / benchmark
        folder.mkdir(parents=True)
        for name in ("config.sh", "setup.sh", "init_datasets.sh", "run_and_time.sh"):
            (folder / name).touch()
        (folder / "README.md").write_text("`sbatch -N 1 run_and_time.sh`")
    return root


def remove(path: Path) -> None:
    """Take a file or a folder away."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def described(**changes: Any) -> Callable[[Path], object]:
    """A change of the description of the system of a submission."""
    return lambda root: write_system(root / "systems", **changes)
