"""A system that is full, or fails: a message, no part of an output, and nothing lost."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlperf_pkg.infra.resources import PACKAGE
from tests.helpers.mounts import bind, with_own_mounts
from tests.helpers.program import call, start
from tests.helpers.trees import write_submission
from tests.helpers.workspaces import everything_below

ROUND = "training_results_v2.0"

WRITING = (
    "check {round} -o json:report.json -o junit:r.xml",
    "score {round} --tables tables",
    *("results {round} -o summary", "results {round} -o old --force"),
    "review {round} -o review",
    *("report {round} -o page.html", "report {round} --draw times -o charts"),
    *(f"export {{round}} -o r.{kind}" for kind in ("csv", "sqlite", "parquet")),
    "export {round} -o old.sqlite --replace",
    "pack {round}/ACME -o a.tar.gz --invalid keep",
    "simulate logs --benchmark resnet --system x --submitter ACME",
    "simulate round --submitters 1 --system-count 1",
)


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A round, and what earlier commands wrote of it."""
    top = tmp_path_factory.mktemp("full")
    write_submission(top / ROUND / "ACME")
    assert [
        arguments
        for arguments in (("results", "-o", top / "old"), ("export", "-o", top / "old.sqlite"))
        if call(arguments[0], top / ROUND, *arguments[1:]).exit_code not in (0, 1)
    ] == []
    return top


@contextmanager
def files_of(size: int) -> Iterator[None]:
    """Files of at most ``size`` bytes, as with ``ulimit -f``: a full disk."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("line", WRITING)
def test_no_space(line: str, top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(top / "old", tmp_path / "old")
    shutil.copy(top / "old.sqlite", tmp_path)
    monkeypatch.chdir(tmp_path)
    before = everything_below(tmp_path)
    with files_of(500):
        result = call(*line.format(round=top / ROUND).split())
    assert (result.exit_code, everything_below(tmp_path)) == (2, before), result.output
    assert "cannot be written" in result.stderr
    assert "bug" not in result.stderr


# ---- a disk or a server that fails ----------------------------------------------------------

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t read(int fd, void *buffer, size_t size) {
  char link[64], path[4096] = "";
  ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, getenv("FAILING"))) {
    errno = atoi(getenv("ERRNO"));
    return -1;
  }
  return real(fd, buffer, size);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes the reading of some files fail."""
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no compiler")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    options = ["-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run([compiler, *options], input=SHIM.encode(), check=True)
    return library


@pytest.mark.parametrize(
    ("error", "failing", "command", "status", "text"),
    [
        (errno.EIO, "result_0.txt", "check", 1, "the log cannot be read: Input/output error"),
        (
            errno.ESTALE,
            "/systems/",
            "check",
            1,
            "as it cannot be read (Stale file handle)",
        ),
        (errno.EIO, "result_0.txt", "compare", 2, "result_0.txt: Input/output error"),
    ],
)
def test_reading_fails(
    error: int, failing: str, command: str, status: int, text: str, shim: Path, top: Path
) -> None:
    failing = f"{top / ROUND}/ACME/systems/" if failing == "/systems/" else failing
    system = {"LD_PRELOAD": str(shim), "FAILING": failing, "ERRNO": str(error)}
    process = start(command, top / ROUND, COLUMNS="200", **system)
    output, errors = process.communicate()
    assert (process.returncode, text in (output + errors).decode()) == (status, True)
    assert b"bug" not in output + errors


# ---- mounts -------------------------------------------------------------------------------


def test_folders_that_are_mounted_in_one_another(top: Path, tmp_path: Path) -> None:
    """Each run counts once, and one finding names the other places."""
    (source,) = (top / ROUND / "ACME" / "results").glob("*/*")
    logs = Path(shutil.copytree(source, tmp_path / "logs"))
    (logs / "loop").mkdir()

    def check() -> None:
        bind(logs, logs / "loop")
        bind(logs, logs / "loop" / "loop")
        sys.stdout.write(call("check", logs, "--round", "2.0", "--format", "json").stdout)

    report = json.loads(with_own_mounts(check, tmp_path).stdout)
    (a_set,) = report["result_sets"]
    (copies,) = [f["message"] for f in report["findings"] if f["code"] == "RAW102"]
    assert (a_set["runs_found"], copies.partition(" (")[0]) == (5, "15 logs")
    assert ") are copies of other logs; " in copies


def test_an_installation_and_a_cache_that_cannot_be_written(top: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()

    def report() -> None:
        bind(PACKAGE.parent, PACKAGE.parent, read_only=True)
        bind(tmp_path / "cache", tmp_path / "cache", read_only=True)
        os.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
        done = call("report", top / ROUND, "-o", "page.html")
        sys.stdout.write(f"{done.exit_code} {done.output}")

    assert with_own_mounts(report, tmp_path).stdout.startswith("0 ")
    assert everything_below(tmp_path).keys() == {"cache", "page.html"}


def test_interrupted_while_modules_are_imported() -> None:
    code = """
import os, signal, sys
class Finder:
    def find_spec(name, *_):
        if name == "mlperf_pkg.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
from mlperf_pkg.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, b"", b"")
