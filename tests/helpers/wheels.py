"""The wheel of this checkout, and an environment that has it, made once for all processes of the tests."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from mlperf_pkg.rulebook.documents import COMPILED

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
NO_ISOLATION = ("--no-build-isolation",) if find_spec("setuptools_scm") else ()
"""An environment that has what builds a wheel is not made again for each."""

SOURCES = (
    "mlperf_pkg",
    "docs",
    "rules",
    "systems",
    "setup.cfg",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)


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


def copied_source(folder: Path) -> Path:
    """What is in git and goes into a wheel, without what a checkout makes of it."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    (source / "rules" / COMPILED).unlink(missing_ok=True)
    return source


NOT_IN_GIT = (
    ".git", ".venv*", "__pycache__", "*.egg-info", "*.so", "build", "dist", "reference", COMPILED,
    ".*_cache", ".hypothesis", "shared",
)  # fmt: skip


def source_distribution(folder: Path) -> Path:
    """That of a copy of the checkout, ``checkout`` beside it."""
    checkout = folder / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*NOT_IN_GIT))
    options = ("--no-isolation", "--sdist") if NO_ISOLATION else ("--sdist",)
    command = (sys.executable, "-m", "build", *options, "--outdir", folder, checkout)
    built = run(*command, cwd=folder)
    assert built.returncode == 0, built.stderr
    (archive,) = folder.glob("*.tar.gz")
    return archive


def built_wheel(folder: Path, source: Path, **more: str) -> Path:
    options = ("--no-deps", *NO_ISOLATION, "--wheel-dir", folder)
    built = run(*PIP, "wheel", *options, source, cwd=folder, **more)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, in a folder that it has to itself, to its source and to the environment of ``tool``.

    The source is the distribution of it, or a copy without the tool that builds one.
    """
    source = source_distribution if find_spec("build") else copied_source
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each has a folder in that of the session
        folder = folder.parent
    with only_one(folder / "wheel") as folder:
        return next(folder.glob("*.whl"), None) or built_wheel(folder, source(folder))


@pytest.fixture(scope="session")
def tool(wheel: Path) -> Path:
    """The command of an environment that has nothing but the wheel and its dependencies."""
    with only_one(wheel.parent) as folder:
        command = folder / "env" / "bin" / "mlperf-pkg"
        if not command.exists():
            _install(wheel, folder / "env")
        return command


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
