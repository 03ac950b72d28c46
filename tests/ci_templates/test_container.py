"""The recipe of a container, and what it pins. No container engine is needed."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.helpers.ci import HAS_NETWORK, KIT, ROOT, copied, instructions, needs, run, stand_in

UNSHARED = ("unshare", "--map-root-user", "--net")
HAS_UNSHARE = shutil.which("unshare") and not run(*UNSHARED, "true", cwd=ROOT).returncode
WITHOUT_NETWORK = UNSHARED if HAS_UNSHARE else ()


@needs("hadolint")
def test_hadolint_finds_nothing() -> None:
    done = run("hadolint", KIT / "Containerfile", cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "")


def test_constraints_are_what_the_tool_accepts() -> None:
    """Every dependency is pinned, to a version in its range."""
    lines = (KIT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    pinned = {name.lower(): version for name, version in pinned.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = map(Requirement, project["dependencies"])
    assert [r.name for r in needed if pinned[r.name] not in r.specifier] == []


@HAS_NETWORK
@pytest.mark.parametrize("what", ["checkout", "wheel"])
def test_the_container_installs(tmp_path: Path, repository: Path, what: str) -> None:
    """The commands of the recipe, with its folders elsewhere; then the tool needs no network."""
    source = copied(tmp_path / "source")
    (default,) = re.findall(r"SOURCE=(\S+)", " ".join(instructions("ARG")))
    # What the build needs is in this environment; "false" is pip's word for "not isolated".
    more = {"SOURCE": default, "PIP_COMPILE": "0", "PIP_NO_BUILD_ISOLATION": "false"}
    if what == "wheel":
        more["SOURCE"] = str(stand_in(tmp_path / "wheel"))
    lines = [
        re.sub(r"(?<!\w)/(wheels|opt)", rf"{tmp_path}/\1", line) for line in instructions("RUN")
    ]
    outcomes = [run("sh", "-c", line, cwd=source, **more) for line in lines]
    assert [done.stdout for done in outcomes if done.returncode != 0] == []
    installed = tmp_path / "opt" / "mlperf-pkg"
    assert not list(installed.glob("lib/*/site-packages/pip"))
    done = run(*WITHOUT_NETWORK, installed / "bin" / "mlperf-pkg", "check", cwd=repository)
    assert done.returncode == 0, done.stdout


def test_a_check_needs_neither_network_nor_home(repository: Path) -> None:
    """As nobody in a container, who has no folder of their own."""
    before = sorted(repository.rglob("*"))
    done = run(*WITHOUT_NETWORK, "mlperf-pkg", "check", cwd=repository, HOME="/nonexistent")
    assert done.returncode == 0, done.stdout
    assert sorted(repository.rglob("*")) == before
