"""The hooks for pre-commit."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pre_commit.clientlib import load_config, load_manifest

from tests.helpers.ci import DOCS, KIT, OFFLINE, ROOT, run, spoil, stand_in_source
from tests.helpers.trees import write_system

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
HOOKS = {hook["id"]: hook for hook in yaml.safe_load(MANIFEST.read_text("utf-8"))}


def test_our_own_hooks() -> None:
    """They run targets that the Makefile has."""
    *_, own = load_config(str(ROOT / ".pre-commit-config.yaml"))["repos"]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {hook["entry"] for hook in own["hooks"]} <= {f"make {name}" for name in targets}


def test_manifest() -> None:
    assert [hook["id"] for hook in load_manifest(str(MANIFEST))] == [*HOOKS]


@pytest.mark.parametrize(
    ("hook", "file", "taken"),
    [
        ("mlperf-pkg-system-check", "ACME/systems/dgx.json", True),
        ("mlperf-pkg-system-check", "ACME/subsystems/dgx.json", False),
        ("mlperf-pkg-system-check", "systems/dgx/notes.json", False),
    ],
)
def test_hooks_take(hook: str, file: str, taken: bool) -> None:
    assert bool(re.search(HOOKS[hook]["files"], file)) == taken


def test_the_hooks_to_copy_are_those_of_the_manifest() -> None:
    """Besides that they are installed already, and that the folder is named."""
    (repository,) = yaml.safe_load((KIT / "pre-commit-config.yaml").read_text("utf-8"))["repos"]
    differ = ("description", "entry", "exclude", "language")
    assert [without(hook, *differ) for hook in repository["hooks"]] == [
        without(hook, *differ) for hook in HOOKS.values()
    ]
    entries = zip(repository["hooks"], HOOKS.values(), strict=True)
    assert [hook["entry"].removeprefix(own["entry"]) for hook, own in entries] == [" logs", ""]


def without(hook: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in hook.items() if name not in names}


def test_the_docs_name_the_hooks() -> None:
    block = re.search(r"<<END\nrepos:\n.*?^END\n", DOCS, re.DOTALL | re.MULTILINE)
    assert block
    assert re.findall(r"- id: (\S+)", block[0]) == list(HOOKS)


def git(*arguments: str, cwd: Path) -> str:
    name = ("-c", "user.name=Test", "-c", "user.email=test@example.com")
    command = ["git", *name, *arguments]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


def committed(folder: Path) -> str:
    """Make a repository of a folder; its commit."""
    git("init", "--quiet", cwd=folder)
    git("add", ".", cwd=folder)
    git("commit", "--quiet", "-m", "All", cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder).strip()


@pytest.mark.parametrize("language", [{}, {"language": "system"}], ids=str)
def test_pre_commit(repository: Path, tmp_path: Path, language: dict[str, str]) -> None:
    """Installed by pre-commit, or the one on the PATH, for which nothing is installed."""
    source = stand_in_source(tmp_path / "source")
    shutil.copy(MANIFEST, source)
    ids = [{"id": id_, **language} for id_ in HOOKS]
    hooks = {"repo": str(source), "rev": committed(source), "hooks": ids}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [hooks]}), "utf-8")
    committed(repository)
    more = {**OFFLINE, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    command = ("pre-commit", "run", "--all-files", "--verbose")
    done = run(*command, cwd=repository, **more)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("Passed") == 2
    spoil(repository)
    write_system(repository / "systems", division="neither")
    git("add", ".", cwd=repository)
    done = run(*command, cwd=repository, **more)
    codes = [code in done.stdout for code in ("RUN119", "SYS")]
    assert (done.returncode, codes, done.stdout.count("exit code: 1")) == (1, [True, True], 2)
    assert bool(list((tmp_path / "home").glob("*/py_env-*"))) == (not language)
