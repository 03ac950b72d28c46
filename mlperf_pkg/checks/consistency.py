"""Rules on what the runs of a set claim: different runs of one configuration on one system."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise, product, starmap
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, logged_statuses, names_of
from mlperf_pkg.checks.names import of_two_alphabets
from mlperf_pkg.findings import NOTE, Basis, Finding, Severity
from mlperf_pkg.infra.text import letters
from mlperf_pkg.log.record import shown
from mlperf_pkg.published.model import equal_values, known_division
from mlperf_pkg.results.report import common_folder
from mlperf_pkg.results.wording import counted, shortened
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import as_count
from mlperf_pkg.run.relations import SERIES, RunRelation, related_pairs
from mlperf_pkg.submission.membership import is_placeholder
from mlperf_pkg.submission.submitters import SubmitterNames, is_same_submitter

_MOST_NAMED = 3  # odd runs of a set

# ---- copies of one run, whatever was edited in them, and repetitions of a training --------


def check_twins(context: SetContext) -> Iterator[Finding]:
    """Check that no run is submitted twice, and note a training that was repeated."""
    runs = context.runs
    twins: set[tuple[int, bool]] = set()
    for original, index, relation in sorted(related_pairs(runs)):
        if (index, relation.is_one_run) in twins:
            continue
        twins.add((index, relation.is_one_run))
        if relation.is_one_run:
            message = f"{_SAME[relation]} {{found:s}}: {evidence(runs[index], runs[original])}"
            yield context.finding(
                "SET112", message, path=runs[index].path, found=runs[original].path
            )
        else:
            yield repetition(context, runs[index], runs[original])


_SAME = {
    RunRelation.COPY: "this log is a copy of",
    RunRelation.PROCESSES: "another process of this run wrote",
}


def evidence(run: Run, other: Run) -> str:
    """Return what shows that two logs are of one run."""
    if run.fingerprint is not None and run.fingerprint == other.fingerprint:
        return "every evaluation has the same value and time in both"
    equal: list[str] = []
    for name, plural in zip(SERIES, ("evaluations", "losses"), strict=True):
        number = equal_values(getattr(run, name), getattr(other, name))
        if number:
            equal.append(f"{number} of {number} {plural}")
    return f"{' and '.join(equal)} agree to within 1e-5, at the same times"


def repetition(context: SetContext, run: Run, other: Run) -> Finding:
    """Return the finding on a run of a set that repeats the values of another one.

    With the same seed, a deterministic training does; with another seed, it should not.
    """
    seeds = {seed.value for seed in run.seeds}
    other_seeds = {seed.value for seed in other.seeds}
    message = (
        "the evaluations or losses of this run have the same values as in {found:s}, at other times"
    )
    fields = {"path": run.path, "found": other.path}
    if seeds and other_seeds and seeds.isdisjoint(other_seeds):
        message = f"{message} and with another seed, so the seed has no effect"
        return context.finding("SEED108", message, **fields)
    reason = "the same seed" if seeds else "no seed"
    return context.finding("SEED107", f"{message} and with {reason}", **fields)


# ---- one configuration --------------------------------------------------------------------


def check_overlap(context: SetContext) -> Iterator[Finding]:
    """Note runs at the same time on one system, which are common in published sets."""
    times: list[tuple[float, float]] = []
    for run in context.runs:
        if run.start_ms and run.stop_ms:
            times.append((run.start_ms, run.stop_ms))
    times.sort()
    overlaps = 0
    for (_, previous_stop), (start, _) in pairwise(times):
        if start < previous_stop:
            overlaps += 1
    if overlaps:
        message = "{found:s} of the set started before the previous run had ended; expected none"
        hint = WEAK_SCALING if may_be_weak(context) else None
        yield context.finding("SET113", message, found=counted(overlaps, "run"), hint=hint)


WEAK_SCALING = "if this is weak scaling, put the logs that overlap under logs/weak/"


def may_be_weak(context: SetContext) -> bool:
    """Return whether raw logs are of HPC, but not in a folder for strong or weak scaling."""
    is_raw = context.group is not None
    return is_raw and context.round.usage == "hpc" and not context.weak


_ONE_VALUE = "all runs of a result must use the same"


def check_batch_size(context: SetContext) -> Iterator[Finding]:
    """Check that all runs have one batch size, and that the RCP checker reads that one."""
    by_size: dict[str, list[str]] = {}
    for run in _not_killed(context):
        for size in run.batch_sizes:
            by_size.setdefault(size, []).append(run.path)
    if len(by_size) > 1:
        message = f"the runs use different batch sizes: {{found:s}}; {_ONE_VALUE}"
        sizes = _with_their_runs(by_size)
        yield context.finding("SET108", message, found=sizes, expected="one global_batch_size")
    message = (
        "the RCP checker reads the batch size {found:s} from another record that contains"
        " the string global_batch_size; expected {expected}"
    )
    for run in context.runs:
        text = as_count(run.convergence.batch_size)
        logged = run.batch_sizes
        if logged and text not in logged and not run.convergence.crash:
            yield context.finding("RCP104", message, path=run.path, found=text, expected=logged[0])


def check_configuration(context: SetContext) -> Iterator[Finding]:
    """Check that all runs are of one platform and have the same hyperparameters."""
    runs = _not_killed(context)
    spellings: dict[str, str] = {}
    by_platform: dict[str, list[str]] = {}
    for run in runs:
        platform = run.text("platform")
        if platform and not is_placeholder(platform):
            spelling = spellings.setdefault(letters(platform), platform)
            by_platform.setdefault(spelling, []).append(run.path)
    if len(by_platform) > 1:
        message = (
            "the runs name different platforms: {found:s}; expected one submission_platform in all"
            " runs"
        )
        fields = {"found": _with_their_runs(by_platform), "expected": "one submission_platform"}
        hint = _where_they_belong(context, by_platform)
        yield context.finding("SET121", message, **fields, hint=hint)
    differences = different_hyperparameters(runs)
    if differences:
        message = f"the runs use different values of {{found:s}}; {_ONE_VALUE}"
        weight = NOTE if all(map(_is_warmup, differences)) else {}
        fields = {"found": differences, "expected": "one value of each"}
        yield context.finding("SET122", message, **fields, **weight)


def _is_warmup(difference: str) -> bool:
    """Return whether a difference is in the steps of the warm-up, of which runs may have others."""
    return difference.partition(" ")[0].endswith("warmup_steps")


def _with_their_runs(by_value: Mapping[str, Sequence[str]]) -> list[str]:
    """Return values with the runs that have them, given by their paths: the odd ones by name."""
    folder = common_folder(chain.from_iterable(by_value.values()))
    most, *odd = sorted(by_value, key=lambda value: (-len(by_value[value]), value))
    described = [f"{most} ({counted(len(by_value[most]), 'run')})"]
    for value in odd:
        names = [path.removeprefix(f"{folder}/") for path in by_value[value]]
        described.append(f"{value} ({shortened(names, _MOST_NAMED)})")
    return described


def _where_they_belong(context: SetContext, platforms: Iterable[str]) -> str:
    """Return what to do with runs of other platforms than that of the system of their set."""
    for platform in platforms:
        other = _other_system(context, context.system, platform) if context.system else None
        if other and other.is_name:
            id_ = PurePosixPath(other.path).stem
            folder = f"logs/{id_}/"
            if context.origin.has_folder:
                folder = f"results/{id_}/{context.files.benchmark}/"
            return f"{platform} is described in {other.path}: move its logs to {folder}"
    return (
        "if these are different systems, move the logs of each system to a result set of its own;"
        " if a name is only misspelled, ask the reviewers to accept the logs as they are"
    )


def check_code(context: SetContext) -> Iterator[Finding]:
    """Note runs that log their seeds from different lines, as their code may differ."""
    numbers = Counter(map(_places_of_seeds, context.runs))
    del numbers[frozenset()]  # runs without a seed
    if len(numbers) > 1:
        short = short_paths(file for places in numbers for file, _ in places)
        lines: list[str] = []
        for places, number in numbers.most_common():
            names = ", ".join(sorted(f"{short[file]}:{line}" for file, line in places))
            lines.append(f"{names} ({counted(number, 'run')})")
        message = "in different runs, different lines of code log the seeds: {found:s}"
        if len({_without_folders(places) for places in numbers}) == 1:
            message = (
                "in different runs, the code that logs the seeds is in different folders: {found:s}"
            )
        yield context.finding("SET127", message, found=lines)


def _without_folders(places: Iterable[tuple[Any, Any]]) -> frozenset[tuple[str, Any]]:
    return frozenset([(PurePosixPath(str(file)).name, line) for file, line in places])


def short_paths(files: Iterable[Any]) -> dict[Any, str]:
    """Return the paths of files, with dots for the folders at both ends that all of them share."""
    paths = {file: str(file) for file in files}
    start = common_folder(paths.values())
    end = common_folder(path[::-1] for path in paths.values())[::-1]
    folders, _, name = end.rpartition("/")
    for file, path in paths.items():
        different = path.removeprefix(start)
        if folders and different.endswith(end):
            different = f"{different.removesuffix(end)}.../{name}"
        paths[file] = f"...{different}" if start else different
    return paths


def _places_of_seeds(run: Run) -> frozenset[tuple[Any, Any]]:
    """Return the files and lines that log the seeds of a run."""
    return frozenset([(seed.file, seed.lineno) for seed in run.seeds])


def _not_killed(context: SetContext) -> list[Run]:
    """Return the runs that were not killed; the settings of a killed run do not count."""
    return [run for run in context.runs if not run.killed]


def different_hyperparameters(runs: Sequence[Run]) -> list[str]:
    """Return the hyperparameters of which several runs log different values, with these.

    Those of different benchmarks are not compared, nor those of which a value breaks a rule.
    """
    if all(run.hyperparameters == runs[0].hyperparameters for run in runs):
        return []
    if len({run.benchmark for run in runs} - {""}) > 1:
        return []
    values: dict[str, set[str]] = {}
    for run in runs:
        for key, value in run.hyperparameters.items():
            values.setdefault(key, set()).add(value)
    broken = broken_keys(runs)
    different: list[str] = []
    for key, texts in values.items():
        if len(texts) > 1 and key not in broken:
            different.append(f"{key} ({', '.join(_by_size(texts))})")
    return different


def _by_size(numbers: set[str]) -> list[str]:
    """Return numbers by size, as far as their texts show it."""
    return sorted(numbers, key=lambda text: (len(text.partition(".")[0]), text))


def broken_keys(runs: Sequence[Run]) -> set[str]:
    """Return the keys whose values break a rule, as the first words of messages."""
    keys: set[str] = set()
    for run in runs:
        for finding in run.findings:
            if finding.fails(Basis.RULES):
                keys.add(finding.message.partition(" ")[0])
    return keys


def check_names(context: SetContext) -> Iterator[Finding]:
    """Check the organisation and the platform that the logs name."""
    organisations = Counter(run.text("org") for run in context.runs)
    platforms = {run.text("platform") for run in context.runs}
    placeholders: list[str] = []
    if any(map(is_placeholder, organisations)):
        placeholders.append("submission_org")
    if any(map(is_placeholder, platforms)):
        placeholders.append("submission_platform")
    if placeholders:
        keys = " and in ".join(placeholders)
        yield context.finding("SET114", f"the logs have a placeholder in {keys}; expected a name")
    for name in list(organisations):
        if not name or is_placeholder(name):
            del organisations[name]
    if organisations and not context.in_workspace:
        yield from _check_organisations(context, organisations)
    yield from _check_letters(context, "submission_org", organisations)
    yield from _check_letters(context, "submission_platform", platforms)


def _check_letters(context: SetContext, key: str, names: Iterable[str]) -> Iterator[Finding]:
    """Check that each name is in one alphabet."""
    for name in sorted(names):
        message = of_two_alphabets(key, name)
        if message:
            yield context.finding("SET128", message, found=name)


def _check_organisations(context: SetContext, organisations: Counter[str]) -> Iterator[Finding]:
    """Check that the logs name the submitter, or else one organisation."""
    expected = context.submitter or organisations.most_common(1)[0][0]
    names = list(map(SubmitterNames, organisations))
    if context.submitter:
        others = sorted(org for org in organisations if not context.is_submitted_by(org))
    else:
        usual = SubmitterNames(expected)
        others = sorted(name.folder for name in names if not is_same_submitter(name, usual))
    if others:
        is_one = all(starmap(is_same_submitter, combinations(names, 2)))
        weight = NOTE if is_one else {"severity": Severity.WARNING}
        where = "the name of the submission folder" if context.submitter else "as in most runs"
        message = f"submission_org is {{found:q}}; expected {{expected:,}}, {where}"
        yield context.finding("SET115", message, found=others, expected=expected, **weight)


# ---- the system that its description describes --------------------------------------------

_CLAIMS = {"research": 0, "preview": 1, "cloud": 2, "onprem": 2}  # how much a status promises
_DEFAULT_STATUS = "onprem"  # of the reference implementations, and so in many logs
_COUNT = re.compile(r"(\d{1,9}) ?x ?")  # of nodes, before the name of a platform
_MIN_LETTERS = 4  # of an abbreviation


def check_status(context: SetContext) -> Iterator[Finding]:
    """Compare the availability that the logs name with that of the description.

    The results table shows that of the description, so it may promise less than the logs.
    """
    system = context.system
    if system is None:
        return
    expected = logged_statuses(system.status or "")
    if not expected:
        return
    message = f"submission_status is {{found}}; expected {{expected:,}}, as in {system.path}"
    if (system.status or "").strip().lower() not in expected:  # logs have a word of their own
        message = (
            f"submission_status is {{found}}; expected {' or '.join(map(shown, expected))}"
            f", as the status in {system.path} is {{expected:,}}"
        )
    for run in context.runs:
        status = run.text("status")
        if status in _CLAIMS and status not in expected:
            more = _CLAIMS[expected[0]] - _CLAIMS[status]  # that the description promises
            is_doubtful = more < 0 or (more == 0 and status == _DEFAULT_STATUS)
            weight = NOTE if is_doubtful else {}
            yield context.finding(
                "SET140", message, path=run.path, found=status, expected=system.status, **weight
            )


class _NamedSystem(Struct, frozen=True):
    """The path of another system that a platform names.

    ``is_name`` if the platform is its name, else it is part of the name. ``is_own_part`` if it is
    part of the name of the expected system, too.
    """

    path: str
    is_name: bool
    is_own_part: bool


def check_platform(context: SetContext) -> Iterator[Finding]:
    """Check that the logs do not name another system of the submission."""
    system = context.system
    if system is None:
        return
    others: dict[str, _NamedSystem | None] = {}
    for run in context.runs:
        platform = run.text("platform")
        if not platform or is_placeholder(platform):
            continue
        if platform not in others:
            others[platform] = _other_system(context, system, platform)
        other = others[platform]
        if other:
            name = "the name" if other.is_name else "part of the name"
            message = (
                f"submission_platform is {{found}}, which is {name} of another system"
                f" ({other.path}); expected {{expected:,}}"
            )
            weight = {} if other.is_name and not other.is_own_part else NOTE
            yield context.finding(
                "SET141", message, path=run.path, found=platform, expected=system.id, **weight
            )


def _other_system(context: SetContext, system: SystemFile, platform: str) -> _NamedSystem | None:
    """Return another system that a platform names, or a part of whose name it is.

    A number before the platform is that of its nodes, or of its accelerators.
    """
    number, name = _number_and_name(platform)
    names = {letters(platform), letters(name)} - {""}
    own_names = names_of(system)
    if not names.isdisjoint(own_names):
        return None
    if not any(name in context.systems.names for name in names):
        return None
    is_own_part = _is_part(names, own_names)
    if is_own_part and number and _may_have(system, number):
        return None
    for other in context.systems.every:
        other_names = names_of(other)
        is_name = not names.isdisjoint(other_names - own_names)
        is_part = not is_own_part and _is_part(names, other_names) and _may_have(other, number)
        if is_name or is_part:
            return _NamedSystem(other.path, is_name, is_own_part)
    return None


def _number_and_name(platform: str) -> tuple[int | None, str]:
    """Return the number before the name of a platform, if any, and the name."""
    count = _COUNT.match(platform)
    if count is None:
        return None, platform
    return int(count[1]), platform[count.end() :]


def _may_have(system: SystemFile, number: int | None) -> bool:
    """Return whether a system may have this number of nodes or accelerators, None for any."""
    return None in (number, system.nodes) or number in (system.nodes, system.accelerators)


def _is_part(names: set[str], of: set[str]) -> bool:
    long_names = [name for name in names if len(name) >= _MIN_LETTERS]
    return any(name in other for name, other in product(long_names, of))


def check_nodes(context: SetContext) -> Iterator[Finding]:
    """Compare the numbers of nodes and of accelerators per node in HPC logs with the description.

    A log of weak scaling is of one model, on a part of the system. Raw logs may have been assigned
    to the wrong system, so the number before their platform is compared, too.
    """
    system = context.system
    if system is None or system.nodes is None or system.nodes == 0:
        return
    counts = _counts_of_others(context, system)
    per_node = system.accelerators and system.accelerators // system.nodes
    for run in context.runs:
        mismatch = _wrong_nodes(context, system, run, counts)
        if mismatch is None:
            mismatch = _wrong_accelerators(context, run, per_node)
        if mismatch is not None:
            is_same_scale = run.instance_scale == (system.accelerators or system.nodes)
            weight = NOTE if is_same_scale else {}
            message = (
                f"{mismatch.key} {{found}} in the log; expected {{expected}}, as in {system.path}"
            )
            yield context.finding(
                "SET142",
                message,
                path=run.path,
                found=mismatch.found,
                expected=mismatch.expected,
                hint=mismatch.hint,
                **weight,
            )


class _Mismatch(Struct, frozen=True):
    """A number of a log that is not that of the description; ``key`` says what is counted."""

    key: str
    found: int | None
    expected: int | None
    hint: str | None = None


def _wrong_nodes(
    context: SetContext, system: SystemFile, run: Run, counts: Mapping[str, int]
) -> _Mismatch | None:
    """Compare the nodes; ``counts`` are the numbers before platforms, where logs have none."""
    number = run.nodes
    if number is None or context.weak:  # of one model
        number = counts.get(run.text("platform"), number)
    if not _disagrees(context, number, system.nodes):
        return None
    key = "number_of_nodes is"
    if number != run.nodes:
        key = "the number at the beginning of submission_platform is"
    return _Mismatch(key, number, system.nodes, _fitting(context, number))


def _wrong_accelerators(context: SetContext, run: Run, described: int | None) -> _Mismatch | None:
    """Compare the accelerators in one node with the number ``described``."""
    logged = run.instance_scale and run.nodes and run.instance_scale // run.nodes
    # A node without accelerators counts as one, as in the log.
    if not _disagrees(context, logged, 1 if described == 0 else described):
        return None
    return _Mismatch("accelerators_per_node is", logged, described)


def _disagrees(context: SetContext, logged: int | None, described: int | None) -> bool:
    """Return whether a log has another number than described, and not one of a part of it."""
    if logged is None or not described or logged == described:
        return False
    return not context.weak or logged > described


def _counts_of_others(context: SetContext, system: SystemFile) -> dict[str, int]:
    """Return the numbers before the platforms of raw logs, if only another description has them."""
    if context.group is None:
        return {}
    own = {system.nodes, system.accelerators}
    counts: dict[str, int] = {}
    for log in context.group.logs:
        if log.count and log.count not in own and _fitting(context, log.count):
            counts[log.platform] = log.count
    return counts


def _fitting(context: SetContext, nodes: int | None) -> str | None:
    """Name the descriptions of the division with a number of nodes; None if there is none."""
    paths: list[str] = []
    for system in context.systems.every:
        is_in_division = known_division(system.division) == context.division_by_rules
        if system.nodes == nodes and is_in_division:
            paths.append(system.path)
    if not paths:
        return None
    return f"the log may be of the system in {' or '.join(paths)}, where number_of_nodes is {nodes}"
