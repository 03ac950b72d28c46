"""The logs of one simulated result set, written into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.systems import check_system
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.json_lines import MAX_BYTES
from mlperf_pkg.infra.opening import read_file
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.simulate import RunPlan, newest_round, simulate_set

LAYOUTS = {
    "flat": "{plan.system}_{plan.benchmark}_{number}.log",
    "tree": "{plan.system}/{plan.benchmark}/result_{number}.txt",
}


class SetOrder(Struct, frozen=True, kw_only=True):
    """The result set to simulate, as ``RunPlan`` and ``simulate_set`` define the fields.

    ``round`` is by default the newest that has the benchmark, ``accelerators`` by default the
    number in the system description that is part of the package. ``layout`` is a key of
    ``LAYOUTS``.
    """

    usage: str
    round: str | None
    benchmark: str
    division: str
    system: str
    submitter: str
    runs: int | None
    seed: int
    minutes: float | None
    accelerators: int | None
    optimizer: str | None
    failures: tuple[str, ...]
    records: int
    layout: str


def write_set(folder: Path, order: SetOrder) -> list[Path]:
    """Write the logs of a result set, all of them or none; return their paths.

    Raises:
        UserError: as ``simulate_set``; the system's id cannot be a file name; a file exists or
            cannot be written.
    """
    plan = _plan(order)
    logs = simulate_set(plan, order.seed, order.runs, order.failures)
    layout = LAYOUTS[order.layout]
    paths = [folder / layout.format(plan=plan, number=number) for number in range(len(logs))]
    _write(dict(zip(paths, logs, strict=True)))
    return paths


def _plan(order: SetOrder) -> RunPlan:
    plan = RunPlan(
        usage=order.usage,
        round=order.round or newest_round(order.usage, order.benchmark),
        benchmark=order.benchmark,
        division=order.division,
        system=_file_name(order.system),
        organization=order.submitter,
        minutes=order.minutes,
        optimizer=order.optimizer,
        statistics=order.records,
    )
    accelerators = order.accelerators or _described_accelerators(plan)
    return replace(plan, accelerators=accelerators) if accelerators else plan


def _file_name(system: str) -> str:
    if not system or PurePath(system).name != system or system.startswith("."):
        raise UserError(f"--system {system!r} is not a valid file name")
    return system


def _described_accelerators(plan: RunPlan) -> int | None:
    """Return the total of the packaged system description, or None if there is none."""
    file = data_folder("systems") / f"{plan.system}.json"
    if not file.is_file():
        return None
    return check_system(file.name, read_file(file, MAX_BYTES), "training", plan.round).accelerators


def _write(logs: Mapping[Path, bytes]) -> None:
    """Write every log, or none where one of the files exists."""
    for path in logs:
        if path.exists():
            raise UserError(f"{path}: exists already and is not overwritten")
    for path, log in logs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, log, replace=False)
