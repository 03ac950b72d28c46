"""A simulated round with twelve planted problems, as submitted and after the review."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlperf_pkg.simulate import RunPlan, rounds, simulate_set
from tests.helpers.logs import edited, joined, records
from tests.helpers.trees import write_set, write_system

OLD, NEW = "training_results_v2.0", "training_results_v2.1"
BATCH_SIZE, LARGER = 3264, 1 << 20
FAST = 31  # epochs; runs of this batch size need 35 or more
RATE, WARMUP = "lars_opt_base_learning_rate", "lars_opt_learning_rate_warmup_epochs"

Logs = tuple[bytes, ...]


@lru_cache
def runs(submitter: str, seed: int, round_: str = "2.1", batch_size: int = BATCH_SIZE) -> Logs:
    """The runs of a result set of ResNet; sets differ only in the seed."""
    plan = RunPlan(
        round=round_,
        benchmark="resnet",
        division="closed",
        system="box",
        organization=submitter,
        minutes=20.0,
        accelerators=16,
        batch_size=batch_size,
    )
    return tuple(simulate_set(plan, seed))


def with_values(logs: Logs, **values: Any) -> Logs:
    for key, value in values.items():
        logs = tuple(edited(log, key, value=value) for log in logs)
    return logs


def lasting(logs: Logs, factor: float) -> Logs:
    """Logs of runs with another duration."""
    return tuple(_lasting(log, factor) for log in logs)


def _lasting(log: bytes, factor: float) -> bytes:
    fields = records(log)
    start = fields[0]["time_ms"]
    return joined([{**r, "time_ms": start + factor * (r["time_ms"] - start)} for r in fields])


def write(
    root: Path, submitter: str, logs: Logs, *, code: bool = True, system: str = "box", **fields: Any
) -> Path:
    """A submission of one system with one result set, or one more system of it."""
    tree = root / submitter
    described = {"submitter": submitter, "division": "closed", "system_name": system}
    write_system(tree / "systems", system, **{**described, "number_of_nodes": "4", **fields})
    write_set(tree / "results" / system / "resnet", logs)
    if code:
        stub = tree / "benchmarks/resnet/implementations/tf"
        stub.mkdir(parents=True, exist_ok=True)
        for name, text in rounds.code("resnet", None).items():
            (stub / name).write_text(f"# {submitter}\n{text}", "utf-8")
    return tree


# ---- the problems -------------------------------------------------------------------------


def resubmitted(root: Path) -> None:
    """Logs of the round before, on a system with another description."""
    logs = runs("Alpha", 1, "2.0")
    write(root / OLD, "Alpha", logs)
    write(root / NEW, "Alpha", logs, framework="another 2.0")


def slower_than_its_preview(root: Path) -> None:
    """A successor that is 3 % slower."""
    write(root / OLD, "Beta", runs("Beta", 2, "2.0"), status="preview")
    slower = lasting(_as_of(runs("Beta", 2, "2.0"), runs("Beta", 3)), 1.03)
    write(root / NEW, "Beta", slower)


def _as_of(model: Logs, logs: Logs) -> Logs:
    """Runs that take as long as those of another set."""
    return tuple(
        _lasting(log, _ms(other) / _ms(log)) for log, other in zip(logs, model, strict=True)
    )


def _ms(log: bytes) -> float:
    times = {record["key"]: record["time_ms"] for record in records(log)}
    return float(times["run_stop"] - times["run_start"])


def preview_without_successor(root: Path) -> None:
    """A Preview whose accelerator the submitter does not submit again."""
    write(root / OLD, "Gamma", runs("Gamma", 4, "2.0"), status="preview")
    write(root / NEW, "Gamma", runs("Gamma", 5), accelerator_model_name="Another X100")


def copied(root: Path) -> None:
    """The runs of another submitter."""
    write(root / NEW, "Delta", runs("Gamma", 5))


def outlier(root: Path) -> None:
    write(root / NEW, "Zeta", _scaled_rate(runs("Zeta", 6), 7.0))


def _scaled_rate(logs: Logs, factor: float) -> Logs:
    return with_values(logs, **{RATE: _value(logs, RATE) * factor})


def _value(logs: Logs, key: str) -> Any:
    return next(record["value"] for record in records(logs[0]) if record["key"] == key)


def differing_runs(root: Path) -> None:
    """A set with a different warmup in one run."""
    logs = runs("Eta", 7)
    one = edited(logs[0], WARMUP, value=_value(logs, WARMUP) + 1)
    write(root / NEW, "Eta", (one, *logs[1:]))


def missing_reference(root: Path) -> None:
    """A batch size larger than that of any reference point."""
    write(root / NEW, "Theta", runs("Theta", 8, batch_size=LARGER))


def failing_reference(root: Path) -> None:
    """A set that converges too fast."""
    write(root / NEW, "Iota", tuple(_converged(log, FAST) for log in runs("Iota", 9)))


def _converged(log: bytes, epoch: int) -> bytes:
    """The log of a run that converges at an epoch, without later epochs."""
    fields = [record for record in records(log) if _epoch(record) <= epoch]
    evaluations = [record for record in fields if record["key"] == "eval_accuracy"]
    evaluations[-1]["value"] = 0.7598
    return joined(fields)


def _epoch(record: dict[str, Any]) -> int:
    metadata = record["metadata"]
    return metadata.get("epoch_num") or metadata.get("first_epoch_num") or 0


def two_spellings(root: Path) -> None:
    write(root / NEW, "Kappa-Inc", runs("Kappa-Inc", 10))
    write(root / NEW, "kappa_inc", runs("kappa_inc", 11))


def broken_log(root: Path) -> None:
    first, *others = runs("Lambda", 12)
    write(root / NEW, "Lambda", (first[: len(first) // 2], *others))


def no_code(root: Path) -> None:
    write(root / NEW, "Mu", runs("Mu", 13), code=False)


def borrowed(root: Path) -> None:
    """A set with hyperparameters of its own, until it borrows others in the review."""
    logs = with_values(_scaled_rate(runs("Epsilon", 14), 1.1), **{WARMUP: 9})
    write(root / NEW, "Epsilon", logs, framework="Framework 1.0")


PROBLEMS: dict[str, Callable[[Path], None]] = {
    "logs resubmitted with another description": resubmitted,
    "a preview 3 % slower": slower_than_its_preview,
    "a preview without a successor": preview_without_successor,
    "a copy of another submitter's runs": copied,
    "an outlier learning rate": outlier,
    "runs of one set with different hyperparameters": differing_runs,
    "a missing reference point": missing_reference,
    "a failing RCP test": failing_reference,
    "two spellings of a submitter": two_spellings,
    "a broken log": broken_log,
    "no code": no_code,
    "hyperparameters borrowed with other software": borrowed,
}


def write_planted(root: Path) -> None:
    """Write the old round, the new one, and below ``final`` the new one after the review."""
    for problem in PROBLEMS.values():
        problem(root)
    shutil.copytree(root / NEW, root / "final" / NEW)
    write(root / "final" / NEW, "Epsilon", runs("Epsilon", 15), framework="Framework 2.0")
