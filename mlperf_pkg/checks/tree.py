"""The layout of a submission: what makes the official package checker crash, and unread files.

Source: mlperf_logging.package_checker, check_training_result_files and check_systems. When it
crashes, it judges no result of the whole package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from mlperf_pkg.checks.context import PACKAGE_CHECKER
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.paths import Entry
from mlperf_pkg.submission.model import SCALINGS, Submission, is_result_log

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
