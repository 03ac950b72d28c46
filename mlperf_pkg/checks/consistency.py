"""Rules on what the runs of a set claim: different runs of one configuration on one system."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, logged_statuses
from mlperf_pkg.checks.names import are_alike
from mlperf_pkg.findings import NOTE, Basis, Finding, Severity
from mlperf_pkg.infra.text import letters
from mlperf_pkg.published.model import equal_values, is_near, is_series, known_division
from mlperf_pkg.results.wording import counted, enumerated
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.readers import as_count
from mlperf_pkg.submission.membership import is_placeholder

# ---- copies of one run, whatever was edited in them ---------------------------------------

_NEIGHBOURS = 100  # in order of their values, that are compared
_SERIES = ("evaluated", "losses")


def is_known(run: Run) -> bool:
    """Return whether its evaluations or losses, or their times, tell a run from all others."""
    return run.fingerprint is not None or any(is_series(getattr(run, name)) for name in _SERIES)


def originals(runs: Sequence[Run]) -> list[int]:
    """Return for each run the index of the first that is the same run; its own if none is.

    Copies have evaluations with the same values at the same times or, at any times, evaluations or
    losses with the same values but for noise. In all published logs, no two runs are as near by
    chance.
    """
    first = list(range(len(runs)))
    by_times: dict[bytes, int] = {}

    def root(index: int) -> int:
        while first[index] != index:
            first[index] = first[first[index]]
            index = first[index]
        return index

    def join(index: int, other: int) -> None:
        least, most = sorted((root(index), root(other)))
        first[most] = least

    for index, run in enumerate(runs):
        if run.fingerprint is not None:
            join(by_times.setdefault(run.fingerprint, index), index)
    for name in _SERIES:
        for index, other in _pairs_of_values(runs, name):
            join(index, other)
    return [root(index) for index in first]


def _pairs_of_values(runs: Sequence[Run], name: str) -> Iterator[tuple[int, int]]:
    """Yield the indexes of runs with equal values of a series but for noise."""
    series = [(run.benchmark, getattr(run, name), index) for index, run in enumerate(runs)]
    series = sorted(one for one in series if is_series(one[1]))
    for position, (benchmark, values, index) in enumerate(series):
        for other, others, neighbour in series[position + 1 : position + _NEIGHBOURS]:
            if other != benchmark or not is_near(values[0], others[0]):
                break
            if equal_values(values, others):
                yield index, neighbour


def evidence(run: Run, other: Run) -> str:
    """Return what shows that two logs are of one run."""
    if run.fingerprint is not None and run.fingerprint == other.fingerprint:
        return "every evaluation has the same value and time"
    words = zip(_SERIES, ("evaluations", "losses"), strict=True)
    numbers = {word: equal_values(getattr(run, name), getattr(other, name)) for name, word in words}
    equal = [f"{number} of {number} {word}" for word, number in numbers.items() if number]
    return f"{' and '.join(equal)} are equal to 1e-5"


def check_copies(context: SetContext) -> Iterator[Finding]:
    """Check that no run is submitted twice, whatever was edited in the copy."""
    runs = context.runs
    for run, index in zip(runs, originals(runs), strict=True):
        original = runs[index]
        if original is not run:
            message = f"is a copy of {{found:s}}: {evidence(run, original)}"
            yield context.finding("SET112", message, path=run.path, found=original.path)


# ---- one configuration --------------------------------------------------------------------


def check_overlap(context: SetContext) -> Iterator[Finding]:
    """Note runs at the same time on one system, which are common in published sets."""
    times = sorted((r.start_ms, r.stop_ms) for r in context.runs if r.start_ms and r.stop_ms)
    overlaps = sum(start < previous_stop for (_, previous_stop), (start, _) in pairwise(times))
    if overlaps:
        message = "runs overlap: {found} started before the previous run ended"
        yield context.finding("SET113", message, found=overlaps)


def check_batch_size(context: SetContext) -> Iterator[Finding]:
    """Check that all runs have one batch size, and that the RCP checker reads that one."""
    sizes = sorted({size for run in _not_killed(context) for size in run.batch_sizes})
    if len(sizes) > 1:
        message = "the runs have different batch sizes: {found:s}; expected {expected}"
        yield context.finding("SET108", message, found=sizes, expected="one global_batch_size")
    message = "the RCP checker reads the batch size {found:s} from a record that only contains"
    message = f"{message} the string global_batch_size; expected {{expected}}"
    for run in context.runs:
        text = as_count(run.convergence.batch_size)
        logged = run.batch_sizes
        if logged and text not in logged and not run.convergence.crash:
            fields = {"found": text, "expected": logged[0]}
            yield context.finding("RCP104", message, path=run.path, **fields)


def check_configuration(context: SetContext) -> Iterator[Finding]:
    """Check that all runs are of one platform and have the same hyperparameters."""
    runs = _not_killed(context)
    spellings = {letters(name): name for name in (run.text("platform") for run in runs)}
    platforms = [name for name in spellings.values() if name and not is_placeholder(name)]
    if len(platforms) > 1:
        message = "the runs have different platforms: {found:s}; expected {expected}"
        fields = {"found": sorted(platforms), "expected": "one submission_platform"}
        yield context.finding("SET121", message, **fields)
    differences = different_hyperparameters(runs)
    if differences:
        message = "the runs have different hyperparameters: {found:s}; expected {expected}"
        yield context.finding("SET122", message, found=differences, expected="one value of each")


def check_code(context: SetContext) -> Iterator[Finding]:
    """Note runs that log their seeds from different lines, as their code may differ."""
    numbers = Counter(frozenset([(s.file, s.lineno) for s in run.seeds]) for run in context.runs)
    del numbers[frozenset()]  # runs without a seed
    if len(numbers) > 1:
        texts = {key: ", ".join(sorted(f"{f}:{line}" for f, line in key)) for key in numbers}
        lines = [f"{texts[places]} ({counted(n, 'run')})" for places, n in numbers.most_common()]
        message = "seeds are logged by different lines of code: {found:s}"
        yield context.finding("SET127", message, found=lines)


def _not_killed(context: SetContext) -> list[Run]:
    """Return the runs that were not killed; the settings of a killed run do not count."""
    return [run for run in context.runs if not run.killed]


def different_hyperparameters(runs: Sequence[Run]) -> list[str]:
    """Return the hyperparameters of which several runs log different values, with these.

    Those of different benchmarks are not compared, nor those of which a value breaks a rule.
    """
    if not runs or all(run.hyperparameters == runs[0].hyperparameters for run in runs):
        return []
    if len({run.benchmark for run in runs} - {""}) > 1:
        return []
    values: dict[str, set[str]] = {}
    broken = broken_keys(runs)
    for run in runs:
        for key, value in run.hyperparameters.items():
            values.setdefault(key, set()).add(value)
    different = [key for key in values if len(values[key]) > 1 and key not in broken]
    return [f"{key} {enumerated(_readable(values[key]))}" for key in different]


def _readable(numbers: set[str]) -> list[str]:
    texts = sorted(numbers, key=lambda text: (len(text.partition(".")[0]), text))
    return [f"{int(text):,}" if text.isdecimal() else text for text in texts]


def broken_keys(runs: Sequence[Run]) -> set[str]:
    """Return the keys whose values break a rule, as the first words of messages."""
    findings = (finding for run in runs for finding in run.findings)
    return {f.message.partition(" ")[0] for f in findings if f.fails(Basis.RULES)}


def check_names(context: SetContext) -> Iterator[Finding]:
    """Check the organisation and the platform that the logs name."""
    names = {key: {run.text(key) for run in context.runs} for key in ("org", "platform")}
    placeholders = [key for key, texts in names.items() if any(map(is_placeholder, texts))]
    if placeholders:
        keys = " and ".join(f"submission_{key}" for key in placeholders)
        yield context.finding("SET114", f"{keys}: found a placeholder; expected a name")
    submitter = context.submitter
    if not submitter or "org" in placeholders or context.in_workspace:
        return
    organisations = names["org"] - {""}
    others = sorted(org for org in organisations if not are_alike(org, submitter))
    if others:
        is_one = all(are_alike(org, other) for org, other in combinations(organisations, 2))
        weight = NOTE if is_one else {"severity": Severity.WARNING}
        message = "submission_org is {found:s}; expected {expected}, the name of the submission"
        message = f"{message} folder"
        yield context.finding("SET115", message, found=others, expected=submitter, **weight)


# ---- the system that its description describes --------------------------------------------

_CLAIMS = {"research": 0, "preview": 1, "cloud": 2, "onprem": 2}  # how much a status promises
_DEFAULT_STATUS = "onprem"  # of the reference implementations, and so in many logs
_COUNT = r"\d+ ?x ?"  # of nodes, before the name of a platform
_MIN_LETTERS = 4  # of an abbreviation


def check_status(context: SetContext) -> Iterator[Finding]:
    """Compare the availability that the logs name with that of the description.

    The results table shows that of the description, so it may promise less than the logs.
    """
    system = context.system
    if system is None:
        return
    expected = logged_statuses(system.status or "")
    for run in context.runs if expected else ():
        status = run.text("status")
        if status in _CLAIMS and status not in expected:
            more = _CLAIMS[expected[0]] - _CLAIMS[status]  # that the description promises
            weight = {} if more > 0 or (more == 0 and status != _DEFAULT_STATUS) else NOTE
            message = f"submission_status is {{found:s}}; expected {{expected}} as in {system.path}"
            fields = {"path": run.path, "found": status, "expected": system.status}
            yield context.finding("SET140", message, **fields, **weight)


def check_platform(context: SetContext) -> Iterator[Finding]:
    """Check that the logs do not name another system of the submission."""
    system = context.system
    if system is None:
        return
    platforms = {run.path: run.text("platform") for run in context.runs}
    named = {text for text in platforms.values() if text and not is_placeholder(text)}
    others = {text: _other_system(context, system, text) for text in named}
    for path, platform in platforms.items():
        other = others.get(platform)
        if other:
            other_path, is_name, is_own_part = other
            name = f"{'' if is_name else 'part of '}the name of {other_path}"
            message = f"submission_platform is {{found}}, {name}; expected {{expected}}"
            weight = {} if is_name and not is_own_part else NOTE
            fields = {"path": path, "found": platform, "expected": system.id}
            yield context.finding("SET141", message, **fields, **weight)


def _other_system(
    context: SetContext, system: SystemFile, platform: str
) -> tuple[str, bool, bool] | None:
    """Return the path of another system that a platform names, or a part of whose name it is.

    With it come whether the platform is the name, and whether it is part of the name of the
    expected system, too.
    """
    names = {letters(platform), letters(re.sub(_COUNT, "", platform, count=1))} - {""}
    own = names_of(system)
    if not names.isdisjoint(own):
        return None
    is_own_part = _is_part(names, own)
    for other in context.systems:
        is_name = not names.isdisjoint(names_of(other) - own)
        if is_name or (not is_own_part and _is_part(names, names_of(other))):
            return other.path, is_name, is_own_part
    return None


def names_of(system: SystemFile) -> set[str]:
    """Return the id and the name of a system, in letters and digits."""
    return {letters(system.id), letters(system.system_name or "")} - {""}


def _is_part(names: set[str], of: set[str]) -> bool:
    return any(name in other for name in names for other in of if len(name) >= _MIN_LETTERS)


def check_nodes(context: SetContext) -> Iterator[Finding]:
    """Compare the numbers of nodes, and of accelerators in one, in HPC logs with the description.

    A log of weak scaling is of one model, on a part of the system. Raw logs may have been assigned
    to the wrong system, so the number before their platform is compared, too.
    """
    system = context.system
    if system is None or system.nodes is None or system.nodes == 0:
        return
    counts = _counts_of_others(context, system)
    per_node = system.accelerators and system.accelerators // system.nodes
    for run in context.runs:
        number = run.nodes
        if number is None or context.weak:  # of one model
            number = counts.get(run.text("platform"), number)
        expected: int | None = system.nodes
        key = "number_of_nodes is" if number == run.nodes else "submission_platform begins with"
        hint = _fitting(context, number)
        if not _disagrees(context, number, expected):
            number = run.instance_scale and run.nodes and run.instance_scale // run.nodes
            key = "accelerators_per_node is"
            expected = per_node
            hint = None
            # A node without accelerators counts as one, as in the log.
            if not _disagrees(context, number, 1 if per_node == 0 else per_node):
                continue
        weight = NOTE if run.instance_scale == (system.accelerators or system.nodes) else {}
        message = f"{key} {{found}} in the log; expected {{expected}}, as in {system.path}"
        fields = {"path": run.path, "found": number, "expected": expected, "hint": hint}
        yield context.finding("SET142", message, **fields, **weight)


def _disagrees(context: SetContext, logged: int | None, described: int | None) -> bool:
    """Return whether a log has another number than described, and not one of a part of it."""
    if logged is None or not described or logged == described:
        return False
    return not context.weak or logged > described


def _counts_of_others(context: SetContext, system: SystemFile) -> dict[str, int]:
    """Return the numbers before the platforms of raw logs, if only another description has them."""
    own = {None, 0, system.nodes, system.accelerators}
    counts = {log.platform: log.count for log in context.group.logs} if context.group else {}
    others = ((platform, count) for platform, count in counts.items() if count not in own)
    return {platform: count for platform, count in others if count and _fitting(context, count)}


def _fitting(context: SetContext, nodes: int | None) -> str | None:
    """Name the descriptions of the division with a number of nodes; None if there is none."""
    systems = [system for system in context.systems if system.nodes == nodes]
    paths = [s.path for s in systems if known_division(s.division) == context.division_by_rules]
    return f"as in {' and '.join(paths)}" if paths else None
