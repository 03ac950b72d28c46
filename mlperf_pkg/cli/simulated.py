"""What ``mlperf-pkg simulate`` writes: the logs of one result set, or a whole round."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import click
from msgspec.structs import replace

from mlperf_pkg.checks.systems import check_system
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import visible
from mlperf_pkg.rulebook.load import rounds
from mlperf_pkg.simulate import (
    DIVISIONS,
    RoundPlan,
    RunPlan,
    newest_round,
    simulate_set,
    write_round,
)

LAYOUTS = {
    "flat": "{plan.system}_{plan.benchmark}_{number}.log",
    "tree": "{plan.system}/{plan.benchmark}/result_{number}.txt",
}
_NEEDED = ("benchmark", "system", "submitter")


def write_a_round(folder: Path, usage: str, round_: str | None, given: Mapping[str, Any]) -> int:
    """Write a whole round and say how much it is.

    Raises:
        UserError: as ``write_round``.
    """
    names = ("systems", "submitters", "sets", "seed", "benchmarks", "failures", "power", "code")
    chosen = {name: given[name] for name in names if given[name] is not None}
    plan = RoundPlan(usage, round_ or rounds(usage)[-1], statistics=given["records"], **chosen)
    if given["systems"] is None:
        plan = replace(plan, systems=max(plan.systems, plan.submitters))
    if given["submitters"] is None:
        plan = replace(plan, submitters=min(plan.systems, plan.submitters))
    if given["division"]:
        plan = replace(plan, divisions=(given["division"],))
    jobs = given["jobs"] or os.cpu_count() or 1
    written = write_round(plan, folder, jobs=jobs, force=given["force"])
    click.echo(
        f"{visible(str(folder))}: {usage} {plan.round}, {written.systems} systems,"
        f" {written.sets} result sets, {written.logs:,} logs, {written.size / 1e6:,.1f} MB"
    )
    return 0


def write_a_set(folder: Path, usage: str, round_: str | None, given: Mapping[str, Any]) -> int:
    """Write the logs of one result set and print their paths.

    Raises:
        UserError: as ``simulate_set``; a file exists, or cannot be written.
    """
    benchmarks, system, submitter = (given[k] for k in ("benchmarks", "system", "submitter"))
    if missing := [
        f"--{name}"
        for name, value in zip(_NEEDED, (benchmarks, system, submitter), strict=True)
        if not value
    ]:
        raise click.UsageError(f"missing {', '.join(missing)} (or --whole-round)")
    if len(benchmarks) > 1:
        raise click.UsageError("one result set is of one benchmark (or --whole-round)")
    name = round_ or newest_round(usage, benchmarks[0])
    plan = RunPlan(
        usage=usage,
        round=name,
        benchmark=benchmarks[0],
        division=given["division"] or DIVISIONS[0],
        system=_file_name(system),
        organization=submitter,
        minutes=given["minutes"],
        optimizer=given["optimizer"],
        statistics=given["records"],
    )
    if number := given["accelerators"] or _known_accelerators(system, name):
        plan = replace(plan, accelerators=number)
    logs = simulate_set(plan, given["seed"], given["runs"], given["failures"])
    names = [LAYOUTS[given["layout"]].format(plan=plan, number=at) for at in range(len(logs))]
    _write({folder / name: log for name, log in zip(names, logs, strict=True)})
    return 0


def _file_name(system: str) -> str:
    if not system or PurePath(system).name != system or system.startswith("."):
        raise UserError(f"--system {system!r} cannot be a file's name")
    return system


def _known_accelerators(system: str, round_: str) -> int | None:
    """Those of the system description that travels with the package, if there is one."""
    file = data_folder("systems") / f"{system}.json"
    if not file.is_file():
        return None
    return check_system(file.name, file.read_bytes(), "training", round_).accelerators


def _write(logs: Mapping[Path, bytes]) -> None:
    """All or, where one of the files exists, none."""
    for path in logs:
        if path.exists():
            raise UserError(f"{path}: exists already and is not overwritten")
    for path, log in logs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, log, replace=False)
        click.echo(visible(str(path)))
