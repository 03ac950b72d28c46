"""The code of a benchmark: the files by which others can run it again.

Source: submission_rules, Directory structure and the two sections on source code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from mlperf_pkg.checks.context import SetContext, set_finding
from mlperf_pkg.findings import Basis, Finding, Severity

_ERROR_FROM = (6, 1)  # published code of earlier rounds often lacks a file
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
        yield _finding(context, "CODE101", f"no code in {folder}")
        return
    if not readmes(code.files):
        yield _finding(context, "CODE103", f"no README in {folder}; expected one with the command")
    elif not code.has_command:
        message = f"no README in {folder} has a command; expected the one that runs the benchmark"
        yield _finding(context, "CODE103", message)
    names = {PurePosixPath(path).name for path in code.files}
    if not any(name.startswith("run_and_time") for name in names):
        message = f"no file {{expected}} in {folder}"
        yield _finding(context, "CODE104", message, expected="run_and_time.sh")
    yield from _configurations(context, folder, names)


def _configurations(context: SetContext, folder: str, names: set[str]) -> Iterator[Finding]:
    """Check that the files exist that the logs name."""
    for run in context.runs:
        for config, line in run.config_files.items():
            if config.strip('"').rpartition("/")[2] not in names:
                yield _finding(
                    context,
                    "CODE102",
                    f"config_filename is {{found:s}}, which is not a file in {folder}",
                    found=config.strip('"'),
                    path=run.path,
                    line=line,
                )


def _finding(context: SetContext, code: str, message: str, **fields: Any) -> Finding:
    is_error = context.round.usage == "training" and context.round.version >= _ERROR_FROM
    severity = Severity.ERROR if is_error else Severity.WARNING
    return set_finding(context, code, message, basis=Basis.RULES, severity=severity, **fields)
