"""What the official tools say of a check, and the ``scaling.json`` that they write.

No other module writes that file. The package checker and the summarizer test the convergence of
Closed sets. If there is a reference point for a set, they remove its file, and write a new one if
the set converges faster. (mlperf_logging: rcp_checker, package_checker, result_summarizer)
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.findings import Basis, Finding, Severity, Unchecked
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.paths import AnyPath, ListedPath
from mlperf_pkg.results.rcp import RcpResult
from mlperf_pkg.results.report import Report
from mlperf_pkg.submission.model import PARAMS, Place

_CRASHES = frozenset([
    "LOG113", "RCP103", "SET104", "SET110",
    "SYS001", "SYS002", "SYS003", "SYS004", "SYS102",
    "TREE103", "TREE104", "TREE106", "TREE107", "TREE108", "TREE109", "POW104", "POW105",
])  # fmt: skip
"""Codes of findings on which an official tool raises an exception."""
_SUMMARIZER_CRASHES = frozenset({"LOG113", "SET104", "TREE107", "TREE108", "POW105", "SET130"})
"""Codes of findings on which the summarizer raises an exception, besides those on descriptions."""


def rejects(findings: Iterable[Finding]) -> bool:
    """Return whether the official package checker finds errors, or something was not checked."""
    for finding in findings:
        is_of_repository_checker = finding.code.startswith("REPO")
        is_reason = finding.fails(Basis.OFFICIAL) or isinstance(finding, Unchecked)
        if is_reason and not is_of_repository_checker:
            return True
    return False


def crash_paths(findings: Iterable[Finding]) -> set[str]:
    """Return the paths at which an official tool raises an exception."""
    errors = (finding for finding in findings if finding.fails(Basis.OFFICIAL))
    return _paths(error for error in errors if error.code in _CRASHES)


def package_crash_paths(checked: Checked) -> set[str]:
    """Return the paths at which the package checker raises an exception.

    It reads the division from the description of each system with results, even before round 1.0.
    """
    paths = crash_paths(checked.report.findings)
    for context in checked.contexts:
        if context.system and not _has_division(context.system):
            paths.add(context.path)
    return paths


def _has_division(system: SystemFile) -> bool:
    """Return whether a description can be read and, where it is an object, has the division."""
    if any(finding.code == "TREE114" for finding in system.findings):
        return False
    return not system.contents or "division" in system.contents


def summary_crash_paths(findings: Iterable[Finding]) -> set[str]:
    """Return the paths in result sets at which the summarizer raises an exception."""
    return _paths(f for f in findings if f.code in _SUMMARIZER_CRASHES)


def _paths(findings: Iterable[Finding]) -> set[str]:
    places = chain.from_iterable(finding.occurrences for finding in findings)
    return {place.path for place in places}


def warned_runs(report: Report) -> set[str]:
    """Return the logs that ``--werror`` rejects: a key is logged several times with one value."""
    notes = (finding for finding in report.findings if finding.severity is Severity.NOTE)
    return _paths(finding for finding in notes if finding.expected == "logged once")


# ---- scaling.json -------------------------------------------------------------------------


def write_as_checked(checked: Checked) -> None:
    """Write the factors of the sets that the package checker tests before it ends or crashes."""
    (submission,) = checked.inputs[0].submissions
    crashes = package_crash_paths(checked)
    systems = f"{submission.place.child('systems').label}/"
    if any(path.startswith(systems) for path in crashes):
        return
    tested = {}
    for context, result in zip(checked.contexts, checked.sets, strict=True):
        if context.rcp_required and not context.officially_skipped:
            tested[context.path] = (context.files.place.path, result.rcp_result)
    levels = 3 if checked.report.usage == "hpc" else 2
    for folder in _folders(submission.place.child("results"), levels):
        if _is_hit(folder.label, crashes):
            return
        if folder.label in tested:
            write_factor(*tested[folder.label])


def write_as_summarized(checked: Checked, tested: Sequence[str]) -> None:
    """Write the factors of the sets at the paths ``tested``, until the summarizer crashes."""
    crashes = summary_crash_paths(checked.report.findings)
    sets = {}
    for context, result in zip(checked.contexts, checked.sets, strict=True):
        sets[context.path] = (context.files.place.path, result.summarized.test)
    for path in tested:
        if _is_hit(path, crashes):
            return
        write_factor(*sets[path])


def _folders(folder: Place, levels: int) -> Iterator[Place]:
    """Yield the folders ``levels`` below a folder, in the order of the file system."""
    if levels == 0:
        yield folder
        return
    for path in Path(str(folder.path)).iterdir():
        if path.is_dir():
            yield from _folders(folder.child(path.name), levels - 1)


def _is_hit(folder: str, crashes: Collection[str]) -> bool:
    """Return whether a tool crashes on a file in a folder, or on a folder around it."""
    for path in crashes:
        around = path.removesuffix(f"/{PARAMS}")
        if folder.startswith(f"{around}/") or f"{path}/".startswith(f"{folder}/"):
            return True
    return False


def write_factor(folder: AnyPath, test: RcpResult | None) -> None:
    """Write the factor of a set into its folder, or remove the file if there is no factor.

    A set that was not compared with a reference point keeps its file.
    """
    if test is None or test.reference_mean is None or isinstance(folder, ListedPath):
        return
    file = folder / "scaling.json"
    if test.official_pass and test.normalization > 1:
        text = json.dumps({"scaling_factor": test.normalization})
        write_whole(file, text, replace=True)
    else:
        file.unlink(missing_ok=True)
