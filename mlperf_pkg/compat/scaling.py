"""Write ``scaling.json`` into result sets, as the official tools do; no other module does this.

The package checker and the summarizer test the convergence of Closed sets. If there is a reference
point for a set, they remove its file, and write a new one if the set converges faster.
(mlperf_logging: rcp_checker, package_checker, result_summarizer)
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.rcp import rcp_test
from mlperf_pkg.compat.judged import package_crash_paths, summary_crash_paths
from mlperf_pkg.infra.files import write_whole
from mlperf_pkg.infra.paths import AnyPath, ListedPath
from mlperf_pkg.results.rcp import RcpResult
from mlperf_pkg.submission.model import PARAMS, Place


def write_as_checked(checked: Checked) -> None:
    """Write the factors of the sets that the package checker tests before it ends or crashes."""
    (submission,) = checked.inputs[0].submissions
    crashes = package_crash_paths(checked)
    systems = f"{submission.place.child('systems').label}/"
    if any(path.startswith(systems) for path in crashes):
        return
    contexts = {context.path: context for context in checked.contexts}
    levels = 3 if checked.report.usage == "hpc" else 2
    for folder in _folders(submission.place.child("results"), levels):
        if _is_hit(folder.label, crashes):
            return
        context = contexts.get(folder.label)
        if context and context.rcp_required and not context.officially_skipped:
            write_factor(context.files.place.path, rcp_test(context))


def write_as_summarized(checked: Checked, tested: Sequence[str]) -> None:
    """Write the factors of the sets at the paths ``tested``, until the summarizer crashes."""
    crashes = summary_crash_paths(checked.report.findings)
    sets = {
        context.path: (context.files.place.path, result.summarized.test)
        for context, result in zip(checked.contexts, checked.sets, strict=True)
    }
    for path in tested:
        if _is_hit(path, crashes):
            return
        write_factor(*sets[path])


def _folders(folder: Place, levels: int) -> Iterator[Place]:
    """Yield the folders ``levels`` below a folder, in the order of the file system."""
    for path in Path(str(folder.path)).iterdir():
        if path.is_dir():
            child = folder.child(path.name)
            yield from _folders(child, levels - 1) if levels > 1 else (child,)


def _is_hit(folder: str, crashes: Collection[str]) -> bool:
    """Return whether a tool crashes on a file in a folder, or on a folder around it."""
    return any(
        f"{path}/".startswith(f"{folder}/")
        or folder.startswith(f"{path.removesuffix(f'/{PARAMS}')}/")
        for path in crashes
    )


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
