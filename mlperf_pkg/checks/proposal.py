"""The ``mlperf-pkg.yaml`` that raw logs of an unknown system need: which logs are of which one."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.workspace import may_be_of, similar_systems
from mlperf_pkg.config import Config, fields_of
from mlperf_pkg.infra.plain_yaml import dump
from mlperf_pkg.infra.text import unused, visible
from mlperf_pkg.submission import membership

_MOST_IN_KEY = 3  # systems that a key to be completed names

Systems = dict[str, dict[str, list[str]]]
"""``systems:`` of a configuration: patterns of paths and platforms by the id of a system."""


def proposed(config: Config, contexts: Iterable[SetContext]) -> str:
    """Return a whole ``mlperf-pkg.yaml`` to complete; empty if the raw logs leave nothing open."""
    systems, comments = systems_to_assign(config, contexts)
    if not comments:
        return ""
    fields = {**fields_of(config), "systems": systems}
    filled = {name: value for name, value in fields.items() if value}
    lines = [f"# {visible(comment)}\n" for comment in comments]
    return "".join([*lines, dump(filled)])


def systems_to_assign(config: Config, contexts: Iterable[SetContext]) -> tuple[Systems, list[str]]:
    """Return ``systems:`` of a configuration with the logs of unknown systems, and comments.

    ``contexts`` are all raw logs. Unless the name of one system is almost the platform, the key is
    not the id of a system but says which to choose from, so that no command takes it for a choice.
    """
    raw_sets = [context for context in contexts if context.in_workspace]
    claimed = {context.system.id for context in raw_sets if context.system}
    assigned: dict[str, list[membership.Stated]] = {}  # the logs by key
    unassigned: dict[str, list[membership.Stated]] = {}  # those of unknown systems
    comments: list[str] = []
    for context in raw_sets:
        logs = context.group.logs if context.group else ()
        if context.system:
            assigned.setdefault(context.system.id, []).extend(logs)
            continue
        likely_systems = similar_systems(context)
        choices = likely_systems or _possible_systems(context, claimed)
        similar = likely_systems[0].id if len(likely_systems) == 1 else None
        if similar:
            unassigned.setdefault(similar, []).extend(logs)
        elif choices:
            unassigned |= _parts(context, choices)
        else:
            assigned.setdefault("", []).extend(logs)
        if choices:
            comments.append(_comment(context, choices, similar))
    systems: Systems = fields_of(config)["systems"]
    for key, logs_of_key in unassigned.items():
        others = [*_of_others(key, assigned), *_of_others(key, unassigned)]
        _add(logs_of_key, others, systems.setdefault(key, {}))
    return systems, list(dict.fromkeys(comments))


def _of_others(
    key: str, logs: Mapping[str, Sequence[membership.Stated]]
) -> Iterator[membership.Stated]:
    """Yield the logs under other keys."""
    for other, logs_of_other in logs.items():
        if other != key:
            yield from logs_of_other


def _parts(
    context: SetContext, choices: Sequence[SystemFile]
) -> dict[str, list[membership.Stated]]:
    """Return the logs of a set by the key under which they stand.

    More runs than a set needs may be of several systems: those of each configuration stand apart.
    """
    key = _choice(context, choices)
    logs = context.group.logs if context.group else ()
    has_repeats = len(logs) > len(context.runs)
    if has_repeats or len(logs) <= (context.required_runs or len(logs)):
        return {key: list(logs)}
    parts: dict[tuple[object, ...], list[membership.Stated]] = {}
    sizes: dict[tuple[object, ...], str] = {}
    for log, run in zip(logs, context.runs, strict=True):
        settings: tuple[object, ...] = (run.batch_sizes, *sorted(run.hyperparameters.items()))
        parts.setdefault(settings, []).append(log)
        sizes[settings] = f"batch size {', '.join(run.batch_sizes)}"
    by_key: dict[str, list[membership.Stated]] = {}
    for settings, of_part in parts.items():
        name = unused(f"{key}, {sizes[settings]}", by_key, ", configuration ")
        by_key[name] = of_part
    return by_key


def _possible_systems(context: SetContext, claimed: Container[str]) -> list[SystemFile]:
    """Return the systems of which the logs of an unknown one may be.

    These are the candidates of the evidence or, without any, those that no logs have ``claimed``;
    all are of the division of the logs, and none contradicts their numbers.
    """
    group = context.group
    if group is None:
        return []
    own = [system for system in context.systems.every if may_be_of(group.first, system)]
    if group.candidates:
        return [system for system in own if system.id in group.candidates]
    return [system for system in own if system.id not in claimed]


def _choice(context: SetContext, choices: Sequence[SystemFile]) -> str:
    """Return a key in words that names what to choose from.

    Each result set has its own, as systems often differ in the framework of a benchmark.
    """
    names = [system.id for system in choices]
    if len(names) == 1:
        names.append("another")
    elif len(names) > _MOST_IN_KEY:
        names = ["SYSTEM"]
    place = f" on {_platform(context)}" if _platform(context) else ""
    return f"{' or '.join(names)} for {context.files.benchmark}{place}"


def _platform(context: SetContext) -> str:
    return context.group.first.platform if context.group else ""


def _comment(context: SetContext, choices: Iterable[SystemFile], similar: str | None) -> str:
    if similar:
        platform = f'"{_platform(context)}"'
        return f"is {platform} {similar}? If not, remove these lines and describe their system"
    ids = ", ".join(system.id for system in choices)
    return f"put one of {ids} in place of this key; all lists of one system belong under one key"


def _add(
    logs: Sequence[membership.Stated],
    others: Sequence[membership.Stated],
    entry: dict[str, list[str]],
) -> None:
    """Add logs to the entry of a system: their platforms if no ``others`` have these."""
    field = "platforms"
    patterns = list(dict.fromkeys(log.platform for log in logs))
    is_shared = any(membership.matches(log, field, name) for log in others for name in patterns)
    if is_shared or not all(log.names_platform for log in logs):
        field = "logs"
        places = [log.place for log in logs]
        patterns = list(membership.log_patterns(places, [log.place for log in others]))
    patterns_of_system = entry.setdefault(field, [])
    patterns_of_system += [name for name in patterns if name not in patterns_of_system]
