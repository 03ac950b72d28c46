"""A new repository gets the kit by the commands of docs/ci.md, without an edit, and it works.

The tool is installed once, by the job of GitLab; the hook and the action use it. It is a stand-in
for the tool, which calls that under test: what it needs of the package index, ``test_container.py``
installs.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from junitparser import JUnitXml
from pre_commit.clientlib import load_config, load_manifest

from tests.helpers.ci import (
    ACTION,
    DOCS,
    KIT,
    OFFLINE,
    PATH,
    ROOT,
    Runner,
    run,
    stand_in_source,
)
from tests.helpers.trees import SYSTEM, simulated, write_set, write_system

GITLAB = yaml.safe_load((KIT / "gitlab-ci.yml").read_text("utf-8"))["mlperf-pkg"]
WORKFLOW = yaml.safe_load((KIT / "mlperf.yml").read_text("utf-8"))
FILES = (".pre-commit-hooks.yaml", "action.yml", *(f"ci-templates/{p.name}" for p in KIT.iterdir()))
GIT = {
    "GIT_AUTHOR_NAME": "Test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "Test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
    # A submodule by a path, which git refuses otherwise.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
}


def shown(title: str) -> str:
    """The first commands below a heading of the page, for a shell."""
    section = re.search(rf"^#+ {title}\n(.*?)(?=^#|\Z)", DOCS, re.MULTILINE | re.DOTALL)
    assert section
    block = re.search(r"^```sh\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    assert block
    return block[1]


def done_in(folder: Path, *commands: str, **more: str) -> str:
    """What commands print, all of which must work."""
    done = run("bash", "-e", "-c", "\n".join(commands), cwd=folder, **{**GIT, **more})
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with logs and systems, beside a clone of the tool, after the commands."""
    folder = tmp_path_factory.mktemp("new")
    origin = stand_in_source(folder / "origin")
    for name in FILES:
        (origin / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, origin / name)
    done_in(origin, "git init --quiet", "git add --force .", "git commit --quiet -m All")
    done_in(folder, "git clone --quiet origin mlperf-pkg", "git init --quiet repository")
    top = folder / "repository"
    write_set(top / "logs", simulated())
    write_system(top / "systems", framework="TODO")  # a warning
    copies = [line for line in shown("pre-commit").splitlines() if line.startswith("cp ")]
    done_in(top, shown("In continuous integration"), shown("GitHub"), shown("GitLab"), *copies)
    done_in(top, "git add .", "git commit --quiet -m All")
    return top


@pytest.fixture(scope="module")
def path(added: Path, copying: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The PATH of the job of GitLab, after it has installed the tool."""
    environment = tmp_path_factory.mktemp("job") / "mlperf-pkg"
    lines = [line.replace("/tmp/mlperf-pkg", str(environment)) for line in GITLAB["before_script"]]
    cache = environment.with_name("cache")
    more = {**GITLAB["variables"], **OFFLINE, "PIP_CACHE_DIR": str(cache), "PATH": copying}
    done_in(added, *lines, **more)
    assert (environment / "bin" / "mlperf-pkg").exists()
    return f"{environment}/bin:{PATH}"


@pytest.fixture
def repository(added: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy that a test may change."""
    copy = tmp_path / "repository"
    shutil.copytree(added, copy)
    yield copy
    shutil.rmtree(copy)


def test_what_is_added(added: Path) -> None:
    """Files that are copied as they are; the tool at a commit of the address it came from."""
    copies = {
        ".gitlab-ci.yml": "gitlab-ci.yml",
        ".github/workflows/mlperf.yml": "mlperf.yml",
        ".pre-commit-config.yaml": "pre-commit-config.yaml",
    }
    assert {name: (added / name).read_bytes() for name in copies} == {
        name: (KIT / template).read_bytes() for name, template in copies.items()
    }
    commits = done_in(added, "git -C .mlperf-pkg rev-parse HEAD", "git -C ../origin rev-parse HEAD")
    assert len({*commits.split()}) == 1


@pytest.mark.parametrize("status", [0, 1])
def test_gitlab(repository: Path, path: str, status: int) -> None:
    if status:
        (repository / "logs" / "result_1.txt").unlink()
    variables = {**GITLAB["variables"], "PATH": path}
    done = run("bash", "-e", "-c", "\n".join(GITLAB["script"]), cwd=repository, **variables)
    assert done.returncode == status, done.stdout
    reports = GITLAB["artifacts"]["reports"]
    issues = json.loads((repository / reports["codequality"]).read_text("utf-8"))
    assert bool(status) == any(issue["severity"] == "blocker" for issue in issues)
    assert bool(status) == bool(JUnitXml.fromfile(str(repository / reports["junit"])).failures)


def test_the_hook_shows_warnings_and_notices_a_deleted_log(repository: Path, path: str) -> None:
    command = ("pre-commit", "run")
    more = {**GIT, "PATH": path, "PRE_COMMIT_HOME": str(repository / "home")}
    done = run(*command, "--all-files", cwd=repository, **more)
    assert (done.returncode, done.stdout.count("Passed")) == (0, 2), done.stdout
    assert "SYS202" in done.stdout
    done_in(repository, "git rm --quiet logs/result_1.txt")
    done = run(*command, cwd=repository, **more)
    assert (done.returncode, "SET101" in done.stdout) == (1, True), done.stdout


def test_a_configuration_for_an_environment_of_its_own(repository: Path) -> None:
    """It names the address and the commit of the submodule, and the hooks that the tool has."""
    (block,) = re.findall(r"^cat > .*?^END\n", DOCS, re.MULTILINE | re.DOTALL)
    done_in(repository, block)
    (own,) = load_config(str(repository / ".pre-commit-config.yaml"))["repos"]
    origin = "git -C .mlperf-pkg remote get-url origin"
    address, commit = done_in(repository, origin, "git -C .mlperf-pkg rev-parse HEAD").split()
    assert (own["repo"], own["rev"]) == (address, commit)
    manifest = load_manifest(str(repository / ".mlperf-pkg" / ".pre-commit-hooks.yaml"))
    assert [hook["id"] for hook in own["hooks"]] == [hook["id"] for hook in manifest]


def steps_with(path: str) -> dict[str, Any]:
    """What the workflow gives to the action, besides an expression of GitHub."""
    steps = WORKFLOW["jobs"]["pre-submission"]["steps"]
    (step,) = [step for step in steps if step["uses"] == path]
    return {name: value for name, value in step["with"].items() if "${{" not in str(value)}


@pytest.mark.parametrize("divisions", [("closed",), ("open",), ("closed", "open")], ids=" ".join)
def test_the_action_builds_the_divisions_that_there_are(
    repository: Path, path: str, divisions: tuple[str, ...]
) -> None:
    shutil.rmtree(repository / "logs")
    shutil.rmtree(repository / "systems")
    for seed, division in enumerate(divisions):
        system = f"{SYSTEM}-{division}"
        write_set(repository / "logs" / system, simulated(division=division, seed=seed))
        write_system(repository / "systems", system, division=division)
    temporary = repository.parent / "temporary"
    temporary.mkdir()
    runner = Runner(repository, temporary, more={"PATH": path})
    done = runner.run(**steps_with("./.mlperf-pkg"))
    assert done.status == 0, done.log
    built = [p.name for p in Path(done.outputs["submissions"]).glob("*/results/*")]
    assert sorted(built) == [f"{SYSTEM}-{division}" for division in divisions]
    assert "CODE100" in done.log  # of the submission: this repository has no code
    assert ACTION["outputs"].keys() >= {"report", "submissions"}
