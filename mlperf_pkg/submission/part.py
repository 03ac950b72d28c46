"""Find the part of a submission that a folder inside its tree is, with what describes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from mlperf_pkg.infra.paths import AnyPath, ListedPath, with_slashes
from mlperf_pkg.submission.find import find_input, labels
from mlperf_pkg.submission.model import Input, ResultSet, Submission
from mlperf_pkg.submission.twice import each_once

_DEPTH = 3  # results/<system>/<strong or weak>/<benchmark>


def find_parts(arguments: Sequence[str]) -> tuple[Input, ...]:
    """Find the inputs of a command, each as ``find_part`` does; those named twice are read once.

    Raises:
        UserError: as ``find_input``.
    """
    prefixes = labels(arguments)
    inputs = each_once(arguments, list(map(find_input, arguments, prefixes)))
    return tuple(
        find_part(argument, prefix) if contents.every_log else contents
        for argument, prefix, contents in zip(arguments, prefixes, inputs, strict=True)
    )


def find_part(
    argument: str, prefix: str = "", wanted: Callable[[ResultSet], bool] = lambda _: True
) -> Input:
    """Find an input as ``find_input`` does, with only the result sets that are ``wanted``.

    A folder below ``results/`` of a submission is that part of it: its result sets have the system
    names of the tree, and their systems are described.

    Raises:
        UserError: as ``find_input``.
    """
    path = Path(argument).resolve()
    contents = find_input(argument, prefix)  # raises if something is wrong with the argument
    for results in (path, *path.parents)[: _DEPTH + 1] if path.is_dir() else ():
        if results.name == "results" and (results.parent / "systems").is_dir():
            whole = with_slashes(os.path.relpath(results.parent))
            contents = find_input(whole, prefix and whole)
            break
    parts = (_part(submission, path, wanted) for submission in contents.submissions)
    return replace(contents, submissions=tuple(parts))


def _part(submission: Submission, path: Path, wanted: Callable[[ResultSet], bool]) -> Submission:
    """Return a submission with the result sets in ``path`` or around it, and its systems."""
    sets = (
        result_set
        for result_set in submission.result_sets
        if _is_within(result_set.place.path, path) and wanted(result_set)
    )
    return replace(submission, result_sets=tuple(sets), entries=())


def _is_within(folder: AnyPath, path: Path) -> bool:
    """Return whether a folder is in ``path``, as all of an archive is that was named."""
    return isinstance(folder, ListedPath) or folder.resolve().is_relative_to(path)
