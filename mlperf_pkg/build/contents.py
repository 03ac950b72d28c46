"""Every file of the tree to be built: where it goes and what it holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlperf_pkg.build.judge import JudgedSet, report
from mlperf_pkg.build.plan import Plan
from mlperf_pkg.build.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.errors import UserError
from mlperf_pkg.escape import visible
from mlperf_pkg.tables import results_csv, results_json, results_markdown

PARAMETERS = "package_checker_params"
_LARGEST_MIB = 50


@dataclass(frozen=True, slots=True)
class TreeFile:
    """One file: its path in the tree, and its bytes or the file to copy them from.

    ``origin`` is the copied file's path from the workspace, None for what is made here.
    """

    path: str
    content: bytes | Path
    origin: str | None = None


def tree_files(
    plan: Plan, judged: Sequence[JudgedSet], workspace: Workspace
) -> tuple[TreeFile, ...]:
    """The files of a submission, by path.

    Raises:
        UserError: a folder of code cannot be read.
    """
    files = [
        *_systems(plan, workspace),
        *_logs(plan, workspace),
        *parameters(judged),
        *_code(plan, workspace),
        *_tables(judged, workspace),
    ]
    return tuple(sorted(files, key=lambda file: file.path))


def unfit(files: Iterable[TreeFile]) -> Iterator[str]:
    """What the official repository checker would reject of the files: names and sizes."""
    for file in files:
        if " " in file.path:
            yield f"{visible(file.origin or file.path)}: its path may not hold a space"
        if isinstance(file.content, Path) and file.content.stat().st_size > _LARGEST_MIB << 20:
            yield f"{visible(file.origin or file.path)}: larger than {_LARGEST_MIB} MiB"


def _systems(plan: Plan, workspace: Workspace) -> Iterator[TreeFile]:
    for system in plan.systems:
        yield TreeFile(
            f"systems/{system.id}.json", workspace.sources[system.path], origin=system.path
        )


def _logs(plan: Plan, workspace: Workspace) -> Iterator[TreeFile]:
    for planned in plan.sets:
        for run, target in zip(planned.runs, planned.targets, strict=True):
            yield TreeFile(target, workspace.sources[run.path], origin=run.path)


def _tables(judged: Sequence[JudgedSet], workspace: Workspace) -> Iterator[TreeFile]:
    made = report(judged, workspace)
    yield TreeFile("results.csv", results_csv(made).encode())
    yield TreeFile("results.md", results_markdown(made).encode())
    yield TreeFile("results.json", results_json(made).encode())


# ---- bypasses -----------------------------------------------------------------------------


def parameters(judged: Iterable[JudgedSet]) -> Iterator[TreeFile]:
    """The bypasses of each set, where the official package checker finds them.

    It compares whole lines, with their line ends, so that only a last line without one is
    understood: a file holds one flag. The second of a set goes to its system's folder, where it
    counts for all benchmarks.
    """
    wider: dict[str, str] = {}
    for each in judged:
        flags = sorted(each.flags)
        for flag in flags[:1]:
            yield TreeFile(f"{each.planned.folder}/{PARAMETERS}", flag.encode())
        for flag in flags[1:]:
            wider[f"results/{each.planned.system.id}/{PARAMETERS}"] = flag
    for path, flag in wider.items():
        yield TreeFile(path, flag.encode())


# ---- code ---------------------------------------------------------------------------------


def _code(plan: Plan, workspace: Workspace) -> Iterator[TreeFile]:
    for benchmark, name in workspace.config.code.items():
        if benchmark not in plan.benchmarks:
            continue
        folder = workspace.folders.workspace / name
        target = f"benchmarks/{benchmark}/implementations/{folder.resolve().name}"
        try:
            below = list(_files_below(folder))
        except OSError as error:
            raise UserError(f"{CONFIG_NAME}: code of {benchmark}: {error}") from error
        for path in below:
            inner = path.relative_to(folder).as_posix()
            yield TreeFile(f"{target}/{inner}", path, workspace.folders.relative(path))


def _files_below(folder: Path) -> Iterator[Path]:
    """Regular files by name, without links and without what begins with a dot."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(folder / entry.name)
        elif entry.is_file(follow_symlinks=False):
            yield folder / entry.name
