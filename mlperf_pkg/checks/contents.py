"""The submission as a whole: something to check, results for every system, and code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mlperf_pkg.checks.organisations import are_alike, are_same
from mlperf_pkg.checks.system_values import system_finding
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import Basis, Finding, Severity, without_official
from mlperf_pkg.infra.source import SUFFIXES
from mlperf_pkg.rulebook.codes import codes
from mlperf_pkg.submission.model import ResultSet, Submission

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
