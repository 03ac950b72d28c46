"""Published submissions, scattered and built again, are to the official tools what they were."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from mlperf_pkg.build.prepare import Order, Prepared, prepare
from mlperf_pkg.build.tree import write_tree
from mlperf_pkg.build.workspace import Folders
from mlperf_pkg.config import CONFIG_NAME
from tests.build.official import package_checked, summary
from tests.build.workspaces import bytes_below
from tests.corpus import corpus_folder, needs_corpus

CORPUS = corpus_folder() or Path("no corpus")
# The systems whose logs name a platform that is no system of the submission, or one of several.
UNTOLD = ("TF1", "PaddlePaddle")
INVALID = {
    "1.0": {"ipu-pod64-POPART-closed/bert"},
    "2.0": {"ipu-pod128-POPART-closed/bert", "ipu-pod256-POPART-closed/bert"},
}

pytestmark = [needs_corpus, pytest.mark.parametrize("round_", ["1.0", "2.0"])]


def scatter(original: Path, root: Path) -> Path:
    """All logs in one folder under random names, and what the configuration must then tell."""
    dice = random.Random(7)
    (root / "logs").mkdir(parents=True)
    shutil.copytree(original / "systems", root / "systems")
    patterns: dict[str, list[str]] = {}
    for log in sorted(original.glob("results/*/*/result_*.txt")):
        name = f"{dice.getrandbits(64):016x}.log"
        shutil.copyfile(log, root / "logs" / name)
        system = log.parent.parent.name
        if any(untold in system for untold in UNTOLD):
            patterns.setdefault(system, []).append(f"logs/{name}")
    config = {"systems": {system: {"logs": logs} for system, logs in patterns.items()}}
    (root / CONFIG_NAME).write_text(yaml.safe_dump(config), "utf-8")
    return root


def build(root: Path, round_: str) -> Prepared:
    prepared = prepare(Folders.of(root), Order(round=round_, keep_invalid=True))
    assert prepared.refusals == ()
    write_tree(prepared.target, prepared.files, force=False)
    return prepared


def logs_by_set(tree: Path) -> dict[str, Counter[bytes]]:
    found: dict[str, Counter[bytes]] = {}
    for path, content in bytes_below(tree / "results").items():
        found.setdefault(path.rpartition("/")[0], Counter())[content] += 1
    return found


def test_built_again(round_: str, tmp_path: Path) -> None:
    original = CORPUS / f"v{round_}" / "Graphcore"
    root = scatter(original, tmp_path / "ws")
    before = bytes_below(root)
    prepared = build(root, round_)
    target = prepared.target

    assert target.name == "Graphcore"
    assert {each.planned.name for each in prepared.judged if each.failures} == INVALID[round_]
    assert logs_by_set(target) == logs_by_set(original)
    assert bytes_below(target / "systems") == bytes_below(original / "systems")
    assert {name: bytes_below(root)[name] for name in before} == before

    ruleset = f"{round_}.0"
    expected = package_checked(original, ruleset)
    assert package_checked(target, ruleset) == expected
    assert {folder.removeprefix("results/") for folder in expected[1]} == INVALID[round_]
    scores = summary(target, ruleset)
    assert scores == summary(original, ruleset)
    assert scores == {
        (each.planned.system.id, each.planned.benchmark): each.result.row.official_minutes
        for each in prepared.judged
    }


def test_a_published_tree_is_an_input_too(round_: str, tmp_path: Path) -> None:
    original = CORPUS / f"v{round_}" / "Graphcore"
    order = Order(keep_invalid=True)
    prepared = prepare(Folders.of(original, output=tmp_path / "out"), order)
    assert prepared.refusals == ()
    assert (prepared.workspace.round.name, prepared.plan.submitter) == (round_, "Graphcore")
    assert {each.planned.why for each in prepared.judged} == {"its folder"}
    write_tree(prepared.target, prepared.files, force=False)
    assert logs_by_set(prepared.target) == logs_by_set(original)
