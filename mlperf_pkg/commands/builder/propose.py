"""Propose a configuration: fill in what follows from the inputs, and list the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.workspace import systems_to_assign
from mlperf_pkg.commands.builder.explain import explained
from mlperf_pkg.commands.builder.plan import Plan, make_plan
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import Config


class Proposal(Struct, frozen=True):
    """The fields of an ``mlperf-pkg.yaml``, and messages about what is left to fill in."""

    fields: dict[str, Any]
    open: tuple[str, ...]


def proposed(workspace: Workspace, plan: Plan) -> Proposal:
    """Return a configuration for a workspace; several submitters leave ``submitter`` open.

    Systems list platforms, not logs, so that later logs are of these systems, too. If evidence
    leaves the system of logs open, each candidate has a list to fill in.
    """
    systems, comments = systems_to_assign(workspace.config, plan.unmapped)
    for platform, system_id in _certain(plan):
        platforms = systems.setdefault(system_id, {}).setdefault("platforms", [])
        platforms += [platform] if platform not in platforms else []
    submitter = plan.submitters[0] if len(plan.submitters) == 1 else None
    fields = explained(workspace, plan) | {"submitter": submitter, "systems": systems}
    return Proposal(fields, tuple(comments))


def left_to_fill_in(workspace: Workspace, config: Config) -> tuple[str, ...]:
    """Return what prevents a build with this configuration."""
    return make_plan(replace(workspace, config=config)).problems


def _certain(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield platforms and their systems, where all logs of the platform are of one system."""
    systems: dict[str, set[str]] = {}
    for planned in plan.sets:
        for run in planned.runs:
            systems.setdefault(run.text("platform"), set()).add(planned.system.id)
    others = {run.text("platform") for context in plan.unmapped for run in context.runs}
    for platform, ids in sorted(systems.items()):
        if platform and len(ids) == 1 and platform not in others:
            yield platform, min(ids)
