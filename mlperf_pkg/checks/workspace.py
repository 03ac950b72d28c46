"""Rules on raw logs in a workspace: their systems and submitter, and what is unknown of them."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from msgspec.structs import replace

from mlperf_pkg.checks.consistency import different_hyperparameters
from mlperf_pkg.checks.context import SetContext, SetOrigin
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.names import are_alike
from mlperf_pkg.config import CONFIG_NAME, Config, fields_of
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.plain_yaml import dump
from mlperf_pkg.infra.text import visible
from mlperf_pkg.published.model import known_division
from mlperf_pkg.results.report import common_folder, folder
from mlperf_pkg.results.wording import enumerated, shortened
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import DIVISIONS, Round
from mlperf_pkg.rulebook.rounds import where_instead
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission import membership
from mlperf_pkg.submission.model import Place, ResultSet

FOREIGN = "SET115"
"""The code of the finding that logs are of another organisation."""

_NAMED_LOGS = 3


def raw_sets(
    runs: Mapping[str, Run],
    systems: tuple[SystemFile, ...],
    config: Config,
    workspace: Place | None,
    *,
    as_open: bool = False,
) -> Iterator[SetContext]:
    """Group raw logs into result sets; the paths of ``runs`` start at the ``workspace``, if any.

    Logs without a benchmark are in no set. ``as_open`` is as in ``groups_of``.
    """
    systems_by_id = {system.id: system for system in systems}
    stated_runs = [stated(run, place) for place, run in runs.items()]
    described_systems = list(map(described, systems))
    groups = membership.groups_of(stated_runs, described_systems, config, as_open=as_open)
    for group in groups:
        context = _raw_set(group, tuple(runs[log.place] for log in group.logs), workspace)
        system = systems_by_id.get(group.system or "")
        if workspace:
            submitter = _submitter(config, system, systems)
            context = replace(context, submitter=submitter, origin=SetOrigin.WORKSPACE)
        yield replace(context, system=system, systems=systems, organizations=config.organizations)


def _raw_set(
    group: membership.LogGroup, runs: tuple[Run, ...], workspace: Place | None
) -> SetContext:
    """Return a result set of raw logs, without its system description."""
    first = group.first
    folder_name = common_folder([run.path for run in runs])
    files = ResultSet(
        Place(folder_name, folder_name),
        group.system or first.platform or None,
        first.benchmark,
        (),
        scaling_mode=first.scaling,
        tree=workspace,
    )
    return SetContext(
        files=files,
        runs=runs,
        round=load_round(first.usage, first.round),
        rules=load_benchmark(first.usage, first.round, first.benchmark),
        origin=SetOrigin.LOGS,
        group=group,
    )


def stated(run: Run, place: str) -> membership.Stated:
    """Return what a log says about its identity; ``place`` is its path from the workspace."""
    return membership.Stated(
        place=place,
        usage=run.usage,
        round=run.round,
        benchmark=run.benchmark,
        division=run.division,
        platform=run.text("platform"),
        organization=run.text("org"),
        nodes=run.nodes,
        accelerators=run.instance_scale,
        lines=run.lines,
    )


def described(system: SystemFile) -> membership.Described:
    """Return what a description says about its identity."""
    return membership.Described(
        id=system.id,
        name=system.system_name or "",
        division=known_division(system.division),
        nodes=system.nodes,
        accelerators=system.accelerators,
    )


def _submitter(
    config: Config, system: SystemFile | None, systems: Iterable[SystemFile]
) -> str | None:
    """Return the submitter: the configuration's, else the system's, else that of all systems."""
    if config.submitter:
        return config.submitter
    if system and system.submitter:
        return system.submitter
    submitters = {system.submitter for system in systems if system.submitter}
    return submitters.pop() if len(submitters) == 1 else None


def check_membership(context: SetContext) -> Iterator[Finding]:
    """Check that the runs are of one described system, and of the submitter."""
    group = context.group
    if group is None or not context.in_workspace:
        return
    if context.system is None:
        yield _unknown_system(context, group)
    if not context.submitter:
        return
    message = "submission_org is {found:s}; expected {expected}"
    hint = "move these logs away or, if they belong to the submitter, list this organisation"
    hint = f"{hint} under organizations in {CONFIG_NAME}"
    for run in context.runs:
        org = run.text("org")
        if not (membership.is_placeholder(org) or _is_own(org, context)):
            fields = {"found": org, "expected": context.submitter, "hint": hint}
            yield context.finding(FOREIGN, message, path=run.path, **fields)


def _unknown_system(context: SetContext, group: membership.LogGroup) -> Finding:
    """Return why the system of a set of raw logs is not known."""
    division = group.first.division or "unnamed"
    candidates = [system for system in context.systems if system.id in group.candidates]
    unread = [system.path for system in candidates or context.systems if system.contents is None]
    if unread:
        message = "the system is unknown, as {found:s} cannot be read"
        return context.finding("SET110", message, found=unread)
    for system in candidates:
        if known_division(system.division) != division:
            return _in_other_division(context, division, system)
    if candidates:
        message = f"the system may be {{found:s}}, judging by {group.why}; expected one system"
        hint = f"assign each log to one system in {CONFIG_NAME}"
        ids = [system.id for system in candidates]
        return context.finding("SET125", message, found=ids, hint=hint)
    return _undescribed(context, group, division)


def _undescribed(context: SetContext, group: membership.LogGroup, division: str) -> Finding:
    """Return the finding that no description fits the logs."""
    own: list[str] = []
    for system in context.systems:
        if known_division(system.division) == division:
            own.append(system.id)
    if own:
        message = "submission_platform {found} fits no system description"
        message = f"{message}; the {division} division has {{expected:s}}"
        hint = "describe the system with 'mlperf-pkg system init' or, if it is one of these, list"
        hint = f"{hint} the platform under it in {CONFIG_NAME}"
        platform = group.first.platform
        return context.finding("SET110", message, found=platform, expected=own, hint=hint)
    message = f"no system description of the {division} division; expected {{expected}}"
    expected = f'a file systems/<system>.json with "division": "{division}"'
    hint = "'mlperf-pkg system init' writes one"
    return context.finding("SET110", message, expected=expected, hint=hint)


def _in_other_division(context: SetContext, division: str, system: SystemFile) -> Finding:
    """Return the finding that the ``division`` of logs is not that of their system."""
    message = f"the division is {division} in the logs, but {system.division or 'missing'}"
    message = f"{message} in {visible(system.path)}"
    if known_division(system.division) not in DIVISIONS:
        return context.finding("SET111", message, hint=None)
    second = f"systems/{visible(system.id)}-{division}.json"
    hint = f"a description has one division: for both, write a second file, such as {second}"
    if division == "closed":
        hint = f"{hint}; 'mlperf-pkg build --as-open' submits closed runs as open"
    return context.finding("SET111", message, hint=hint)


def _is_own(org: str, context: SetContext) -> bool:
    patterns = (name.casefold() for name in context.organizations)
    is_listed = any(fnmatchcase(org.casefold(), pattern) for pattern in patterns)
    return is_listed or are_alike(org, context.submitter or "")


def check_folders(context: SetContext) -> Iterator[Finding]:
    """Warn about folders whose runs are one set, but do not look like one."""
    if context.group is None or len(context.group.folders) == 1:
        return
    reasons = _reasons_against_one_set(context)
    if reasons:
        counts = Counter(folder(run.path) or "." for run in context.runs)
        folders = [f"{name} ({number})" for name, number in sorted(counts.items())]
        message = f"{{found:s}} together have {enumerated(reasons)}; expected one result set"
        hint = "check each folder alone, or move runs of other experiments away"
        yield context.finding("SET126", message, found=folders, hint=hint)


def _reasons_against_one_set(context: SetContext) -> list[str]:
    reasons: list[str] = []
    number = len(context.runs)
    required = context.required_runs or number
    if number > required and not context.weak:
        reasons.append(f"{number} runs")
    batch_sizes = set(chain.from_iterable(run.batch_sizes for run in context.runs))
    if len(batch_sizes) > 1:
        reasons.append("different batch sizes")
    if different_hyperparameters(context.runs):
        reasons.append("different hyperparameters")
    return reasons


def unknown_code(config: Config, round_: Round, benchmarks: Collection[str]) -> Iterator[str]:
    """Yield the keys of ``code:`` that name neither a benchmark of the round nor one with runs."""
    for name in config.code.keys() - {*round_.benchmarks, *benchmarks}:
        place = f"round {round_.name}{where_instead(round_.usage, round_.name, name)}"
        yield f"{CONFIG_NAME}: code: {visible(name)} is not a benchmark of {place}"


# ---- the configuration to complete ----------------------------------------------------------


def proposed(config: Config, contexts: Iterable[SetContext]) -> str:
    """Return a whole ``mlperf-pkg.yaml`` to complete; empty if the raw logs leave nothing open.

    Comments and empty lists stand for what only the user knows.
    """
    open_sets = [context for context in contexts if context.in_workspace]
    foreign = _foreign_organizations(open_sets)
    systems, comments = systems_to_assign(config, open_sets)
    if not foreign and not comments:
        return ""
    fields = fields_of(config)
    benchmarks = {context.files.benchmark for context in open_sets}
    without_code = sorted(benchmarks - config.code.keys())
    fields["organizations"] = [*config.organizations, *foreign]
    fields["systems"] = systems
    fields["code"] |= {benchmark: f"code/{benchmark}" for benchmark in without_code}
    filled = {name: value for name, value in fields.items() if value}
    lines = [f"# {visible(comment)}\n" for comment in comments]
    return "".join([*lines, dump(filled)])


def _foreign_organizations(contexts: Iterable[SetContext]) -> list[str]:
    """Return the organisations in logs that are not known as names of the submitter, sorted."""
    foreign: set[str] = set()
    for context in contexts:
        for finding in check_membership(context):
            if finding.code == FOREIGN:
                foreign.add(finding.found)
    return sorted(foreign)


def systems_to_assign(
    config: Config, contexts: Iterable[SetContext]
) -> tuple[dict[str, dict[str, list[str]]], list[str]]:
    """Return ``systems:`` of a configuration with entries to fill in, and comments on these."""
    systems: dict[str, dict[str, list[str]]] = fields_of(config)["systems"]
    comments: list[str] = []
    for context in contexts:
        if context.system is None:
            comments.append(_to_assign(context, systems))
    return systems, list(dict.fromkeys(comments))


def _to_assign(context: SetContext, systems: dict[str, dict[str, list[str]]]) -> str:
    """Add the entries to fill in for logs whose system is unknown; return what to do."""
    logs = shortened([run.path for run in context.runs], _NAMED_LOGS)
    candidates = context.group.candidates if context.group else ()
    own: list[str] = []
    for system in context.systems:
        if known_division(system.division) == context.division:
            own.append(system.id)
    if not candidates:
        todo = _new_system(context, own, systems)
    elif {*own}.isdisjoint(candidates):
        name = f"{candidates[0]}-{context.division}"
        systems.setdefault(name, {}).setdefault("logs", [])
        todo = f"write systems/{name}.json and list patterns of their paths under {name}"
    else:
        for name in candidates:
            systems.setdefault(name, {}).setdefault("logs", [])
        todo = f"list patterns under {' or '.join(candidates)}"
    return f"systems: for the logs {logs}, {todo}"


def _new_system(
    context: SetContext, own: Sequence[str], systems: dict[str, dict[str, list[str]]]
) -> str:
    """Add an entry for the platform of logs that no description fits; return what to do.

    ``own`` are the systems of their division.
    """
    platform = context.runs[0].text("platform")
    name = re.sub(r"[^\w.+-]+", "-", platform).strip("-.") or "NAME"
    platforms = systems.setdefault(name, {}).setdefault("platforms", [])
    if platform and platform not in platforms:
        platforms.append(platform)
    todo = f"write systems/{name}.json"
    if own:
        todo = f"{todo}, or replace {name} with {' or '.join(own)}"
    return todo
