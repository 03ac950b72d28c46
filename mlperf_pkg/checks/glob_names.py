"""Folder names that the official checkers treat as glob patterns, and so read other logs or none.

They look for ``<submitter>/results/<system>/<benchmark>/result_*.txt`` with glob, in which ``[``,
``*`` and ``?`` have a meaning. (mlperf_logging: package_checker, rcp_checker and
result_summarizer)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from mlperf_pkg.checks.context import PACKAGE_CHECKER, SetContext, set_finding
from mlperf_pkg.checks.result_sets import SetResult, check_set, unread
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import ResultSet

_SPECIAL = frozenset("[*?")
_HINT = "the package checker reads other logs for this folder"


def check_globbed_set(
    context: SetContext, sets: Sequence[ResultSet], runs: Mapping[str, Run]
) -> SetResult:
    """Judge a set by its own logs, but officially by those that the official checkers find.

    ``sets`` and ``runs`` are all of the submission; ``runs`` are by path.
    """
    own = check_set(context)
    matches = _matches(context, sets)
    if matches == (context.files,) or context.officially_skipped:
        return own
    logs = tuple(log for files in matches for log in files.logs)
    globbed = replace(
        context,
        files=replace(context.files, logs=logs),
        runs=tuple(runs[log.label] for log in logs),
    )
    official = check_set(globbed)
    verdict = official.row.verdict.official
    return replace(
        own,
        row=replace(
            own.row,
            verdict=Verdicts(verdict, own.row.verdict.rules),
            official_minutes=official.row.official_minutes,
        ),
        findings=(
            *unread(own.findings, _HINT),
            _finding(context, matches, verdict),
        ),
        run_findings=tuple(unread(own.run_findings, _HINT)),
        summarized=official.summarized,
    )


def _finding(context: SetContext, matches: tuple[ResultSet, ...], verdict: Verdict) -> Finding:
    logs = sum(len(files.logs) for files in matches)
    folders = ", ".join(files.place.label for files in matches)
    pattern = "/".join(filter(None, [context.submitter, "results", context.files.system]))
    return set_finding(
        context,
        "SET116",
        f"the official checkers treat {pattern} as a pattern: they find {logs} logs for this"
        f" folder{f', in {folders}' if folders else ''}",
        severity=Severity.ERROR if verdict is Verdict.FAIL else Severity.WARNING,
        basis=Basis.OFFICIAL,
        source=PACKAGE_CHECKER,
        hint="rename the folder without [, * and ?",
    )


def _matches(context: SetContext, sets: Sequence[ResultSet]) -> tuple[ResultSet, ...]:
    """Return the sets whose logs the official checkers find for a set, by the names in its path."""
    files, name, system = context.files, context.submitter or "", context.files.system or ""
    if not context.origin.has_folder or _SPECIAL.isdisjoint(name + system):
        return (files,)
    return tuple(
        other
        for other in sets
        if fnmatchcase(name, name)
        and fnmatchcase(other.system or "", system)
        and (other.scaling_mode, other.benchmark) == (files.scaling_mode, files.benchmark)
    )
