"""Writing simulated logs: one result set beside its system description, or a whole round."""

import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

from msgspec.structs import replace

from mlperf_pkg import simulate as simulation
from mlperf_pkg.checks.descriptions import SystemFile, check_system, shown
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import write_all
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.paths import read_file
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.results.wording import counted
from mlperf_pkg.rulebook.documents import rounds

# ---- a result set -------------------------------------------------------------------------

LAYOUTS = {
    "flat": "{plan.system}_{plan.benchmark}_{number}.log",
    "tree": "{plan.system}/{plan.benchmark}/result_{number}.txt",
}


def write_set(folder: Path, order: Mapping[str, Any]) -> tuple[list[Path], Path | None]:
    """Write the logs of a result set and the description of its system: all files or none.

    ``order`` has the options of the command, as ``RunPlan`` and ``simulate_set`` define them:
    ``round`` is by default the newest that has the benchmark, ``accelerators`` by default the
    number in the system description that is part of the package; ``layout`` is a key of
    ``LAYOUTS``. The description is ``systems/<system>.json`` beside the logs; an existing one is
    kept. Return the paths of the logs and of a new description.

    Raises:
        UserError: as ``simulate_set``; the system's id cannot be a file name; an existing
            description is of another system; a log exists, or a file cannot be written.
    """
    plan, system = _plan(order)
    layout = LAYOUTS[order["layout"]]
    logs = {}
    simulated = simulation.simulate_set(plan, order["seed"], order["runs"], order["failures"])
    for number, log in enumerate(simulated):
        logs[folder / layout.format(plan=plan, number=number)] = log
    description = _description_beside(folder, plan.system)
    if description.exists():
        _refuse_differences(description, plan)
        _write(logs)
        return list(logs), None
    values = {
        "submitter": plan.organization,
        "division": plan.division,
        "number_of_nodes": str(plan.nodes),
        "accelerators_per_node": str(plan.accelerators_per_node),
    }
    text = simulation.description(values, system)
    _write({**logs, description: text.encode()})
    return list(logs), description


def _description_beside(folder: Path, system: str) -> Path:
    """Return the file of a description, beside the folder of all logs.

    That may be ``folder`` or one that it is in.
    """
    all_logs = folder
    for parent in (folder, *folder.parents):
        if parent.name in ("logs", "results"):
            all_logs = parent
            break
    return all_logs.parent / "systems" / f"{system}.json"


def _plan(order: Mapping[str, Any]) -> tuple[simulation.RunPlan, Mapping[str, Any]]:
    """Return the plan and the system: the packaged one with that id, else a simulated one."""
    name = order["system"]
    if not name or PurePath(name).name != name or name.startswith("."):
        raise UserError(f"--system {name!r} is not a valid file name")
    usage = order["usage"]
    benchmark = order["benchmark"]
    round_ = order["round"] or simulation.newest_round(usage, benchmark)
    plan = simulation.RunPlan(
        round_,
        benchmark,
        order["division"],
        system=name,
        organization=order["submitter"],
        minutes=order["minutes"],
        optimizer=order["optimizer"],
        usage=usage,
        statistics=order["records"],
    )
    file = data_folder("systems") / f"{name}.json"
    packaged = _read(file, plan) if file.is_file() else None
    if packaged and packaged.contents and packaged.accelerators and packaged.nodes:
        system = packaged.contents
        accelerators = packaged.accelerators
        plan = replace(plan, node_size=packaged.accelerators // packaged.nodes)
    else:
        system = {**simulation.SYSTEM, "system_name": f"Simulated system {name}"}
        accelerators = plan.accelerators
    return replace(plan, accelerators=order["accelerators"] or accelerators), system


def _refuse_differences(path: Path, plan: simulation.RunPlan) -> None:
    """Refuse to write logs that contradict the description of their system.

    Raises:
        UserError: the description cannot be read, or differs from the logs.
    """
    try:
        system = _read(path, plan)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    described_and_logged = {
        "submitter": (system.submitter, plan.organization),
        "division": (system.division, plan.division),
        "number of accelerators": (system.accelerators, plan.accelerators),
    }
    differences: list[str] = []
    for name, (described, logged) in described_and_logged.items():
        if described not in (None, logged):
            differences.append(
                f"the {name} is {shown(described)}, but {shown(logged)} in the logs to be written"
            )
    if differences:
        remedy = "choose another --system, or another FOLDER"
        raise UserError(f"{path} describes another system: {'; '.join(differences)}; {remedy}")


def _read(path: Path, plan: simulation.RunPlan) -> SystemFile:
    return check_system(path.name, read_file(path, MAX_BYTES), plan.usage, plan.round)


def _write(files: Mapping[Path, bytes]) -> None:
    """Write all files; none, and no folder, if one exists or cannot be written."""
    for path in files:
        if path.exists():
            raise UserError(f"{path} exists already and is not overwritten")
    folders = set(chain.from_iterable(path.parents for path in files))
    new_folders = [folder for folder in folders if not folder.exists()]
    try:
        for path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_all(files, replace=False)
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be written: {error.strerror}") from error
    finally:
        for folder in sorted(new_folders, reverse=True):
            with suppress(OSError):  # not empty: the files are there
                folder.rmdir()


# ---- a round ------------------------------------------------------------------------------

EXTRAS = ("power", "code")


def write_whole_round(folder: Path, order: Mapping[str, Any], *, force: bool) -> str:
    """Write the round into a new folder; return a summary of what was written.

    ``order`` has the options of the command, as ``RoundPlan`` defines them; None is the default.
    ``round`` is by default the newest of the usage. Where only one of ``systems`` and
    ``submitters`` is set, the other's default is changed to fit. ``extras`` are of ``EXTRAS``.
    ``jobs`` is the number of processes, by default one per core. ``force`` replaces a round that
    was simulated before.

    Raises:
        UserError: as ``write_round``.
    """
    plan = _round_plan(order)
    jobs = order["jobs"] or os.cpu_count() or 1
    sets, logs, size = simulation.write_round(plan, folder, jobs=jobs, force=force)
    round_ = f"{folder}: {plan.usage} {plan.round}"
    contents = f"{counted(plan.systems, 'system')}, {counted(sets, 'result set')}"
    return f"{round_}, {contents}, {logs:,} logs, {size / 1e6:,.1f} MB"


def _round_plan(order: Mapping[str, Any]) -> simulation.RoundPlan:
    usage = order["usage"]
    round_ = order["round"] or rounds(usage)[-1]
    plan = simulation.RoundPlan(usage, round_)
    systems = order["systems"] or max(plan.systems, order["submitters"] or 0)
    submitters = order["submitters"] or min(plan.submitters, systems)
    values = {name: order[name] for name in ("sets", "seed", "benchmarks", "failures")}
    values["statistics"] = order["records"]
    for extra in EXTRAS:
        values[extra] = extra in order["extras"]
    if order["division"]:
        values["divisions"] = (order["division"],)
    return replace(plan, systems=systems, submitters=submitters, **values)
