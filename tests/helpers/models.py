"""Submissions to HPC, where a run is a model."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mlperf_pkg.simulate import RunPlan, simulate_set
from tests.helpers.trees import SYSTEM, write_set, write_system


@cache
def models(runs: int = 5) -> tuple[bytes, ...]:
    plan = RunPlan("2.0", "deepcam", "closed", SYSTEM, "Graphcore", accelerators=16, usage="hpc")
    return tuple(simulate_set(plan, seed=7, runs=runs))


def of_models(folder: Path, logs: Mapping[str, tuple[bytes, ...]]) -> Path:
    """A submission with sets of these scalings."""
    root = folder / "Graphcore"
    write_system(root / "systems", number_of_nodes="2", accelerators_per_node="8")
    for scaling, of_set in logs.items():
        write_set(root / "results" / SYSTEM / scaling / "deepcam", of_set)
    return root
