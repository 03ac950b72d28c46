"""The hooks for pre-commit."""

import re
from typing import Any

import pytest
import yaml
from pre_commit.clientlib import load_config, load_manifest

from tests.helpers.ci import DOCS, KIT, ROOT

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
