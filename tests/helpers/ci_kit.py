"""What is shipped for CI, and ways to try it."""

from __future__ import annotations

import os
import shutil
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser

from tests.helpers.ci_runner import ROOT, TOOLS

KIT = ROOT / "ci-templates"
DOCS = (ROOT / "docs" / "ci.md").read_text("utf-8")
RECIPE: list[dict[str, Any]] = [
    step
    for step in DockerfileParser(fileobj=BytesIO((KIT / "Containerfile").read_bytes())).structure
    if step["instruction"] != "COMMENT"
]
HAS_NETWORK = pytest.mark.skipif(
    not os.environ.get("MLPERF_PKG_NETWORK"),
    reason="installs from the package index: set MLPERF_PKG_NETWORK=1",
)
# The dependencies of this environment need not be installed, except by a Python that is isolated (-I):
# that one finds them in the cache, and compiles what it imports.
QUICK = {
    "PYTHONPATH": str(next(TOOLS.parent.glob("lib/python*/site-packages"))),
    "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip")),
    "PIP_COMPILE": "0",
}


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip a test where a program is not installed."""
    return pytest.mark.skipif(not _installed(tool), reason=f"needs {tool}")


def _installed(tool: str) -> bool:
    return shutil.which(tool, path=f"{TOOLS}:{os.environ['PATH']}") is not None


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it where the tool is on the PATH."""
    env = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", **more}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def instructions(name: str) -> list[str]:
    """What follows each instruction of this name in the container's recipe."""
    return [step["value"] for step in RECIPE if step["instruction"] == name]


def spoil(repository: Path) -> None:
    """Take the benchmark, which the rules want logged, from one log."""
    log = repository / "logs" / "result_1.txt"
    log.write_bytes(log.read_bytes().replace(b"submission_benchmark", b"submission_bench"))


def sources() -> list[str]:
    """Names of what an installation needs: what the recipe copies from here."""
    copies = [copy.split() for copy in instructions("COPY")]
    return [name for parts in copies if "--from" not in parts[0] for name in parts[:-1]]


def copied(folder: Path, *more: str) -> Path:
    """The sources, as a folder of their own."""
    for name in (*sources(), *more):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, target)
    return folder
