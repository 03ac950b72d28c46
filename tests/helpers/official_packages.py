"""What the official tools say of a submission tree.

They write ``scaling.json`` into what they read, so each of them gets a copy of its own.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mlperf_logging.benchmark_meta import get_allowed_benchmarks
from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.package_checker import package_checker
from mlperf_logging.repo_checker import repo_checker
from mlperf_logging.result_summarizer import result_summarizer

from tests.parity.incumbent import quickened

_SUCCESS = "PACKAGE CHECKER FOUND NO ERRORS"
_DIRECTORY = " Running compliance checks in dir "
_PATH = re.compile(r"\S*/result_\d+\.txt")


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def _heard(folder: Path, ruleset: str, usage: str) -> list[logging.LogRecord]:
    root, kept = logging.getLogger(), _Kept()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.INFO)
    mlp_compliance.enqueued_configs.clear()
    try:
        with quickened():
            package_checker.check_training_package(
                str(folder), usage, ruleset, True, False, False, False, False, "log"
            )
    finally:
        root.removeHandler(kept)
        root.setLevel(level)
    return kept.records


@contextmanager
def _copy(tree: Path) -> Iterator[Path]:
    with TemporaryDirectory() as scratch:
        yield Path(shutil.copytree(tree, Path(scratch) / tree.name))


def package_checked(
    tree: Path, ruleset: str, usage: str = "training"
) -> tuple[bool, dict[str, Counter[str]]]:
    """Whether the package checker is content, and the errors of each folder, without paths."""
    with _copy(tree) as copy:
        return _digest(_heard(copy, ruleset, usage), copy)


def _digest(
    records: Iterable[logging.LogRecord], copy: Path
) -> tuple[bool, dict[str, Counter[str]]]:
    errors: dict[str, Counter[str]] = {}
    folder = ""
    passed = False
    for record in records:
        message = record.getMessage()
        passed = passed or _SUCCESS in message
        if message.startswith(_DIRECTORY):
            folder = Path(message.removeprefix(_DIRECTORY)).relative_to(copy).as_posix()
        if record.levelno >= logging.ERROR:
            text = _PATH.sub("PATH", message.replace(str(copy), "TREE"))
            errors.setdefault(folder, Counter()).update(text.split("\n"))
    return passed, errors


def repository_errors(tree: Path) -> bool:
    """Whether the repository checker finds fault with the files. Its own answer is always no."""
    files = repo_checker.list_files_recursively(str(tree))
    folders = repo_checker.list_dirs_recursively(str(tree))
    return not (
        repo_checker._check_bad_filenames(files, folders)
        and repo_checker._check_file_sizes(files)
        and repo_checker._check_symbolic_links(str(tree), files)
    )


def summary(tree: Path, ruleset: str, usage: str = "training") -> dict[tuple[str, str], float]:
    """The official scores in minutes, by system and benchmark, scaled by the package checker."""
    with _copy(tree) as copy, quickened():
        _heard(copy, ruleset, usage)
        mlp_compliance.enqueued_configs.clear()
        table, *_ = result_summarizer.summarize_results(str(copy), usage, ruleset)
    scores = {}
    for row in table.to_dict("records"):
        system = Path(row["details_url"]).stem
        for benchmark in get_allowed_benchmarks(usage, ruleset):
            if row[benchmark] is not None and row[benchmark] == row[benchmark]:  # not NaN
                scores[system, benchmark] = row[benchmark]
    return scores
