"""The ``mlperf-pkg.yaml`` that raw logs of an unknown system need: which logs are of which one."""

from collections.abc import Container, Iterable, Sequence
from itertools import chain

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.workspace import described, similar_system
from mlperf_pkg.config import Config, fields_of
from mlperf_pkg.infra.plain_yaml import dump
from mlperf_pkg.infra.text import visible
from mlperf_pkg.published.model import known_division
from mlperf_pkg.results.wording import counted
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
    by_key: dict[str, list[SetContext]] = {}
    comments: list[str] = []
    for context in raw_sets:
        key = context.system.id if context.system else ""
        choices = [] if context.system else _possible_systems(context, claimed)
        if choices:
            key = _similar(context, choices) or _choice(context, choices)
            comments.append(_comment(context, choices, key))
        by_key.setdefault(key, []).append(context)
    systems: Systems = fields_of(config)["systems"]
    for key, of_key in by_key.items():
        others = chain.from_iterable(by_key[other] for other in by_key if other != key)
        other_logs = list(chain.from_iterable(map(_logs, others)))
        for context in of_key:
            if key and context.system is None:
                _add(_logs(context), other_logs, systems.setdefault(key, {}))
    return systems, list(dict.fromkeys(comments))


def _logs(context: SetContext) -> tuple[membership.Stated, ...]:
    return context.group.logs if context.group else ()


def _possible_systems(context: SetContext, claimed: Container[str]) -> list[SystemFile]:
    """Return the systems of which the logs of an unknown one may be.

    These are the candidates of the evidence or, without any, those that no logs have ``claimed``;
    all are of the division of the logs, and none contradicts their numbers.
    """
    group = context.group
    if group is None:
        return []
    own = [system for system in context.systems if _may_be(system, group.first)]
    if group.candidates:
        return [system for system in own if system.id in group.candidates]
    return [system for system in own if system.id not in claimed]


def _may_be(system: SystemFile, log: membership.Stated) -> bool:
    is_of_division = known_division(system.division) == log.division
    return is_of_division and (log.states_nothing or log.fits(described(system)))


def _similar(context: SetContext, choices: Iterable[SystemFile]) -> str | None:
    return similar_system(choices, context.group.first) if context.group else None


def _choice(context: SetContext, choices: Sequence[SystemFile]) -> str:
    """Return a key in words that names what to choose from."""
    names = [system.id for system in choices]
    if len(names) == 1:
        names.append("another")
    elif len(names) > _MOST_IN_KEY:
        names = ["SYSTEM"]
    return f"{' or '.join(names)} for {_platform(context) or context.files.benchmark}"


def _platform(context: SetContext) -> str:
    return context.group.first.platform if context.group else ""


def _comment(context: SetContext, choices: Sequence[SystemFile], key: str) -> str:
    logs = f"{counted(len(context.runs), 'log')} of {context.files.benchmark}"
    if _platform(context):
        logs = f'{logs}, submission_platform "{_platform(context)}"'
    ids = [system.id for system in choices]
    if key in ids:
        return f"{logs}: are they of {key}? If not, remove it, and describe their system"
    return f'{logs}: replace "{key}" with the id of their system, such as {", ".join(ids)}'


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
    known = entry.setdefault(field, [])
    known += [pattern for pattern in patterns if pattern not in known]
