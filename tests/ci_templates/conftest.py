"""A repository to check, and environments to install the tool in."""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.helpers.ci import PATH
from tests.helpers.trees import simulated, write_set, write_system
from tests.helpers.wheels import folder_of_all, only_one

COPIES = """#!/bin/sh
if [ "$#" = 4 ] && [ "$1 $2 $3" = "-I -m venv" ]; then
  mkdir -p "$4" && exec cp -a "{empty}/." "$4"
fi
exec "{python}" "$@"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with ``logs/`` and ``systems/`` that nothing is wrong with."""
    top = tmp_path / "repository"
    write_set(top / "logs", simulated())
    write_system(top / "systems")
    return top


@pytest.fixture(scope="session")
def copying(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The PATH with a ``python -I -m venv`` that copies an environment: to make one takes seconds.

    Any other way to call it is that of the PATH.
    """
    with only_one(folder_of_all(tmp_path_factory) / "environments") as folder:
        empty = folder / "empty"
        program = folder / "bin" / "python"
        if not program.exists():
            made = [sys.executable, "-I", "-m", "venv", "--without-pip", str(empty)]
            subprocess.run(made, check=True)
            (packages,) = empty.glob("lib/python*/site-packages")
            for name in ("pip", f"pip-{version('pip')}.dist-info"):  # with what is compiled of it
                shutil.copytree(Path(sysconfig.get_path("purelib"), name), packages / name)
            program.parent.mkdir()
            python = shutil.which("python", path=PATH)
            program.write_text(COPIES.format(empty=empty, python=python), "utf-8")
            program.chmod(0o755)
    return f"{program.parent}:{PATH}"
