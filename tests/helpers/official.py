"""What the official tools say of a log or a submission tree, in process or as processes.

They write ``scaling.json`` and more into what they read, so most of them get a copy of their own.
"""

import csv
import io
import logging
import re
import runpy
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from logging.handlers import BufferingHandler
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from mlperf_logging.benchmark_meta import get_allowed_benchmarks
from mlperf_logging.compliance_checker import mlp_compliance
from mlperf_logging.package_checker import package_checker
from mlperf_logging.rcp_checker import rcp_checker
from mlperf_logging.repo_checker import repo_checker
from mlperf_logging.result_summarizer import result_summarizer

from mlperf_pkg.submission.model import PARAMS, TRAIN_SAMPLES, top_params
from tests.helpers.forked import forked
from tests.parity.incumbent import cached_rules, quickened

SUCCESS = "PACKAGE CHECKER FOUND NO ERRORS, SUCCESS !"
NO_RULES_OF_NAMES = ("0.7.0", "1.0.0", "1.1.0")
_DIRECTORY = " Running compliance checks in dir "
_PATH = re.compile(r"\S*/result_\d+\.txt")


def run_package_checker(*arguments: str) -> tuple[int, list[logging.LogRecord]]:
    """Return the exit status of its command line and what it logs; it writes into the
    submission.
    """
    args = package_checker.get_parser().parse_args(arguments)
    flags = (args.rcp_bypass, args.rcp_bert_train_samples, args.seed_checker_bypass)
    mlp_compliance.enqueued_configs.clear()
    root, handler, status = logging.getLogger(), BufferingHandler(sys.maxsize), 0
    handler.setLevel(logging.INFO)
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with quickened(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of several seeds: printed, and without effect
            package_checker.check_training_package(
                args.folder, args.usage, args.ruleset, args.quiet, args.werror, *flags, "log"
            )
    except Exception:  # noqa: BLE001 - whatever it raises
        status = 1
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        mlp_compliance.enqueued_configs.clear()
    return status, handler.buffer


def run_summarizer(*arguments: str) -> int:
    """Return the exit status of its command line."""
    mlp_compliance.enqueued_configs.clear()
    silence = io.StringIO()
    try:
        with (
            cached_rules(),
            mock.patch("sys.argv", ["x", *arguments]),
            redirect_stdout(silence),
            redirect_stderr(silence),
        ):
            result_summarizer.main()
    except Exception:  # noqa: BLE001 - whatever it raises
        return 1
    return 0


@contextmanager
def _copy(tree: Path) -> Iterator[Path]:
    with TemporaryDirectory() as scratch:
        yield Path(shutil.copytree(tree, Path(scratch) / tree.name))


def package_checked(
    tree: Path, ruleset: str, usage: str = "training"
) -> tuple[bool, dict[str, Counter[str]]]:
    """Whether the package checker is content, and the errors of each folder, without paths."""
    with _copy(tree) as copy:
        return _checked(copy, ruleset, usage)


def _checked(copy: Path, ruleset: str, usage: str) -> tuple[bool, dict[str, Counter[str]]]:
    status, records = run_package_checker(str(copy), usage, ruleset, "--quiet")
    assert status == 0
    errors: dict[str, Counter[str]] = {}
    folder = ""
    for record in records:
        message = record.getMessage()
        if message.startswith(_DIRECTORY):
            folder = Path(message.removeprefix(_DIRECTORY)).relative_to(copy).as_posix()
        if record.levelno >= logging.ERROR:
            text = _PATH.sub("PATH", message.replace(str(copy), "TREE"))
            errors.setdefault(folder, Counter()).update(text.split("\n"))
    return any(SUCCESS in record.getMessage() for record in records), errors


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
    return judged(tree, ruleset, usage)[1]


def judged(
    tree: Path, ruleset: str, usage: str = "training"
) -> tuple[tuple[bool, dict[str, Counter[str]]], dict[tuple[str, str], float]]:
    """What ``package_checked`` and ``summary`` return, of one copy."""
    with _copy(tree) as copy, quickened():
        checked = _checked(copy, ruleset, usage)
        mlp_compliance.enqueued_configs.clear()
        table, *_ = result_summarizer.summarize_results(str(copy), usage, ruleset)
    scores = {}
    for row in table.to_dict("records"):
        system = Path(row["details_url"]).stem
        for benchmark in get_allowed_benchmarks(usage, ruleset):
            if row[benchmark] is not None and row[benchmark] == row[benchmark]:  # not NaN
                scores[system, benchmark] = row[benchmark]
    return checked, scores


# ---- verdicts on trees that nobody else needs ----


def package_verdict(
    root: Path, caplog: pytest.LogCaptureFixture, usage: str = "training", ruleset: str = "2.0.0"
) -> str:
    """``pass``, ``fail``, or ``crash`` where it raises; with the flags at the top, as on upload."""
    caplog.clear()
    flags = {flag for params in root.glob(PARAMS) for flag in top_params(params.read_bytes()).flags}
    options = [f"--{name}" for name in ("rcp-bypass", "seed-checker-bypass") if name in flags]
    options += ["--rcp-bert-train-samples"] if flags & TRAIN_SAMPLES else []
    status, _ = run_package_checker(str(root), usage, ruleset, *options)
    return "crash" if status else "pass" if SUCCESS in caplog.messages else "fail"


def repository_passes(root: Path, caplog: pytest.LogCaptureFixture, ruleset: str) -> bool:
    """Whether the repository checker is content; it takes rounds from 2.0 on."""
    if ruleset in NO_RULES_OF_NAMES:
        return True
    caplog.clear()
    with caplog.at_level("INFO"):
        repo_checker.run_checks(str(root))
    return "ALL CHECKS PASSED." in caplog.messages


def official_verdict(
    root: Path,
    scratch: Path,
    caplog: pytest.LogCaptureFixture,
    usage: str = "training",
    ruleset: str = "2.0.0",
) -> tuple[str, str]:
    """What an upload meets: the verdict of both checkers on a copy, and what they said."""
    copy = Path(shutil.copytree(root, scratch / "copy" / root.name, symlinks=True))
    package = package_verdict(copy, caplog, usage, ruleset)
    package_log = caplog.text
    accepted = repository_passes(copy, caplog, ruleset) and package == "pass"
    return ("pass" if accepted else "fail"), f"{package}\n{package_log}{caplog.text}"


# ---- verdicts on logs ----


def officially_valid(log: bytes, folder: Path, usage: str, ruleset: str) -> bool:
    """The verdict of the compliance checker; it may raise as well."""
    path = folder / "result_0.txt"
    path.write_bytes(log)
    mlp_compliance.enqueued_configs.clear()
    checker = mlp_compliance.make_checker(usage, ruleset, quiet=False, werror=True)
    with quickened():
        valid, *_ = mlp_compliance.main(str(path), f"{usage}_{ruleset}/common.yaml", checker)
    return bool(valid)


def official_rcp(
    logs: list[bytes], folder: Path, usage: str, ruleset: str
) -> tuple[bool, str, float]:
    """Verdict, message and normalization of the RCP checker."""
    for number, log in enumerate(logs):
        (folder / f"result_{number}.txt").write_bytes(log)
    with quickened():
        passed, message, normalization = rcp_checker.check_directory(
            str(folder), usage, ruleset, False, False, rcp_pass="pruned_rcps"
        )
    return bool(passed), message, float(normalization)


# ---- the summarizer ----

Rows = list[list[str]]


def official_files(tree: Path, usage: str, ruleset: str, scratch: Path) -> dict[str, str]:
    """Return the files that its first run writes for a submission, by name; none if it crashes."""
    copy = shutil.copytree(tree, scratch / "copy" / tree.name)
    written = scratch / "written"
    written.mkdir()
    status = run_summarizer(str(copy), usage, ruleset, "--csv", str(written / "summary.csv"))
    shutil.rmtree(copy)
    files = () if status else written.iterdir()
    return {path.name: path.read_text("utf-8") for path in files}


def rows(text: str) -> Rows:
    """The rows of a CSV file."""
    return list(csv.reader(io.StringIO(text)))


def tables(text: str) -> list[Rows]:
    """The tables of one file: that of weak scaling is appended to the other one."""
    parts: list[Rows] = []
    for row in rows(text):
        if row[0] == "division":
            parts.append([])
        parts[-1].append(row)
    return parts


# ---- as processes ----


def official(module: str, *arguments: str, cwd: Path) -> CompletedProcess[str]:
    """Do as ``python -m MODULE ARGUMENTS`` in a folder."""

    def run() -> None:
        mlp_compliance.enqueued_configs.clear()
        sys.argv = [module, *arguments]
        with quickened():
            runpy.run_module(module, run_name="__main__", alter_sys=True)

    return forked(run, cwd)
