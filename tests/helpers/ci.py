"""What is shipped for CI, and ways to try it: a runner of ``action.yml``, and what it obeys."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any
from zipfile import ZipFile, ZipInfo

import pytest
import yaml
from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
SHELL = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")  # what "shell: bash" stands for
TOOLS = Path(sys.executable).parent
PATH = f"{TOOLS}:{os.environ['PATH']}"

_VALUE = re.compile(r"\$\{\{ ([\w.-]+) \}\}")
_COMPARED = re.compile(r"([\w.-]+) (==|!=) '(\w*)'")
_COMMAND = re.compile(r"\s*::([\w-]+)( [^:]*)?::(.*)")
_OLD_COMMAND = re.compile(r".*?##\[([\w-]+)( [^\]]*)?\](.*)")
KNOWN = {"error", "warning", "notice", "debug", "add-mask", "set-output", "group", "stop-commands"}


@dataclass(frozen=True, slots=True)
class Done:
    """What is left of an action: status of the last step, log, outputs, summary."""

    status: int
    log: str
    outputs: Mapping[str, str]
    summary: str

    def annotations(self) -> list[tuple[str, str]]:
        """Kind and message of each, and of every other command that the runner would obey."""
        return obeyed(self.log)


@dataclass(slots=True)
class Runner:
    """Runs the scripts of the action in a folder; other actions that it uses are left out."""

    workspace: Path
    temporary: Path
    action: Path = ROOT
    more: Mapping[str, str] = field(default_factory=dict)

    def run(self, **values: str) -> Done:
        """Run it with these inputs, ``_`` for ``-``, the tool being the one under test."""
        inputs = {name: field["default"] for name, field in ACTION["inputs"].items()}
        named = {name.replace("_", "-"): value for name, value in values.items()}
        inputs |= {"version": "installed", **named}
        context = {f"inputs.{name}": value for name, value in inputs.items()}
        context["github.action_path"] = str(self.action)
        files = {name: self.temporary / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        status, log = 0, ""
        for step in ACTION["runs"]["steps"]:
            if "run" not in step or not _holds(step.get("if", ""), context):
                continue
            for file in files.values():
                file.open("a").close()
            status, output = self._step(step, context, files)
            log += output
            lines = files["GITHUB_OUTPUT"].read_text("utf-8").splitlines()
            pairs = (line.split("=", 1) for line in lines)
            context |= {f"steps.{step['id']}.outputs.{name}": value for name, value in pairs}
            files["GITHUB_OUTPUT"].unlink()
            if status:
                break
        outputs = {name: _filled(o["value"], context) for name, o in ACTION["outputs"].items()}
        return Done(status, log, outputs, files["GITHUB_STEP_SUMMARY"].read_text("utf-8"))

    def _step(
        self, step: Mapping[str, Any], context: Mapping[str, str], files: Mapping[str, Path]
    ) -> tuple[int, str]:
        script = self.temporary / "script.sh"
        script.write_text(step["run"], "utf-8")
        folder = self.workspace / _filled(step.get("working-directory", "."), context)
        paths = {"HOME": self.temporary, "RUNNER_TEMP": self.temporary, **files}
        env = {
            "PATH": PATH,
            **{name: str(path) for name, path in paths.items()},
            **{name: _filled(value, context) for name, value in step.get("env", {}).items()},
            **self.more,
        }
        done = subprocess.run(
            [*SHELL, str(script)], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        # The runner reads both at once, so what is on standard error may come before anything.
        return done.returncode, done.stderr + done.stdout


def _filled(value: str, context: Mapping[str, str]) -> str:
    """The value with what its expressions stand for; an unknown output is empty."""
    return _VALUE.sub(lambda match: context.get(match[1], ""), value)


def _holds(condition: str, context: Mapping[str, str]) -> bool:
    if not condition:
        return True
    match = _COMPARED.fullmatch(condition)
    assert match, f"a condition that this runner does not know: {condition}"
    return (context[match[1]] == match[3]) == (match[2] == "==")


def obeyed(log: str) -> list[tuple[str, str]]:
    """Commands that GitHub's runner obeys: ``::new::`` at the start of a line, ``##[old]``
    anywhere.
    """
    commands, token = [], ""
    for line in log.splitlines():
        matches = (pattern.fullmatch(line) for pattern in (_COMMAND, _OLD_COMMAND))
        matched = next((one for one in matches if one and one[1] in {*KNOWN, token}), None)
        if not matched:
            continue
        if token:
            token = "" if matched[1] == token else token
        elif matched[1] == "stop-commands":
            token = matched[3]
        else:
            commands.append((matched[1], matched[3]))
    assert not token, "commands are stopped for good"
    return commands


# ---- the container, hooks and jobs ----

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
# What is installed here needs nothing of the package index.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_COMPILE": "0", "VIRTUALENV_NO_PERIODIC_UPDATE": "1"}
BACKEND = """
import shutil

def build_wheel(folder, *settings):
    return shutil.copy("{0}", folder) and "{0}"
"""


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip a test where a program is not installed."""
    return pytest.mark.skipif(not shutil.which(tool, path=PATH), reason=f"needs {tool}")


def run(*command: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it where the tool is on the PATH."""
    words, env = list(map(str, command)), {**os.environ, "PATH": PATH, **more}
    return subprocess.run(
        words, cwd=cwd, env=env, stdout=PIPE, stderr=STDOUT, text=True, check=False
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


def stand_in(folder: Path) -> Path:
    """A wheel of the tool's name that calls the tool under test: it is installed in a second."""
    wheel = folder / "mlperf_pkg-9.9.9-py3-none-any.whl"
    wheel.parent.mkdir(exist_ok=True)
    script = f'#!/bin/sh\nexec "{TOOLS / "mlperf-pkg"}" "$@"\n'
    info = "mlperf_pkg-9.9.9.dist-info"
    files = {
        "mlperf_pkg-9.9.9.data/scripts/mlperf-pkg": script,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: mlperf-pkg\nVersion: 9.9.9\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            entry = ZipInfo(name)
            entry.external_attr = 0o100755 << 16  # a file that anybody may run
            archive.writestr(entry, text)
        archive.writestr(f"{info}/RECORD", record)
    return wheel


def stand_in_source(folder: Path) -> Path:
    """Sources that are built in a second, without the index: the wheel is that of ``stand_in``."""
    wheel = stand_in(folder)
    (folder / "backend.py").write_text(BACKEND.format(wheel.name))
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return folder


def copied(folder: Path, *more: str) -> Path:
    """The sources, as a folder of their own."""
    for name in (*sources(), *more):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, target)
    return folder
