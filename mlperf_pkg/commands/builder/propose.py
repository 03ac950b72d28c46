"""Propose a configuration: what follows from the inputs, and the likely systems of other logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.builder.explain import configured_systems, explained
from mlperf_pkg.commands.builder.mapping import Unmapped, folded, likeliest
from mlperf_pkg.commands.builder.plan import Plan, make_plan
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import Config


class Proposal(Struct, frozen=True):
    """The fields of an ``mlperf-pkg.yaml``, and which of them are guesses, as messages."""

    fields: dict[str, Any]
    guesses: tuple[str, ...]


def proposed(workspace: Workspace, plan: Plan) -> Proposal:
    """Return a configuration for a workspace; several submitters leave ``submitter`` open.

    The logs of systems are not listed, so that later logs belong to their systems too: platforms
    are, where neither a folder nor a platform names a system. Each of those platforms gets the
    system whose name is most like it.
    """
    systems = configured_systems(workspace.config)
    guesses = []
    for platform, runs in _by_platform(plan.unmapped).items():
        if system := likeliest(runs[0], workspace.systems):
            entry = systems.setdefault(system.id, {})
            entry.setdefault("platforms", []).append(platform)
            logs = folded([unmapped.run.path for unmapped in runs])
            guesses.append(
                f"systems: {system.id}: platforms: {platform!r} is a guess, by the likeness of the"
                f" names, for {logs}"
            )
    for platform, system_id in _certain(plan):
        entry = systems.setdefault(system_id, {})
        entry.setdefault("platforms", [])
        entry["platforms"] = list(dict.fromkeys([*entry["platforms"], platform]))
    submitter = plan.submitters[0] if len(plan.submitters) == 1 else None
    fields = explained(workspace, plan) | {"submitter": submitter, "systems": systems}
    return Proposal(fields, tuple(guesses))


def left_to_fill_in(workspace: Workspace, config: Config) -> tuple[str, ...]:
    """Return what prevents a build with this configuration."""
    return make_plan(replace(workspace, config=config)).problems


def _by_platform(unmapped: Iterable[Unmapped]) -> dict[str, list[Unmapped]]:
    groups: dict[str, list[Unmapped]] = {}
    for candidate in unmapped:
        if platform := candidate.run.text("platform"):
            groups.setdefault(platform, []).append(candidate)
    return groups


def _certain(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield platforms and their systems, where all logs of the platform are of one system."""
    systems: dict[str, set[str]] = {}
    for planned in plan.sets:
        for run in planned.runs:
            systems.setdefault(run.text("platform"), set()).add(planned.system.id)
    others: Sequence[str] = [unmapped.run.text("platform") for unmapped in plan.unmapped]
    for platform, ids in sorted(systems.items()):
        if platform and len(ids) == 1 and platform not in others:
            yield platform, min(ids)
