"""Submissions and rounds that have runs in common."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.logs import joined, records
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

LORA = "llama2_70b_lora"
Change = Callable[[bytes], bytes]


def system(tree: Path, name: str, logs: tuple[bytes, ...], **changes: Any) -> None:
    """Add a system with logs for resnet."""
    write_system(tree / "systems", name, system_name=name, **changes)
    write_set(tree / "results" / name / "resnet", logs)


def two_systems(root: Path, change: Change = bytes, count: int = 5) -> Path:
    """A submission whose second system has the logs of the first, changed, and others."""
    tree = write_submission(root / "Graphcore")
    own, other = simulated(), simulated(seed=8)
    system(tree, "pod64", (*map(change, own[:count]), *other[count:]))
    return tree


def two_rounds(root: Path, submitter: str = "Graphcore", **changes: Any) -> list[Path]:
    """A submission to 5.0, and its logs again in 5.1, where the description has changes."""
    rounds = [root / "training_results_v5.0", root / "training_results_v5.1"]
    for tree in (rounds[0] / "Graphcore", rounds[1] / submitter):
        fields = {} if "v5.0" in str(tree) else changes
        write_system(tree / "systems", submitter=tree.name, **fields)
        write_set(tree / "results" / SYSTEM / LORA, simulated(LORA, round_="5.0"))
    return rounds


def slower(log: bytes, factor: float) -> bytes:
    """The log of another run, with another duration, or the same log."""
    fields = records(log)
    for record in fields:
        if record["key"] == "eval_accuracy" and factor != 1:
            record["value"] *= 1.001
    start: float = fields[0]["time_ms"]
    return joined([{**r, "time_ms": start + factor * (r["time_ms"] - start)} for r in fields])


def submission(root: Path, round_: str, factor: float, seed: int, **system: Any) -> Path:
    tree = root / f"training_results_v{round_}"
    write_system(tree / "Graphcore/systems", **system)
    logs = tuple(slower(log, factor) for log in simulated(seed=seed))
    write_set(tree / f"Graphcore/results/{SYSTEM}/resnet", logs)
    return tree
