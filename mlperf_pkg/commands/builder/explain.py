"""Express a plan as the configuration that defines all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import escape
from typing import Any

from mlperf_pkg.commands.builder.plan import Plan
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import Config
from mlperf_pkg.run.model import Run


def explained(workspace: Workspace, plan: Plan) -> dict[str, Any]:
    """Return the fields of an ``mlperf-pkg.yaml`` that leads to this plan."""
    config = workspace.config
    return {
        "submitter": plan.submitter,
        "round": workspace.round.name,
        "usage": workspace.round.usage,
        "division": plan.division,
        "organizations": list(config.organizations),
        "systems": _systems(workspace, plan) or configured_systems(config),
        "code": {name: folders.get("", dict(folders)) for name, folders in config.code.items()},
        "extra_files": dict(config.extra_files),
        "notes": dict(config.notes),
        "prices": {system: _price(config, system) for system in config.prices},
        "leave_out": list(config.leave_out),
        "waivers": [
            {
                "code": waived.code,
                "path": waived.path,
                "reason": waived.waiver.reason,
                "approved_by": waived.waiver.approved_by,
                "until": waived.waiver.until,
            }
            for waived in config.waivers
        ],
    }


def _price(config: Config, system: str) -> dict[str, Any]:
    price = config.prices[system]
    fields = {
        "price_usd": f"{price.usd:.15g}",
        "source": price.source,
        "date": price.date,
        "also": list(price.also),
    }
    return {name: value for name, value in fields.items() if value}


def configured_systems(config: Config) -> dict[str, Any]:
    """Return the systems of a configuration as its file has them."""
    fields = ("logs", "platforms")
    return {
        name: {field: list(getattr(system, field)) for field in fields if getattr(system, field)}
        for name, system in config.systems.items()
    }


# ---- the logs of each system --------------------------------------------------------------


def _systems(workspace: Workspace, plan: Plan) -> dict[str, Any]:
    """Return patterns for the logs of each system: a folder if all its logs match, else a log."""
    owners: dict[str, list[str]] = {}
    for planned in plan.sets:
        owners.setdefault(planned.system.id, []).extend(run.path for run in planned.runs)
    return {
        system: {"logs": list(dict.fromkeys(_patterns(paths, workspace.runs)))}
        for system, paths in sorted(owners.items())
    }


def _patterns(paths: Sequence[str], every: Iterable[Run]) -> list[str]:
    own = set(paths)
    foreign = {_folder(run.path) for run in every if run.path not in own}
    return [
        escape(path)
        if not _folder(path)
        or any(f"{other}/".startswith(f"{_folder(path)}/") for other in foreign)
        else f"{escape(_folder(path))}/*"
        for path in sorted(own)
    ]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
