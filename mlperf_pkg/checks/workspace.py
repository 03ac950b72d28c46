"""Rules on raw logs in a workspace: their systems and submitter, and what is unknown of them."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

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
    by_id = {system.id: system for system in systems}
    logs = [stated(run, place) for place, run in runs.items()]
    for group in membership.groups_of(logs, list(map(described, systems)), config, as_open=as_open):
        first = group.first
        system = by_id.get(group.system or "")
        members = tuple(runs[log.place] for log in group.logs)
        parent = common_folder([r.path for r in members])
        name = group.system or first.platform
        place = Place(parent, parent)
        mode = first.scaling
        yield SetContext(
            files=ResultSet(
                place, name or None, first.benchmark, (), scaling_mode=mode, tree=workspace
            ),
            runs=members,
            round=load_round(first.usage, first.round),
            rules=load_benchmark(first.usage, first.round, first.benchmark),
            submitter=_submitter(config, system, systems) if workspace else None,
            system=system,
            systems=systems,
            origin=SetOrigin.WORKSPACE if workspace else SetOrigin.LOGS,
            group=group,
            organizations=config.organizations,
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
    named = config.submitter or (system.submitter if system else None)
    if named:
        return named
    submitters = {system.submitter for system in systems if system.submitter}
    return submitters.pop() if len(submitters) == 1 else None


def check_membership(context: SetContext) -> Iterator[Finding]:
    """Check that the runs are of one described system, and of the submitter."""
    group = context.group
    if group is None or not context.in_workspace:
        return
    if context.system is None:
        yield _unknown_system(context, group)
    message = "submission_org is {found:s}; expected {expected}"
    hint = "move these logs away or, if they belong to the submitter, list this organisation"
    fields = {"expected": context.submitter, "hint": f"{hint} under organizations in {CONFIG_NAME}"}
    for run in context.runs if context.submitter else ():
        org = run.text("org")
        if not (membership.is_placeholder(org) or _is_own(org, context)):
            yield context.finding(FOREIGN, message, path=run.path, found=org, **fields)


def _unknown_system(context: SetContext, group: membership.Group) -> Finding:
    division = group.first.division or "unnamed"
    systems = context.systems
    candidates = [system for system in systems if system.id in group.candidates]
    unread = [s.path for s in candidates or systems if s.contents is None]
    if unread:
        message = "the system is unknown, as {found:s} cannot be read"
        return context.finding("SET110", message, found=unread)
    others = [s for s in candidates if known_division(s.division) != division]
    if others:
        message, hint = _of_other_division(division, others[0])
        return context.finding("SET111", message, hint=hint)
    if candidates:
        message = f"the system may be {{found:s}}, judging by {group.why}; expected one system"
        hint = f"assign each log to one system in {CONFIG_NAME}"
        ids = [s.id for s in candidates]
        return context.finding("SET125", message, found=ids, hint=hint)
    own = [system.id for system in systems if known_division(system.division) == division]
    if own:
        message = "submission_platform {found} fits no system description"
        message = f"{message}; the {division} division has {{expected:s}}"
        hint = "describe the system with 'mlperf-pkg system init' or, if it is one of these, list"
        fields = {"found": group.first.platform, "expected": own}
        fields["hint"] = f"{hint} the platform under it in {CONFIG_NAME}"
        return context.finding("SET110", message, **fields)
    message = f"no system description of the {division} division; expected {{expected}}"
    expected = f'a file systems/<system>.json with "division": "{division}"'
    hint = "'mlperf-pkg system init' writes one"
    return context.finding("SET110", message, expected=expected, hint=hint)


def _of_other_division(division: str, system: SystemFile) -> tuple[str, str | None]:
    """Return a message and a hint about logs whose ``division`` is not that of their system."""
    described = f"{system.division or 'missing'} in {visible(system.path)}"
    message = f"the division is {division} in the logs, but {described}"
    if known_division(system.division) not in DIVISIONS:
        return message, None
    second = f"systems/{visible(system.id)}-{division}.json"
    hint = f"a description has one division: for both, write a second file, such as {second}"
    as_open = "; 'mlperf-pkg build --as-open' submits closed runs as open" * (division == "closed")
    return message, f"{hint}{as_open}"


def _is_own(org: str, context: SetContext) -> bool:
    patterns = (name.casefold() for name in context.organizations)
    is_listed = any(fnmatchcase(org.casefold(), pattern) for pattern in patterns)
    return is_listed or are_alike(org, context.submitter or "")


def check_folders(context: SetContext) -> Iterator[Finding]:
    """Warn about folders whose runs are one set, but do not look like one."""
    if context.group is None or len(context.group.folders) == 1:
        return
    reasons = []
    required = context.rules.runs.required if context.rules else len(context.runs)
    if len(context.runs) > required and not context.weak:
        reasons.append(f"{len(context.runs)} runs")
    if len({size for run in context.runs for size in run.batch_sizes}) > 1:
        reasons.append("different batch sizes")
    if different_hyperparameters(context.runs):
        reasons.append("different hyperparameters")
    if reasons:
        counts = Counter(folder(run.path) or "." for run in context.runs)
        folders = [f"{name} ({number})" for name, number in sorted(counts.items())]
        message = f"{{found:s}} together have {enumerated(reasons)}; expected one result set"
        hint = "check each folder alone, or move runs of other experiments away"
        yield context.finding("SET126", message, found=folders, hint=hint)


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
    foreign = {f.found for c in open_sets for f in check_membership(c) if f.code == FOREIGN}
    systems, comments = systems_to_assign(config, open_sets)
    if not foreign and not comments:
        return ""
    fields = fields_of(config)
    without = sorted({c.files.benchmark for c in open_sets} - config.code.keys())
    fields |= {
        "organizations": [*config.organizations, *sorted(foreign)],
        "systems": systems,
        "code": fields["code"] | {benchmark: f"code/{benchmark}" for benchmark in without},
    }
    lines = [f"# {visible(comment)}\n" for comment in comments]
    return "".join([*lines, dump({name: value for name, value in fields.items() if value})])


def systems_to_assign(
    config: Config, contexts: Iterable[SetContext]
) -> tuple[dict[str, dict[str, list[str]]], list[str]]:
    """Return ``systems:`` of a configuration with entries to fill in, and comments on these."""
    systems: dict[str, dict[str, list[str]]] = fields_of(config)["systems"]
    unknown = [context for context in contexts if context.system is None]
    return systems, list(dict.fromkeys(_to_assign(context, systems) for context in unknown))


def _to_assign(context: SetContext, systems: dict[str, dict[str, list[str]]]) -> str:
    """Add the entries to fill in for logs whose system is unknown; return what to do."""
    candidates = context.group.candidates if context.group else ()
    own = [s.id for s in context.systems if known_division(s.division) == context.division]
    logs = shortened([run.path for run in context.runs], _NAMED_LOGS)
    todo = f"list patterns under {' or '.join(candidates)}"
    if candidates and not {*own} & {*candidates}:
        candidates = (f"{candidates[0]}-{context.division}",)
        todo = f"write systems/{candidates[0]}.json and list patterns of their paths under"
        todo = f"{todo} {candidates[0]}"
    for name in candidates:
        systems.setdefault(name, {}).setdefault("logs", [])
    if not candidates:
        platform = context.runs[0].text("platform")
        name = re.sub(r"[^\w.+-]+", "-", platform).strip("-.") or "NAME"
        platforms = systems.setdefault(name, {}).setdefault("platforms", [])
        platforms += {platform} - {*platforms, ""}
        others = f", or replace {name} with {' or '.join(own)}" if own else ""
        todo = f"write systems/{name}.json{others}"
    return f"systems: for the logs {logs}, {todo}"
