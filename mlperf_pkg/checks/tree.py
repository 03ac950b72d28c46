"""Rules on the files of a submission: their layout, their names, the code, and what is not read.

A rule goes to the section of what it looks at. Sources: submission_rules, Directory structure;
mlperf_logging.package_checker, which crashes on some files and then judges no result of the whole
package; mlperf_logging.repo_checker.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from mlperf_pkg.checks.context import BenchmarkCode, SetContext
from mlperf_pkg.checks.descriptions import STRICT_FROM, SystemFile, system_finding
from mlperf_pkg.checks.names import of_two_alphabets
from mlperf_pkg.findings import NOTE, Finding, Severity, Unchecked, without_official
from mlperf_pkg.infra.paths import FolderEntry
from mlperf_pkg.infra.source import SUFFIXES
from mlperf_pkg.rulebook.load import finding_of, unchecked_of
from mlperf_pkg.rulebook.rounds import TRAINING
from mlperf_pkg.submission.model import SCALINGS, Input, ResultSet, Submission, Why, is_result_log
from mlperf_pkg.submission.submitters import SubmitterNames, are_same, is_same_submitter

_DEPTH = 3  # parts of the path of a result set
_HPC_DEPTH = 4


def check_tree(
    submission: Submission, usage: str, benchmarks: Collection[str]
) -> Iterator[Finding]:
    """Check the layout of a submission for a ``usage`` with these ``benchmarks``."""
    folders = [entry.path.split("/") for entry in submission.entries if entry.folder]
    depth = _HPC_DEPTH if usage == "hpc" else _DEPTH
    in_sets = [parts for parts in folders if parts[0] == "results" and len(parts) == depth]
    yield from _named_like_files(submission, benchmarks, folders)
    yield from _scaling_folders(submission, usage, in_sets)
    yield from _hidden_folders(submission, {parts[1] for parts in in_sets})
    yield from _unreadable_files(submission)
    yield from _params(submission)


def _named_like_files(
    submission: Submission, benchmarks: Collection[str], folders: list[list[str]]
) -> Iterator[Finding]:
    """Report folders with the name of a system description or of a log: the checker opens them."""
    for *above, name in folders:
        path = "/".join([*above, name])
        in_set = above[:1] == ["results"] and above[1:] and above[-1] in benchmarks
        if above == ["systems"] and name.endswith(".json") and not name.startswith("."):
            message = (
                "this folder has the name of a system description, so the official package checker"
                " crashes"
            )
            yield _finding(submission, "TREE103", message, path)
        elif in_set and is_result_log(name):
            message = "this folder has the name of a log, so the official package checker crashes"
            yield _finding(submission, "TREE107", message, path)


def _scaling_folders(
    submission: Submission, usage: str, in_sets: list[list[str]]
) -> Iterator[Finding]:
    """Check the levels: HPC has one more, ``results/<system>/{strong,weak}/<benchmark>``."""
    is_hpc = usage == "hpc"
    unknown = (parts for parts in in_sets if is_hpc and parts[2] not in SCALINGS)
    crashing = {"/".join(parts[:3]) for parts in unknown}
    for path in sorted(crashing):
        message = (
            "the official package checker crashes on this folder; expected strong/ or weak/, with"
            " the benchmarks in it"
        )
        yield _finding(submission, "TREE104", message, path)
    sets = {submission.within(s.place.label): s for s in submission.result_sets}
    misplaced = {path for path, files in sets.items() if not files.at_level(usage)}
    misplaced |= _folders_above_benchmarks(submission, is_hpc=is_hpc) - sets.keys()
    levels = f"results/<system>/{'{strong,weak}/' * is_hpc}<benchmark>"
    for path in sorted(misplaced - crashing):
        message = (
            f"{usage} results are in the wrong folder; expected {levels}; the official package"
            " checker skips them"
        )
        yield _finding(submission, "TREE105", message, path)


def _folders_above_benchmarks(submission: Submission, *, is_hpc: bool) -> set[str]:
    """Return the folders that hold logs but are too high to be those of a benchmark."""
    results = (e.path for e in submission.entries if not e.folder and e.path.startswith("results/"))
    high = (path for path in results if path.count("/") < (_HPC_DEPTH if is_hpc else _DEPTH))
    split = (path.rpartition("/") for path in high)
    return {folder for folder, _, name in split if is_result_log(name)}


def _hidden_folders(submission: Submission, systems: set[str]) -> Iterator[Finding]:
    """Report hidden folders without a description: the checker takes them for systems."""
    hidden = sorted(system for system in systems if system.startswith("."))
    existing = {entry.path for entry in submission.entries} if hidden else set()
    for system in hidden:
        if f"systems/{system}.json" not in existing:
            message = (
                f"systems/{system}.json is missing, so the official package checker crashes on this"
                " folder"
            )
            yield _finding(submission, "TREE106", message, f"results/{system}")


def _unreadable_files(submission: Submission) -> Iterator[Finding]:
    """Report files that this process may not open, as the checker would crash on them.

    Logs have a finding of their own.
    """
    unread = [entry for entry in submission.entries if not entry.readable]
    sets = submission.result_sets if unread else ()
    logs = {submission.within(log.label) for files in sets for log in files.logs}
    for entry in unread:
        if entry.path.startswith(("results/", "systems/")) and entry.path not in logs:
            message = (
                "this file was not checked, as there is no permission to read it; the package"
                " checker crashes on it"
            )
            yield _finding(submission, "TREE108", message, entry.path)


def _params(submission: Submission) -> Iterator[Finding]:
    """Report files of flags that cannot be read, and flags without effect."""
    for path, params in submission.params.items():
        if params.crash:
            message = "the official package checker crashes on this file, as {found:s}"
            yield finding_of("TREE109", message, path, found=params.crash)
        for flag in params.ignored:
            hint = (
                f"write {flag} as the only line of this file, with hyphens and without a line break"
                f" at its end; or {_AT_THE_TOP}"
            )
            if "train-samples" in flag:
                hint = _AT_THE_TOP
            message = "the flag {found:s} has no effect in this file"
            yield finding_of("TREE110", message, path, found=flag, hint=hint)


_AT_THE_TOP = "write the flag into package_checker_params at the top of the submission"


def _finding(submission: Submission, code: str, message: str, path: str) -> Finding:
    label = submission.place.label
    return finding_of(code, message, f"{label}/{path}" if label else path)


# ---- the submission as a whole ------------------------------------------------------------

_PACKED = (".bz2", ".gz", ".xz", ".zst", *SUFFIXES)
_DESCRIPTIONS_FROM = (1, 0)  # the first round in which the package checker checks descriptions
_UNREADABLE = frozenset({"SYS001", "SYS002", "SYS003", "SYS004"})


def check_contents(submission: Submission) -> Iterator[Finding]:
    """Check what no single file or result set can show."""
    path = submission.place.label or "."
    message = of_two_alphabets("the folder name", submission.name)
    if message:
        yield finding_of("TREE121", message, path, found=submission.name)
    if not any(files.logs for files in submission.result_sets):
        yield finding_of("TREE101", "no result set has a log, so nothing was checked", path)
    message = (
        "no checker reads packed files in a submission, such as {found:s}; expected unpacked"
        " {expected}"
    )
    for files in submission.result_sets:
        names = packed_logs(files)
        if names:  # which only raw logs may be
            yield finding_of(
                "SET105", message, files.place.label, found=names, expected="files result_*.txt"
            )
    systems_with_results = {files.system for files in submission.result_sets}
    for system in submission.systems:
        name = system.path.stem
        if name not in systems_with_results:
            message = 'results/ has no folder for the system "{found:s}"'
            yield finding_of("TREE120", message, system.label, found=name)
    if submission.code is None:
        message = "no benchmarks/ folder, so the code was not checked"
        yield finding_of("CODE100", message, path, severity=_severity_without_code(submission))


def _severity_without_code(submission: Submission) -> Severity:
    """Return how grave it is that there is no code: a note in a copy of the results of a round."""
    if submission.needs_code:
        return Severity.ERROR
    return Severity.NOTE if submission.of_results else Severity.WARNING


def packed_logs(files: ResultSet) -> list[str]:
    """Return the names of compressed files and archives in the folder of a result set."""
    return [name for name in files.others if name.lower().endswith(_PACKED)]


def findings_of_systems(
    submission: Submission, systems: Iterable[SystemFile], version: tuple[int, ...]
) -> Iterator[Finding]:
    """Yield the findings of the descriptions of a submission."""
    systems_with_results = {files.system for files in submission.result_sets}
    for system in systems:
        yield from weighed(system, version, is_read=system.id in systems_with_results)
        yield from _submitter(submission, system)


def weighed(system: SystemFile, version: tuple[int, ...], *, is_read: bool) -> Iterator[Finding]:
    """Yield the findings of a description, with a lower basis where the checker ignores it.

    Before round 1.0 the official package checker only reads the division of systems with results
    (``is_read``), and crashes without it.
    """
    hint = "before round 1.0 the official package checker ignores descriptions"
    for item in system.findings:
        crashes = item.code in _UNREADABLE or item.expected == "division"
        counts = version >= _DESCRIPTIONS_FROM or (is_read and crashes)
        yield item if counts else without_official(item, hint)


def _submitter(submission: Submission, system: SystemFile) -> Iterator[Finding]:
    """Compare the submitter that a description names with the folder of the submission."""
    name = system.submitter
    expected = submission.name
    if name and not are_same(name, expected):
        message = "submitter is {found}; expected {expected:,}, the name of the submission folder"
        fields = {"found": name, "expected": expected}
        if is_same_submitter(SubmitterNames(name), SubmitterNames(expected)):
            fields |= NOTE
        yield system_finding("SYS205", system.path, system.submitter_line, message, **fields)


# ---- code: the files by which others can run a benchmark again ---------------------------

_README = "/readme.md"
_ONE_TIME = ("setup.sh", "init_datasets.sh")
_COMMAND = (  # compiled when it is used
    r"run_and_time|\./\w|\b(?:sbatch|srun|mpirun|torchrun|docker|podman|enroot|kubectl|python3?|bash"
    r"|sh|make)\s"
)


def readmes(paths: Iterable[str]) -> list[str]:
    """Return the paths of READMEs, first those that are highest in the tree."""
    names = (path for path in paths if PurePosixPath(path).name.lower().startswith("readme"))
    return sorted(names, key=lambda path: (path.count("/"), path))


def has_command(text: str) -> bool:
    """Return whether the text of a README has anything like a command."""
    return re.search(_COMMAND, text) is not None


def check_code(context: SetContext) -> Iterator[Finding]:
    """Check that the benchmark has code, how to run it, and the configurations of the runs."""
    if context.code is None:
        return
    code = context.code.get(context.files.benchmark)
    folder = f"benchmarks/{context.files.benchmark}/"
    if code is None:
        yield _code_finding(context, "CODE101", f"there is no code in {folder}")
        return
    yield from _check_readme(context, code)
    names = {PurePosixPath(path).name for path in code.files}
    if not any(name.startswith("run_and_time") for name in names):
        message = f"there is no file {{expected}} in {folder}"
        yield _code_finding(context, "CODE104", message, expected="run_and_time.sh")
    missing = [name for name in _ONE_TIME if name not in names]
    if missing:
        message = f"there is no file {{expected:s}} in {folder}"
        yield context.finding("CODE105", message, expected=missing)
    message = f"config_filename is {{found:s}}, which is not a file in {folder}"
    for run in context.runs:
        for config, line in run.config_files.items():
            if (path := config.strip('"')).rpartition("/")[2] not in names:
                yield _code_finding(
                    context, "CODE102", message, found=path, path=run.path, line=line
                )


def _check_readme(context: SetContext, code: BenchmarkCode) -> Iterator[Finding]:
    """Check that a README has a command, and that one has its name."""
    folder = f"benchmarks/{context.files.benchmark}/"
    paths = readmes(code.files)
    if not code.has_command:
        message = (
            f"no README in {folder} has a command; expected the command that runs the benchmark"
        )
        if not paths:
            message = f"there is no README in {folder}; expected a README with the command to run"
        yield _code_finding(context, "CODE103", message)
    if paths and not any(path.lower().endswith(_README) for path in paths):
        message = "the README is named {found:s}; expected README.md"
        yield context.finding("CODE106", message, found=paths[0])


def _code_finding(context: SetContext, code: str, message: str, **fields: Any) -> Finding:
    is_strict = context.round.usage == TRAINING and context.round.version >= STRICT_FROM
    severity = Severity.ERROR if is_strict else Severity.WARNING
    return context.finding(code, message, severity=severity, **fields)


# ---- names, sizes and links, as the repository checker requires them for git --------------

MAX_BYTES = 50 << 20
FIRST_ROUND = (2, 0)


def check_repository(name: str, label: str, entries: Sequence[FolderEntry]) -> Iterator[Finding]:
    """Check the names, sizes and links in a submission.

    ``name`` is the name of its top folder, which is checked too; ``label`` is the path of that
    folder in reports. The official checker does not follow links, so that a link to a folder is
    checked neither for its name nor for its target.
    """
    yield from _name_for_git(name, label or ".")
    for entry in entries:
        if entry.folder and entry.link is not None:
            continue
        path = f"{label}/{entry.path}" if label else entry.path
        yield from _name_for_git(entry.name, path)
        if entry.size > MAX_BYTES:
            most = f"{MAX_BYTES:,} ({MAX_BYTES >> 20} MiB)"
            message = f"the size is {{found:,}} bytes; expected at most {most}"
            yield finding_of("REPO102", message, path, found=entry.size, expected=MAX_BYTES)
        if not entry.resolves:
            message = "this link is broken, as its target {found:s} does not exist"
            yield finding_of("REPO103", message, path, found=entry.link)
        elif entry.link is not None and not entry.link.startswith("/"):
            # The official checker resolves its target in its own working directory.
            message = (
                "the repository checker reports this link to {found:s} as broken, because"
                " the checker looks for the target in its own working directory"
            )
            yield finding_of("REPO104", message, path, found=entry.link)


def _name_for_git(name: str, path: str) -> Iterator[Finding]:
    if name.startswith(".") or " " in name:
        message = "the name starts with a dot or contains a space"
        yield finding_of("REPO101", message, path, found=name)


# ---- what is in an input and is not read: each such file is named once -------------------


_UNREAD = {
    Why.PROBLEM: ("TREE111", "mlperf-pkg does not read this file ({found:s})"),
    Why.NOT_A_LOG: ("TREE112", "mlperf-pkg does not read this file as a log ({found:s})"),
    Why.DAMAGED: ("TREE115", "{found:s}, so this file counts as a run only after it is repaired"),
    Why.TWICE: ("TREE113", "this path is judged only once, as {found:s}"),
    Why.NO_RUN: (
        "RAW101",
        "this file does not count as a run, as it contains neither run_start nor an evaluation",
    ),
}


def check_input(contents: Input) -> Iterator[Finding]:
    """Report the links that are not followed and the files that are not read."""
    for place in contents.skipped:
        message = "this link was not checked, as it leads out of the checked folder"
        yield finding_of("TREE102", message, place.label)
    for file in contents.unread:
        path = file.place.label
        reason = file.reason
        if file.why is Why.UNCHECKED:
            yield not_read(path or ".", reason)
        else:
            yield finding_of(*_UNREAD[file.why], path, found=reason, hint=file.hint)


def not_read(path: str, reason: str) -> Unchecked:
    """Report a file or folder that cannot be read and was not checked."""
    message = "this file or folder was not checked, as it cannot be read ({found:s})"
    return unchecked_of("TREE114", message, path, found=reason)
