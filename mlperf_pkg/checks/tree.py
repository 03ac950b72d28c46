"""The layout of a submission: what ends the official package checker, and flags without effect.

Source: mlperf_logging.package_checker, check_training_result_files and check_systems. Wherever it
raises, no result of the whole package is judged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from mlperf_pkg.checks.context import PACKAGE
from mlperf_pkg.findings import Basis, Finding, Severity
from mlperf_pkg.infra.tree import Entry
from mlperf_pkg.submission.find import SCALINGS
from mlperf_pkg.submission.model import Submission

_STRUCTURE = "submission_rules, Structure"
_LOG = re.compile(r"result_.*\.txt", re.DOTALL)


def check_tree(
    submission: Submission, usage: str, benchmarks: Collection[str]
) -> Iterator[Finding]:
    """Judge the layout of a submission for a ``usage`` with these ``benchmarks``."""
    folders = [entry for entry in submission.entries if entry.folder]
    yield from _systems(submission, folders)
    yield from _scaling(submission, usage, folders)
    yield from _hidden(submission, usage, folders)
    yield from _logs(submission, benchmarks, folders)
    yield from _unreadable(submission)
    yield from _params(submission)


def _systems(submission: Submission, folders: list[Entry]) -> Iterator[Finding]:
    """Everything in systems/ by the name of a description is opened."""
    for entry in folders:
        top, _, name = entry.path.rpartition("/")
        if top == "systems" and name.endswith(".json") and not name.startswith("."):
            message = "the package checker dies of a folder by the name of a system description"
            yield _finding(submission, "TREE103", message, entry.path)


def _scaling(submission: Submission, usage: str, folders: list[Entry]) -> Iterator[Finding]:
    """HPC has a level more than Training: ``results/<system>/{strong,weak}/<benchmark>``."""
    wrong = _wrong_levels(folders) if usage == "hpc" else set()
    for path in sorted(wrong):
        yield _finding(
            submission,
            "TREE104",
            "the package checker dies here: HPC results lie in strong/ or weak/",
            path,
            basis=Basis.BOTH,
            source=_STRUCTURE,
        )
    sets = {_below(submission, each.place.label): each for each in submission.result_sets}
    skipped = {path for path, each in sets.items() if not each.at_level(usage)}
    for path in sorted((skipped | _above_benchmarks(submission, usage) - sets.keys()) - wrong):
        yield _finding(
            submission,
            "TREE105",
            f"the package checker skips this folder: {usage} results lie in"
            f" results/<system>/{'{strong,weak}/' * (usage == 'hpc')}<benchmark>",
            path,
            basis=Basis.RULES,
            source=_STRUCTURE,
        )


def _above_benchmarks(submission: Submission, usage: str) -> set[str]:
    """The folders with logs that are of no benchmark, as they lie too high."""
    depth = _HPC_DEPTH if usage == "hpc" else _DEPTH
    return {
        entry.path.rpartition("/")[0]
        for entry in submission.entries
        if entry.path.count("/") < depth
        and not entry.folder
        and entry.path.startswith("results/")
        and _LOG.fullmatch(entry.name)
    }


def _wrong_levels(folders: list[Entry]) -> set[str]:
    """The folders in ``results/<system>`` that hold folders and are neither strong nor weak."""
    parts = [entry.path.split("/") for entry in folders]
    return {
        "/".join(part[:3])
        for part in parts
        if part[0] == "results" and len(part) == _HPC_DEPTH and part[2] not in SCALINGS
    }


_DEPTH, _HPC_DEPTH = 3, 4  # of results/<system>/<benchmark>


def _hidden(submission: Submission, usage: str, folders: list[Entry]) -> Iterator[Finding]:
    """Hidden folders are systems to it as any other, and need a description."""
    depth = _HPC_DEPTH if usage == "hpc" else _DEPTH
    parts = (entry.path.split("/") for entry in folders)
    names = {p[1] for p in parts if p[0] == "results" and len(p) == depth and p[1][:1] == "."}
    known = {entry.path for entry in submission.entries} if names else set()
    for name in sorted(names):
        if f"systems/{name}.json" not in known:
            message = f"the package checker dies here: there is no systems/{name}.json"
            yield _finding(submission, "TREE106", message, f"results/{name}")


def _logs(
    submission: Submission, benchmarks: Collection[str], folders: list[Entry]
) -> Iterator[Finding]:
    """Whatever is named as a log is opened as one."""
    for entry in folders:
        folder, _, name = entry.path.rpartition("/")
        judged = folder.startswith("results/") and folder.rpartition("/")[2] in benchmarks
        if judged and _LOG.fullmatch(name):
            message = "the package checker dies of a folder by the name of a log"
            yield _finding(submission, "TREE107", message, entry.path)


def _unreadable(submission: Submission) -> Iterator[Finding]:
    """Files that this process may not open; where the checker would, it dies."""
    for entry in submission.entries:
        if not entry.readable and entry.path.startswith(("results/", "systems/")):
            message = "this may not be read: not checked, and the package checker dies of it"
            yield _finding(submission, "TREE108", message, entry.path, basis=Basis.BOTH)


def _params(submission: Submission) -> Iterator[Finding]:
    """The files of flags: those that cannot be read, and flags without effect."""
    for path, params in submission.params.items():
        if params.crash:
            message = f"the package checker dies of this file: {params.crash}"
            yield Finding(
                code="TREE109", message=message, path=path, basis=Basis.OFFICIAL, source=PACKAGE
            )
        for flag in params.ignored:
            yield Finding(
                code="TREE110",
                message=f"{flag} has no effect here",
                path=path,
                severity=Severity.WARNING,
                basis=Basis.OFFICIAL,
                source=PACKAGE,
                found=flag,
                hint=_hint(flag),
            )


def _below(submission: Submission, label: str) -> str:
    """The path below the submission of what is called ``label`` in reports."""
    return label.removeprefix(f"{submission.place.label}/") if submission.place.label else label


def _hint(flag: str) -> str:
    if "train-samples" in flag:
        return "write it at the top of the submission"
    return f"write only {flag}, with hyphens and without a line end, or at the top"


def _finding(submission: Submission, code: str, message: str, path: str, **more: Any) -> Finding:
    label = submission.place.label
    fields = {"basis": Basis.OFFICIAL, "source": PACKAGE, **more}
    where = f"{label}/{path}" if label else path
    return Finding(code=code, message=message, path=where, **fields)
