"""Express a plan as a configuration, propose one, and write it with an explanation of every key."""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mlperf_pkg.checks.proposal import systems_to_assign
from mlperf_pkg.commands.builder.plan import BuildPlan
from mlperf_pkg.commands.builder.workspace import BuildWorkspace
from mlperf_pkg.config import CONFIG_NAME, fields_of
from mlperf_pkg.infra.plain_yaml import dump
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import visible
from mlperf_pkg.submission.membership import log_patterns


def explained(workspace: BuildWorkspace, plan: BuildPlan) -> dict[str, Any]:
    """Return the fields of an ``mlperf-pkg.yaml`` that leads to this plan."""
    fields = fields_of(workspace.config)
    fields["submitter"] = plan.submitter
    fields["round"] = workspace.round.name
    fields["usage"] = workspace.round.usage
    fields["division"] = plan.division
    systems = _systems(workspace, plan)
    if systems:
        fields["systems"] = systems
    leave_out = set(workspace.config.leave_out)
    for planned in plan.left_out:
        leave_out.add(planned.name)
    fields["leave_out"] = sorted(leave_out)
    return fields


def _systems(workspace: BuildWorkspace, plan: BuildPlan) -> dict[str, Any]:
    """Return patterns for the logs of each system: a folder if all its logs match, else a log."""
    owners: dict[str, set[str]] = {}  # paths by system
    for planned in (*plan.sets, *plan.left_out):
        paths = owners.setdefault(planned.system.id, set())
        paths.update(run.path for run in planned.runs)
    systems = {}
    for system, paths in sorted(owners.items()):
        foreign = [run.path for run in workspace.runs if run.path not in paths]
        systems[system] = {"logs": list(log_patterns(paths, foreign))}
    return systems


# ---- init ---------------------------------------------------------------------------------


def proposed(workspace: BuildWorkspace, plan: BuildPlan) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the fields of an ``mlperf-pkg.yaml``, and messages about what is left to fill in.

    Several submitters leave ``submitter`` open.

    Systems list platforms, not logs, so that later logs are of these systems, too. If evidence
    leaves the system of logs open, each candidate has a list to fill in.
    """
    contexts = [*plan.unmapped, *(planned.context for planned in plan.sets)]
    systems, comments = systems_to_assign(workspace.config, contexts)
    for platform, system in _platforms(plan):
        platforms = systems.setdefault(system, {}).setdefault("platforms", [])
        if platform not in platforms:
            platforms.append(platform)
    fields = explained(workspace, plan)
    fields["systems"] = systems
    if len(plan.submitters) != 1:
        fields["submitter"] = None
    return fields, comments


def _platforms(plan: BuildPlan) -> Iterator[tuple[str, str]]:
    """Yield the platforms of which all logs are of one system, with the system."""
    owners: dict[str, set[str]] = {}  # systems by platform
    for planned in plan.sets:
        for run in planned.runs:
            owners.setdefault(run.text("platform"), set()).add(planned.system.id)
    open_platforms = {""}
    for context in plan.unmapped:
        open_platforms.update(run.text("platform") for run in context.runs)
    for platform, systems in sorted(owners.items()):
        if platform not in open_platforms and len(systems) == 1:
            yield platform, systems.pop()


# ---- the file -----------------------------------------------------------------------------

_WIDTH = 80
_HEAD = "Values that can be inferred are optional: 'mlperf-pkg build --explain' shows these values."


def config_text(values: Mapping[str, Any], to_do: Iterable[str] = ()) -> str:
    """Return a configuration with these ``values`` by key; all other keys are comments.

    The tasks in ``to_do`` come first.
    """
    path = data_folder("rules") / "config.schema.json"
    schema = json.loads(path.read_text("utf-8"))
    parts = [_comment(f"{CONFIG_NAME}: {schema['description']} {_HEAD}")]
    for text in to_do:
        parts.append(_comment(f"TO DO: {visible(text)}"))
    for name, about in schema["properties"].items():
        parts.append(_part(name, about, values))
    return "\n".join(parts)


def _part(name: str, about: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    meaning = _comment(about["description"])
    if values.get(name):
        return f"{meaning}{dump({name: values[name]})}"
    example = dump({name: about["examples"][0]})
    return f"{meaning}{textwrap.indent(example, '# ')}"


def _comment(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, _WIDTH - 2) + "\n", "# ")
