"""Published submissions, scattered and built again, are to the official tools what they were."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml

from mlperf_pkg.commands.builder.prepare import Order, prepare
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.commands.builder.writing import write_tree
from mlperf_pkg.config import CONFIG_NAME
from tests.helpers.corpus import CORPUS, FULL, kind_of, needs_corpus
from tests.helpers.official import judged, repository_errors
from tests.helpers.workspaces import bytes_below

# Published submissions of several systems: the folder, and the sets that today's rules refuse.
PUBLISHED: dict[str, set[str]] = {
    "v1.0/Graphcore": {"ipu-pod64-POPART-closed/bert"},
    "v2.1/MosaicML": set(),
    "v5.1/AMD": set(),
    "hpc_v2.0/tacc": {"longhorn-tf/strong/cosmoflow"},
}
if FULL:
    PUBLISHED |= {
        "v2.0/Graphcore": {"ipu-pod128-POPART-closed/bert", "ipu-pod256-POPART-closed/bert"},
        "v5.0/AMD": set(),
    }
# Organisations of logs that are not the submitter's.
ORGANIZATIONS = {"tacc": ["Umbrella Corp."]}
# Graphcore's logs name a platform that is a system, but for these.
UNTOLD = ("TF1", "PaddlePaddle", "POPART-open")

pytestmark = [needs_corpus, pytest.mark.parametrize("folder", PUBLISHED)]


def published(folder: str, scratch: Path) -> Path:
    """A copy without the scaling factors, which the review adds and no raw log has."""
    target = scratch / "published" / folder.partition("/")[2]
    shutil.copytree(CORPUS / folder, target, ignore=shutil.ignore_patterns("scaling.json"))
    return target


def scatter(original: Path, root: Path, usage: str) -> Path:
    """All logs in one folder under random names, and what the configuration must then tell."""
    dice = random.Random(7)
    (root / "logs").mkdir(parents=True)
    shutil.copytree(original / "systems", root / "systems")
    patterns: dict[str, list[str]] = {}
    for log in sorted(original.glob("results/**/result_*.txt")):
        name = f"{dice.getrandbits(64):016x}.log"
        shutil.copyfile(log, root / "logs" / name)
        system = log.relative_to(original / "results").parts[0]
        if original.name != "Graphcore" or any(untold in system for untold in UNTOLD):
            patterns.setdefault(system, []).append(f"logs/{name}")
    config = {
        "submitter": original.name,
        "usage": usage,
        "organizations": ORGANIZATIONS.get(original.name, []),
        "systems": {system: {"logs": logs} for system, logs in patterns.items()},
    }
    (root / CONFIG_NAME).write_text(yaml.safe_dump(config), "utf-8")
    return root


def logs_by_set(tree: Path) -> dict[str, Counter[bytes]]:
    sets: dict[str, Counter[bytes]] = {}
    for path, content in bytes_below(tree / "results").items():
        sets.setdefault(path.rpartition("/")[0], Counter())[content] += 1
    return sets


def test_built_again(folder: str, tmp_path: Path) -> None:
    usage, round_ = kind_of(folder)
    original = published(folder, tmp_path)
    root = scatter(original, tmp_path / "ws", usage)
    logs = bytes_below(root / "logs")
    prepared = prepare(Folders.of(root), Order(round=round_, invalid="keep"))
    assert prepared.refusals == ()
    target = prepared.target
    write_tree(target, prepared.files, force=False)
    assert target.name == original.name
    assert {item.planned.name for item in prepared.judged if item.failures} == PUBLISHED[folder]
    assert logs_by_set(target) == logs_by_set(original)
    assert bytes_below(target / "systems") == bytes_below(original / "systems")
    assert bytes_below(root / "logs") == logs

    ruleset = f"{round_}.0"
    checked, scores = judged(target, ruleset, usage)
    assert (checked, scores) == judged(original, ruleset, usage)
    assert repository_errors(target) == repository_errors(original)
    built = [(item.planned, item.result.row.official_minutes) for item in prepared.judged]
    assert scores
    assert scores == {(p.system.id, p.benchmark): m for p, m in built if m is not None}


def test_a_published_tree_is_an_input_too(folder: str, tmp_path: Path) -> None:
    original = CORPUS / folder
    prepared = prepare(Folders.of(original, output=tmp_path / "out"), Order(invalid="keep"))
    if original.name in ORGANIZATIONS:  # which a configuration must name
        assert "submission_org" in "".join(prepared.refusals)
        return
    round_ = prepared.workspace.round
    assert (prepared.refusals, (round_.usage, round_.name)) == ((), kind_of(folder))
    evidence = {judged.result.row.system_by for judged in prepared.judged}
    assert evidence == {"the place in the submission tree"}
    write_tree(prepared.target, prepared.files, force=False)
    assert logs_by_set(prepared.target) == logs_by_set(original)
