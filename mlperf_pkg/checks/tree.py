"""The layout of a submission: what makes the official package checker crash, and unread files.

Source: mlperf_logging.package_checker, check_training_result_files and check_systems. When it
crashes, it judges no result of the whole package.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from mlperf_pkg.checks.context import PACKAGE_CHECKER, SetContext, set_finding
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.names import are_alike, are_same
from mlperf_pkg.checks.system_schema import system_finding
from mlperf_pkg.findings import Basis, Finding, Severity, Unchecked, without_official
from mlperf_pkg.infra.archive_names import SUFFIXES
from mlperf_pkg.infra.tree import Entry
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.submission.model import Input, Place, ResultSet, Submission, Unread, Why
from mlperf_pkg.submission.names import SCALINGS, is_result_log

_STRUCTURE = "submission_rules, Directory structure"
_DEPTH, _HPC_DEPTH = 3, 4  # parts of the path of a result set


def check_tree(
    submission: Submission, usage: str, benchmarks: Collection[str]
) -> Iterator[Finding]:
    """Check the layout of a submission for a ``usage`` with these ``benchmarks``."""
    folders = [entry for entry in submission.entries if entry.folder]
    yield from _system_folders(submission, folders)
    yield from _scaling_folders(submission, usage, folders)
    yield from _hidden_folders(submission, usage, folders)
    yield from _log_folders(submission, benchmarks, folders)
    yield from _unreadable_files(submission)
    yield from _params(submission)


def _system_folders(submission: Submission, folders: list[Entry]) -> Iterator[Finding]:
    """Report folders that have the name of a system description: the checker opens them."""
    for entry in folders:
        parent, _, name = entry.path.rpartition("/")
        if parent == "systems" and name.endswith(".json") and not name.startswith("."):
            message = "a folder with the name of a system description: the package checker crashes"
            yield _finding(submission, "TREE103", message, entry.path)


def _scaling_folders(submission: Submission, usage: str, folders: list[Entry]) -> Iterator[Finding]:
    """Check the levels: HPC has one more, ``results/<system>/{strong,weak}/<benchmark>``."""
    crashing = _unknown_scalings(folders) if usage == "hpc" else set()
    for path in sorted(crashing):
        yield _finding(
            submission,
            "TREE104",
            "the package checker crashes on this folder; expected strong/ or weak/ above the"
            " benchmarks",
            path,
            basis=Basis.BOTH,
            source=_STRUCTURE,
        )
    sets = {_relative_path(submission, s.place.label): s for s in submission.result_sets}
    misplaced = {path for path, files in sets.items() if not files.at_level(usage)}
    misplaced |= _folders_above_benchmarks(submission, usage) - sets.keys()
    for path in sorted(misplaced - crashing):
        yield _finding(
            submission,
            "TREE105",
            f"the package checker skips this folder; expected {usage} results in"
            f" results/<system>/{'{strong,weak}/' * (usage == 'hpc')}<benchmark>",
            path,
            basis=Basis.RULES,
            source=_STRUCTURE,
        )


def _folders_above_benchmarks(submission: Submission, usage: str) -> set[str]:
    """Return the folders that hold logs but are too high to be those of a benchmark."""
    return {
        entry.path.rpartition("/")[0]
        for entry in submission.entries
        if entry.path.count("/") < _depth(usage)
        and not entry.folder
        and entry.path.startswith("results/")
        and is_result_log(entry.name)
    }


def _depth(usage: str) -> int:
    return _HPC_DEPTH if usage == "hpc" else _DEPTH


def _unknown_scalings(folders: list[Entry]) -> set[str]:
    """Return the folders ``results/<system>/*`` that hold folders, without strong and weak."""
    paths = [entry.path.split("/") for entry in folders]
    return {
        "/".join(parts[:3])
        for parts in paths
        if parts[0] == "results" and len(parts) == _HPC_DEPTH and parts[2] not in SCALINGS
    }


def _hidden_folders(submission: Submission, usage: str, folders: list[Entry]) -> Iterator[Finding]:
    """Report hidden folders without a description: the checker takes them for systems."""
    paths = (entry.path.split("/") for entry in folders)
    systems = {
        parts[1]
        for parts in paths
        if parts[0] == "results" and len(parts) == _depth(usage) and parts[1].startswith(".")
    }
    existing = {entry.path for entry in submission.entries} if systems else set()
    for system in sorted(systems):
        if f"systems/{system}.json" not in existing:
            message = f"the package checker crashes on this folder: no systems/{system}.json"
            yield _finding(submission, "TREE106", message, f"results/{system}")


def _log_folders(
    submission: Submission, benchmarks: Collection[str], folders: list[Entry]
) -> Iterator[Finding]:
    """Report folders that have the name of a log: the checker opens them."""
    for entry in folders:
        parent, _, name = entry.path.rpartition("/")
        is_read = parent.startswith("results/") and parent.rpartition("/")[2] in benchmarks
        if is_read and is_result_log(name):
            message = "a folder with the name of a log: the package checker crashes"
            yield _finding(submission, "TREE107", message, entry.path)


def _unreadable_files(submission: Submission) -> Iterator[Finding]:
    """Report files that this process may not open, as the checker would crash on them.

    Logs have a finding of their own.
    """
    unread = [entry for entry in submission.entries if not entry.readable]
    sets = submission.result_sets if unread else ()
    logs = {_relative_path(submission, log.label) for files in sets for log in files.logs}
    for entry in unread:
        if entry.path.startswith(("results/", "systems/")) and entry.path not in logs:
            message = "no permission to read: not checked, and the package checker crashes"
            yield _finding(submission, "TREE108", message, entry.path, basis=Basis.BOTH)


def _params(submission: Submission) -> Iterator[Finding]:
    """Report files of flags that cannot be read, and flags without effect."""
    for path, params in submission.params.items():
        if params.crash:
            yield Finding(
                code="TREE109",
                message="the package checker crashes on this file: {found:s}",
                found=params.crash,
                path=path,
                basis=Basis.OFFICIAL,
                source=PACKAGE_CHECKER,
            )
        for flag in params.ignored:
            yield Finding(
                code="TREE110",
                message="{found:s} has no effect here",
                path=path,
                severity=Severity.WARNING,
                basis=Basis.OFFICIAL,
                source=PACKAGE_CHECKER,
                found=flag,
                hint=_hint(flag),
            )


def _relative_path(submission: Submission, label: str) -> str:
    """Return a path in reports relative to the submission."""
    return label.removeprefix(f"{submission.place.label}/") if submission.place.label else label


def _hint(flag: str) -> str:
    if "train-samples" in flag:
        return "write it at the top of the submission"
    return f"write only {flag}, with hyphens and without a line end, or at the top"


def _finding(submission: Submission, code: str, message: str, path: str, **fields: Any) -> Finding:
    label = submission.place.label
    defaults = {"basis": Basis.OFFICIAL, "source": PACKAGE_CHECKER}
    return Finding(
        code=code,
        message=message,
        path=f"{label}/{path}" if label else path,
        **{**defaults, **fields},
    )


_SOURCE = "submission_rules, Directory structure"
_PACKED = (".gz", ".xz", ".zst", *SUFFIXES)
_NO_RESULTS = "no folder of this system in results/: {found:s}"
_DESCRIPTIONS_FROM = (1, 0)  # the first round in which the package checker checks descriptions
_UNREADABLE = frozenset({"SYS001", "SYS002", "SYS003", "SYS004"})


def findings_of_systems(
    submission: Submission, systems: Iterable[SystemFile], version: tuple[int, ...]
) -> Iterator[Finding]:
    """Yield the findings of the descriptions, with a lower basis where the checker ignores them.

    Before round 1.0 the official package checker only reads the division of systems with results,
    and crashes without it.
    """
    systems_with_results = {files.system for files in submission.result_sets}
    hint = "before round 1.0 the package checker ignores descriptions"
    for system in systems:
        is_read = system.id in systems_with_results
        for finding in system.findings:
            crashes = finding.code in _UNREADABLE or finding.expected == "division"
            counts = version >= _DESCRIPTIONS_FROM or (is_read and crashes)
            yield finding if counts else without_official(finding, hint)
        yield from _submitter(submission, system)


def _submitter(submission: Submission, system: SystemFile) -> Iterator[Finding]:
    """Compare the submitter that a description names with the folder of the submission."""
    name = system.submitter or ""
    if are_same(name, submission.name) or not name:
        return
    alike = are_alike(name, submission.name)
    yield system_finding(
        "SYS205",
        system.path,
        system.submitter_line,
        "submitter is {found}; expected {expected}, the name of the submission folder",
        severity=Severity.NOTE if alike else Severity.WARNING,
        basis=Basis.ADVICE if alike else Basis.RULES,
        found=name,
        expected=submission.name,
    )


def check_contents(submission: Submission) -> Iterator[Finding]:
    """Check what no single file or result set can show."""
    path = submission.place.label or "."
    if not any(files.logs for files in submission.result_sets):
        message = "no result set has a log; nothing was checked"
        yield Finding(code="TREE101", message=message, path=path, basis=Basis.RULES, source=_SOURCE)
    yield from _packed_logs(submission)
    systems_with_results = {files.system for files in submission.result_sets}
    for system in submission.systems:
        if system.path.stem not in systems_with_results:
            yield replace(
                _warning("TREE120", _NO_RESULTS, system.label, codes()["TREE120"].source),
                basis=Basis.ADVICE,
                found=system.path.stem,
            )
    if submission.code is None:
        yield _no_code(path, is_copy=submission.of_results)


def _no_code(path: str, *, is_copy: bool) -> Finding:
    """Warn about a submission without code, or note it in a copy of the results of a round."""
    message = "no benchmarks/ folder: the code was not checked"
    finding = _warning("CODE100", message, path, codes()["CODE100"].source)
    return replace(finding, severity=Severity.NOTE) if is_copy else finding


def packed_logs(files: ResultSet) -> list[str]:
    """Return the names of compressed files and archives in the folder of a result set."""
    return [name for name in files.others if name.lower().endswith(_PACKED)]


def _packed_logs(submission: Submission) -> Iterator[Finding]:
    """Report compressed logs, which only raw logs may be: no official checker reads them."""
    for files in submission.result_sets:
        if names := packed_logs(files):
            yield Finding(
                code="SET105",
                message="not read: {found:s}; expected {expected} in a submission:"
                " decompress or unpack them",
                path=files.place.label,
                severity=Severity.WARNING,
                basis=Basis.ADVICE,
                found=names,
                expected="files result_*.txt",
                source=codes()["SET105"].source,
            )


def _warning(code: str, message: str, path: str, source: str) -> Finding:
    return Finding(
        code=code,
        message=message,
        path=path,
        severity=Severity.WARNING,
        basis=Basis.RULES,
        source=source,
    )


_CODE_REQUIRED_FROM = (6, 1)  # published code of earlier rounds often lacks a file
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
        yield _code_finding(context, "CODE101", f"no code in {folder}")
        return
    if not readmes(code.files):
        yield _code_finding(
            context, "CODE103", f"no README in {folder}; expected one with the command"
        )
    elif not code.has_command:
        message = f"no README in {folder} has a command; expected the one that runs the benchmark"
        yield _code_finding(context, "CODE103", message)
    names = {PurePosixPath(path).name for path in code.files}
    if not any(name.startswith("run_and_time") for name in names):
        message = f"no file {{expected}} in {folder}"
        yield _code_finding(context, "CODE104", message, expected="run_and_time.sh")
    yield from _configurations(context, folder, names)


def _configurations(context: SetContext, folder: str, names: set[str]) -> Iterator[Finding]:
    """Check that the files exist that the logs name."""
    for run in context.runs:
        for config, line in run.config_files.items():
            if config.strip('"').rpartition("/")[2] not in names:
                yield _code_finding(
                    context,
                    "CODE102",
                    f"config_filename is {{found:s}}, which is not a file in {folder}",
                    found=config.strip('"'),
                    path=run.path,
                    line=line,
                )


def _code_finding(context: SetContext, code: str, message: str, **fields: Any) -> Finding:
    is_error = context.round.usage == "training" and context.round.version >= _CODE_REQUIRED_FROM
    severity = Severity.ERROR if is_error else Severity.WARNING
    return set_finding(context, code, message, basis=Basis.RULES, severity=severity, **fields)


_REPOSITORY = "mlperf-logging, repo_checker"
MAX_BYTES = 50 << 20
FIRST_ROUND = (2, 0)


def check_repository(name: str, label: str, entries: Sequence[Entry]) -> Iterator[Finding]:
    """Check the names, sizes and links in a submission.

    ``name`` is the name of its top folder, which is checked too; ``label`` is the path of that
    folder in reports.
    """
    if _is_bad_name(name):
        yield _bad_name(label or ".", name)
    prefix = f"{label}/" if label else ""
    for entry in entries:
        if entry.folder and entry.link is not None:
            continue
        if _is_bad_name(entry.name):
            yield _bad_name(prefix + entry.path, entry.name)
        if entry.size > MAX_BYTES:
            yield _too_large(prefix + entry.path, entry.size)
        if entry.link is not None:
            yield from _link(prefix + entry.path, entry.link, entry.resolves)


def _is_bad_name(name: str) -> bool:
    return name.startswith(".") or " " in name


def _bad_name(path: str, name: str) -> Finding:
    return _repository_finding(
        "REPO101",
        path,
        "the name starts with a dot or contains a space",
        found=name,
        hint="rename it, or leave it out of the submission",
    )


def _too_large(path: str, size: int) -> Finding:
    return _repository_finding(
        "REPO102",
        path,
        f"the size is {{found:,}} bytes; expected at most {MAX_BYTES:,} ({MAX_BYTES >> 20} MiB)",
        found=size,
        expected=MAX_BYTES,
    )


def _link(path: str, target: str, resolves: bool) -> Iterator[Finding]:
    """Check a link; the official checker resolves its target in its own working directory."""
    if not resolves:
        message = "a broken link: {found:s} does not exist"
        yield _repository_finding("REPO103", path, message, basis=Basis.BOTH, found=target)
    elif not target.startswith("/"):
        yield _repository_finding(
            "REPO104",
            path,
            "the repository checker reports this link to {found:s} as broken, as it looks for the"
            " target in its own working directory",
            found=target,
            hint="replace the link by the file itself",
        )


def _repository_finding(code: str, path: str, message: str, **fields: Any) -> Finding:
    defaults = {"basis": Basis.OFFICIAL, "source": _REPOSITORY}
    return Finding(code=code, path=path, message=message, **{**defaults, **fields})


def check_input(contents: Input) -> Iterator[Finding]:
    """Report the links that are not followed and the files that are not read."""
    for place in contents.skipped:
        message = "not checked: the link leads out of the checked folder"
        yield _input_finding("TREE102", message, place)
    yield from map(_unread_input, contents.unread)


def _unread_input(file: Unread) -> Finding:
    match file.why:
        case Why.PROBLEM:
            return _input_finding("TREE111", "not read: {found:s}", file.place, found=file.reason)
        case Why.NOT_A_LOG:
            message, code = "not read as a log: {found:s}", "TREE112"
        case Why.UNCHECKED:
            return not_read(file.place.label or ".", file.reason)
        case Why.TWICE:
            message, code = "judged once: {found:s}", "TREE113"
    return _input_finding(code, message, file.place, severity=Severity.NOTE, found=file.reason)


def not_read(path: str, reason: str) -> Unchecked:
    """Report a file or folder that cannot be read and was not checked."""
    return Unchecked(
        code="TREE114",
        message="cannot be read: {found:s}; not checked",
        path=path,
        found=reason,
        source=codes()["TREE114"].source,
    )


def _input_finding(code: str, message: str, place: Place, **fields: Any) -> Finding:
    defaults = {"severity": Severity.WARNING, "basis": Basis.ADVICE}
    source = codes()[code].source
    return Finding(
        code=code, message=message, path=place.label, source=source, **{**defaults, **fields}
    )
