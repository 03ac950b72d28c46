"""The wheel of this checkout, and an environment that has it, made once for all processes of the
tests.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlperf_pkg.rulebook.documents import COMPILED

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command, with ``more`` variables in its environment."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
    )


NOT_IN_GIT = (
    ".git",
    ".venv*",
    "__pycache__",
    "*.egg-info",
    "*.so",
    "build",
    "dist",
    "reference",
    COMPILED,
    ".*_cache",
    ".hypothesis",
    "shared",
)


def _built(folder: Path) -> Path:
    """The wheel of the source distribution of a copy of the checkout, both as ``pip`` builds them.

    The copy is ``checkout`` beside it, and ``unpacked`` what the distribution has.
    """
    checkout = folder / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*NOT_IN_GIT))
    _build("sdist", checkout, folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    _build("wheel", source, folder)
    return next(folder.glob("*.whl"))


def _build(what: str, source: Path, folder: Path) -> None:
    code = f"from setuptools import build_meta as b; b.build_{what}({str(folder)!r})"
    done = run(sys.executable, "-c", code, cwd=source, MLPERF_PKG_REPOSITORY="")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, in a folder that it has to itself, to its source and to the environment of
    ``tool``.
    """
    with only_one(folder_of_all(tmp_path_factory) / "wheel") as folder:
        return next(folder.glob("*.whl"), None) or _built(folder)


@pytest.fixture(scope="session")
def tool(wheel: Path) -> Path:
    """The command of an environment that has nothing but the wheel and its dependencies."""
    with only_one(wheel.parent) as folder:
        command = folder / "env" / "bin" / "mlperf-pkg"
        if not command.exists():
            _install(wheel, folder / "env")
        return command


def folder_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of the tests share."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each has a folder in that of the session
        folder = folder.parent
    return folder


@contextmanager
def only_one(folder: Path) -> Iterator[Path]:
    """Provide a folder to one process at a time."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _install(wheel: Path, environment: Path) -> None:
    made = run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=wheel.parent)
    assert made.returncode == 0, made.stderr
    # The dependencies are those of this environment; a path file finds them without its hooks.
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = environment / "bin" / "python"
    installed = run(
        *PIP, "--python", python, "install", "--no-compile", "--no-deps", wheel, cwd=wheel.parent
    )
    assert installed.returncode == 0, installed.stderr
