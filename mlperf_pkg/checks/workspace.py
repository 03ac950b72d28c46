"""Rules on raw logs in a workspace: their systems and submitter, and what is unknown of them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from msgspec.structs import replace

from mlperf_pkg.checks.consistency import different_hyperparameters
from mlperf_pkg.checks.context import SetContext, SetOrigin
from mlperf_pkg.checks.descriptions import SystemFile, described_systems
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.findings import Finding
from mlperf_pkg.infra.text import did_you_mean, letters, nearest, visible
from mlperf_pkg.published.model import known_division
from mlperf_pkg.results.report import common_folder, folder
from mlperf_pkg.results.wording import counted, enumerated
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import DIVISIONS, Round
from mlperf_pkg.rulebook.rounds import where_instead
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission import membership
from mlperf_pkg.submission.model import SYSTEMS, Place, ResultSet

FOREIGN = "SET115"
"""The code of the finding that logs are of another organisation."""

_NUMBER = r"\d+"


def raw_sets(
    runs: Mapping[str, Run],
    systems: tuple[SystemFile, ...],
    config: Config,
    workspace: Place | None,
    *,
    as_open: bool = False,
    systems_folder: str = SYSTEMS,
) -> Iterator[SetContext]:
    """Group raw logs into result sets.

    The paths of ``runs`` and ``systems_folder`` start at the ``workspace``, if there is one.
    Logs without a benchmark are in no set. ``as_open`` is as in ``groups_of``.
    """
    systems_by_id = {system.id: system for system in systems}
    stated_runs = [stated(run, place) for place, run in runs.items()]
    all_systems = described_systems(systems, systems_folder)
    identities = list(map(described, systems))
    groups = membership.groups_of(stated_runs, identities, config, as_open=as_open)
    for group in groups:
        context = _raw_set(group, tuple(runs[log.place] for log in group.logs), workspace)
        system = systems_by_id.get(group.system or "")
        if workspace:
            submitter = _submitter(config, system, systems)
            context = replace(context, submitter=submitter, origin=SetOrigin.WORKSPACE)
        yield replace(
            context,
            system=system,
            systems=all_systems,
            organizations=config.organizations,
        )


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
        yield from _unknown_system(context, group)
    submitter = context.submitter
    if not submitter:
        return
    origin = _origin_of_submitter(context)
    message = f"submission_org is {{found:s}}; expected {{expected:,}}, the submitter in {origin}"
    for run in context.runs:
        org = run.text("org")
        if not (membership.is_placeholder(org) or _is_own(org, context)):
            hint = (
                f"if {org} is right, write it as the submitter in {origin}; if {submitter} is"
                f" right, list {org} under organizations in {CONFIG_NAME}; otherwise move these"
                " logs away"
            )
            yield context.finding(
                FOREIGN, message, path=run.path, found=org, expected=submitter, hint=hint
            )


def _origin_of_submitter(context: SetContext) -> str:
    """Return the file that names the submitter of a set of raw logs."""
    for system in filter(None, (context.system, *context.systems.every)):
        if system.submitter == context.submitter:
            return visible(system.path)
    return CONFIG_NAME


def _unknown_system(context: SetContext, group: membership.LogGroup) -> Iterator[Finding]:
    """Yield why the system of a set of raw logs is not known."""
    division = group.first.division or "unnamed"
    candidates = [system for system in context.systems.every if system.id in group.candidates]
    unread = [
        system.path for system in candidates or context.systems.every if system.contents is None
    ]
    others = [s for s in candidates if known_division(s.division) != division]
    if unread:
        message = "the system is unknown, as {found:s} cannot be read"
        yield context.finding("SET110", message, found=unread)
    elif others and group.of_other_division > len(group.logs):
        yield from _odd_division(context, group, others[0])
    elif others:
        yield _in_other_division(context, division, others[0])
    elif candidates:
        message = (
            f"it is unclear which system wrote these logs, because {{found:s}} fit {group.why} in"
            " the logs; expected only one system"
        )
        ids = [system.id for system in candidates]
        yield context.finding("SET125", message, found=ids)
    else:
        yield _undescribed(context, group, division)


def _undescribed(context: SetContext, group: membership.LogGroup, division: str) -> Finding:
    """Return the finding that no description fits the logs."""
    own = [s for s in context.systems.every if known_division(s.division) == division]
    platform = group.first.platform
    name = re.sub(r"[^\w.+-]+", "-", platform).strip("-.") or "NAME"
    systems_folder = visible(context.systems.folder)
    init = (
        f"'mlperf-pkg system init --division {division} -o {systems_folder}/{name}.json' in the"
        " workspace"
    )
    if own:
        message = (
            "submission_platform {found} fits no system description"
            f"; systems of the {division} division: {{expected:s}}"
        )
        remedy = _assignment(platform, [system.id for system in similar_systems(context)])
        hint = f"{remedy}; otherwise run {init}, on the system, to describe it"
        ids = [system.id for system in own]
        return context.finding("SET110", message, found=platform, expected=ids, hint=hint)
    expected = f'a file {systems_folder}/<system>.json with "division": "{division}"'
    others = [system.path for system in context.systems.every]
    if others:
        message = (
            f"submission_division is {division}, which is not the division in {{found:s}}"
            "; expected {expected}"
        )
        hint = (
            "if a description that exists is that of the system of the runs, write"
            f' "division": "{division}" in it; otherwise run {init}, on the system, to describe it'
        )
        return context.finding("SET110", message, found=others, expected=expected, hint=hint)
    message = f"there is no system description of the {division} division; expected {{expected}}"
    hint = f"to write the description, run {init}, on the system"
    return context.finding("SET110", message, expected=expected, hint=hint)


def _assignment(platform: str, similar: Sequence[str]) -> str:
    """Return how to assign the logs of a platform to a system; ``similar`` are the likely ones."""
    name = json.dumps(platform)
    if not similar:
        return (
            f"if {name} is one of these systems, list it under the platforms of that system in"
            f" {CONFIG_NAME}"
        )
    question = f"did you mean {' or '.join(similar)}?"
    section = f'the section "systems" of {CONFIG_NAME}'
    if len(similar) > 1:
        return f"{question} Then list these logs under the one that wrote them, in {section}"
    line = f"systems: {{{json.dumps(similar[0])}: {{platforms: [{name}]}}}}"
    return (
        f"{question} Then list {name} under the platforms of {similar[0]}, in {section}, or add the"
        f" line '{line}' if it has no such section"
    )


def may_be_of(log: membership.Stated, system: SystemFile) -> bool:
    """Return whether a log has the division of a system, and states no numbers but those of it."""
    is_of_division = known_division(system.division) == log.division
    return is_of_division and (log.states_nothing or log.fits(described(system)))


def similar_systems(context: SetContext) -> list[SystemFile]:
    """Return the systems whose names are almost the platform of raw logs of an unknown one.

    If several names contain the platform, such as one for each framework, these are all of their
    systems; otherwise those with the nearest name. All numbers in the names are the same: an H200
    is not an H100. If some systems fit the evidence, only these are considered.
    """
    group = context.group
    if group is None or not group.first.names_platform:
        return []
    platform = group.first.platforms[1]
    if not letters(platform):
        return []
    numbers = re.findall(_NUMBER, platform)
    systems: dict[str, list[SystemFile]] = {}  # by name
    for system in context.systems.every:
        if group.candidates and system.id not in group.candidates:
            continue
        if not may_be_of(group.first, system):
            continue
        for name in filter(None, (system.system_name, system.id)):
            if re.findall(_NUMBER, name) == numbers:
                systems.setdefault(name, []).append(system)
    containing = _of_names(systems, lambda name: letters(platform) in letters(name))
    if len(containing) > 1:
        return containing
    similar = nearest(platform, systems)
    if similar is None:
        return []
    return _of_names(systems, lambda name: letters(name) == letters(similar))


def _of_names(
    systems: Mapping[str, Iterable[SystemFile]], accepts: Callable[[str], bool]
) -> list[SystemFile]:
    """Return the systems that have a name that is accepted, by id."""
    by_id = {}
    for name, systems_of_name in systems.items():
        if accepts(name):
            for system in systems_of_name:
                by_id[system.id] = system
    return [system for _, system in sorted(by_id.items())]


def _in_other_division(context: SetContext, division: str, system: SystemFile) -> Finding:
    """Return the finding that the ``division`` of logs is not that of their system."""
    message = (
        f"the division is {division} in the logs (submission_division), but"
        f" {system.division or 'missing'} in {visible(system.path)}"
    )
    if known_division(system.division) not in DIVISIONS:
        return context.finding("SET111", message, hint=None)
    line = f'"division": "{division}"'
    hint = (
        f"if the description is wrong, write {line} in it; to submit in both divisions, write a"
        f" copy of it with {line} beside it, as {visible(system.id)}-{division}.json"
    )
    if division == "closed":
        hint = f"{hint}; to submit closed runs as open, use 'mlperf-pkg build --as-open'"
    return context.finding("SET111", message, hint=hint)


def _odd_division(
    context: SetContext, group: membership.LogGroup, system: SystemFile
) -> Iterator[Finding]:
    """Yield the logs whose division is neither that of their system nor that of most logs."""
    number = counted(group.of_other_division, "other log")
    message = (
        f"submission_division is {{found:s}}; expected {{expected}}, as in {number} and in"
        f" {visible(system.path)}"
    )
    hint = (
        "if submission_division is wrong, correct it in the code of the run and run again; if the"
        " log is of another submission, move it away"
    )
    fields = {"found": group.first.division, "expected": system.division, "hint": hint}
    for run in context.runs:
        yield context.finding("SET111", message, path=run.path, **fields)


def _is_own(org: str, context: SetContext) -> bool:
    patterns = (name.casefold() for name in context.organizations)
    is_listed = any(fnmatchcase(org.casefold(), pattern) for pattern in patterns)
    return is_listed or context.is_submitted_by(org)


def check_folders(context: SetContext) -> Iterator[Finding]:
    """Warn about folders whose runs are one set, but do not look like one."""
    if context.group is None or len(context.group.folders) == 1:
        return
    reasons = _reasons_against_one_set(context)
    if reasons:
        counts = Counter(folder(run.path) or "." for run in context.runs)
        folders = [f"{name} ({counted(number, 'run')})" for name, number in sorted(counts.items())]
        message = (
            f"the folders {{found:s}} together have {enumerated([*reasons])}; expected"
            f" {enumerated([*reasons.values()])} in a result set"
        )
        yield context.finding("SET126", message, found=folders)


def _reasons_against_one_set(context: SetContext) -> dict[str, str]:
    """Map what the runs have to what those of one result set have."""
    reasons: dict[str, str] = {}
    number = len(context.runs)
    required = context.required_runs or number
    if number > required and not context.weak:
        reasons[f"{number} runs"] = counted(required, "run")
    batch_sizes = set(chain.from_iterable(run.batch_sizes for run in context.runs))
    if len(batch_sizes) > 1:
        reasons["different batch sizes"] = "one batch size"
    if different_hyperparameters(context.runs):
        reasons["different hyperparameters"] = "equal hyperparameters"
    return reasons


def undescribed_systems(config: Config, systems: Iterable[SystemFile]) -> Iterator[str]:
    """Yield the keys of ``systems:`` that are not the id of a description."""
    ids = {system.id for system in systems}
    for name in sorted(config.systems.keys() - ids):
        similar = did_you_mean(name, ids)
        yield f'under "systems:", the key "{name}" is not the name of a system description{similar}'


def unmatched_patterns(config: Config, logs: Collection[membership.Stated]) -> Iterator[str]:
    """Yield the patterns under ``systems:`` that match none of the logs."""
    for name, system in config.systems.items():
        for kind, word in (("logs", "no log"), ("platforms", "the submission_platform of no log")):
            for pattern in getattr(system, kind):
                if not any(membership.matches(log, kind, pattern) for log in logs):
                    yield f"the pattern {pattern!r} for the {kind} of {name} matches {word}"


def unknown_code(config: Config, round_: Round, benchmarks: Collection[str]) -> Iterator[str]:
    """Yield the keys of ``code:`` that name neither a benchmark of the round nor one with runs."""
    for name in config.code.keys() - {*round_.benchmarks, *benchmarks}:
        place = f"round {round_.name}{where_instead(round_.usage, round_.name, name)}"
        yield f"{CONFIG_NAME}: code names {visible(name)}, which is not a benchmark of {place}"
