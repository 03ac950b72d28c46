"""Express a plan as a configuration, propose one, and write it with an explanation of every key."""

import json
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from glob import escape
from typing import Any

from mlperf_pkg.checks.workspace import systems_to_assign
from mlperf_pkg.commands.builder.plan import Plan
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME, fields_of
from mlperf_pkg.infra.plain_yaml import dump
from mlperf_pkg.infra.resources import data_folder
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.table import by_key
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


def _systems(workspace: Workspace, plan: Plan) -> dict[str, Any]:
    """Return patterns for the logs of each system: a folder if all its logs match, else a log."""
    owners = by_key((planned.system.id, run.path) for planned in plan.sets for run in planned.runs)
    return {
        system: {"logs": list(dict.fromkeys(_patterns({*paths}, workspace.runs)))}
        for system, paths in sorted(owners.items())
    }


def _patterns(paths: Collection[str], every: Iterable[Run]) -> Iterator[str]:
    foreign = {run.path[: run.path.rfind("/") + 1] for run in every if run.path not in paths}
    for path in sorted(paths):
        folder = path[: path.rfind("/") + 1]
        alone = folder and not any(other.startswith(folder) for other in foreign)
        yield f"{escape(folder)}*" if alone else escape(path)


# ---- init ---------------------------------------------------------------------------------


def proposed(workspace: Workspace, plan: Plan) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the fields of an ``mlperf-pkg.yaml``, and messages about what is left to fill in.

    Several submitters leave ``submitter`` open.

    Systems list platforms, not logs, so that later logs are of these systems, too. If evidence
    leaves the system of logs open, each candidate has a list to fill in.
    """
    systems, comments = systems_to_assign(workspace.config, plan.unmapped)
    runs = ((run, planned.system.id) for planned in plan.sets for run in planned.runs)
    owners = by_key((run.text("platform"), system) for run, system in runs)
    others = {"", *(run.text("platform") for context in plan.unmapped for run in context.runs)}
    for platform, ids in sorted(owners.items()):
        if platform not in others and len({*ids}) == 1:  # all its logs are of this system
            platforms = systems.setdefault(ids[0], {}).setdefault("platforms", [])
            platforms += [platform] if platform not in platforms else []
    submitter = plan.submitters[0] if len(plan.submitters) == 1 else None
    fields = explained(workspace, plan) | {"submitter": submitter, "systems": systems}
    return fields, comments


# ---- the file -----------------------------------------------------------------------------

_WIDTH = 80
_HEAD = "Values that can be inferred are optional: 'mlperf-pkg build --explain' shows them."


def config_text(values: Mapping[str, Any], to_do: Iterable[str] = ()) -> str:
    """Return a configuration with these ``values`` by key; all other keys are comments.

    The tasks in ``to_do`` come first.
    """
    schema = json.loads((data_folder("rules") / "config.schema.json").read_text("utf-8"))
    head = _comment(f"{CONFIG_NAME}: {schema['description']} {_HEAD}")
    parts = [_part(name, about, values) for name, about in schema["properties"].items()]
    tasks = [_comment(f"TO DO: {visible(text)}") for text in to_do]
    return "\n".join([head, *tasks, *parts])


def _part(name: str, about: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    meaning = _comment(about["description"])
    if values.get(name):
        return f"{meaning}{dump({name: values[name]})}"
    example = dump({name: about["examples"][0]})
    return f"{meaning}{textwrap.indent(example, '# ')}"


def _comment(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, _WIDTH - 2) + "\n", "# ")
