"""Express a plan as the configuration that defines all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import escape
from typing import Any

from mlperf_pkg.commands.builder.plan import Plan
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import fields_of
from mlperf_pkg.run.model import Run


def explained(workspace: Workspace, plan: Plan) -> dict[str, Any]:
    """Return the fields of an ``mlperf-pkg.yaml`` that leads to this plan."""
    fields = fields_of(workspace.config)
    return {
        **fields,
        "submitter": plan.submitter,
        "round": workspace.round.name,
        "usage": workspace.round.usage,
        "division": plan.division,
        "systems": _systems(workspace, plan) or fields["systems"],
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
