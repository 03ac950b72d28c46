"""Folder names that the official checkers take for patterns, and then read other logs or none.

They look for ``<submitter>/results/<system>/<benchmark>/result_*.txt`` with glob, in which ``[``,
``*`` and ``?`` of the names have a meaning. (mlperf_logging: package_checker, rcp_checker and
result_summarizer)
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec.structs import replace

from mlperf_pkg.checks.context import PACKAGE, SetContext, set_finding
from mlperf_pkg.checks.result_sets import SetResult, check_set, unread
from mlperf_pkg.findings import Basis, Severity, Verdict, Verdicts
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import ResultSet, Submission

_SPECIAL = frozenset("[*?")
_HINT = "the package checker reads other logs for this folder"


def check_as_found(case: SetContext, submission: Submission, runs: Mapping[str, Run]) -> SetResult:
    """Judge a set by its own logs, but officially by those that the official checkers find.

    ``runs`` are all of the submission, by path.
    """
    own = check_set(case)
    found = _found(submission, case.files)
    if found == (case.files,) or case.skipped:
        return own
    logs = tuple(log for each in found for log in each.logs)
    read = tuple(runs[log.label] for log in logs)
    seen = check_set(replace(case, files=replace(case.files, logs=logs), runs=read))
    official = seen.row.verdict.official
    others = ", ".join(each.place.label for each in found)
    finding = set_finding(
        case,
        "SET116",
        f"the official checkers take {submission.name}/results/{case.files.system} for a pattern:"
        f" they find {len(logs)} logs for this folder{f', of {others}' if others else ''}",
        severity=Severity.ERROR if official is Verdict.FAIL else Severity.WARNING,
        basis=Basis.OFFICIAL,
        source=PACKAGE,
        hint="rename the folder without [, * and ?",
    )
    return replace(
        own,
        row=replace(
            own.row,
            verdict=Verdicts(official, own.row.verdict.rules),
            official_minutes=seen.row.official_minutes,
        ),
        findings=(*unread(own.findings, _HINT), finding),
        run_findings=tuple(unread(own.run_findings, _HINT)),
        summarized=seen.summarized,
    )


def _found(submission: Submission, files: ResultSet) -> tuple[ResultSet, ...]:
    """The sets whose logs the official checkers find for a set, by the names in its path."""
    name, system = submission.name, files.system or ""
    if not _SPECIAL & {*name, *system}:
        return (files,)
    return tuple(
        each
        for each in submission.result_sets
        if fnmatchcase(name, name)
        and fnmatchcase(each.system or "", system)
        and (each.scaling_mode, each.benchmark) == (files.scaling_mode, files.benchmark)
    )
