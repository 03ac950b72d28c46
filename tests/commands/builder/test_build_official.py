"""The official tools accept what was built, and read our scores from it."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.builder.contents import PARAMETERS
from mlperf_pkg.commands.builder.prepare import Order, Prepared, prepare
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.commands.builder.writing import write_tree
from mlperf_pkg.findings import Verdict
from tests.helpers.official import package_checked, repository_errors, summary
from tests.helpers.workspaces import (
    closed_workspace,
    described,
    lay,
    logs_of,
    numbered,
    resnet_workspace,
    with_failures,
    with_one_seed,
)

RULESET = "2.0.0"
TOO_LARGE = logs_of("bow-pod16", batch_size=100_000)
BYPASSES = ("rcp-bypass", "seed-checker-bypass")


def build(root: Path, order: Order | None = None) -> Prepared:
    prepared = prepare(Folders.of(root), order or Order())
    assert prepared.refusals == ()
    write_tree(prepared.target, prepared.files, force=False)
    return prepared


def test_scores_and_verdicts(tmp_path: Path) -> None:
    """Those of the build, of a check of the tree, and of the official tools."""
    open_ = {"systems/bow-pod64-open.json": described("bow-pod64", division="open")}
    logs = numbered(logs_of("Bow Pod64", "rnnt", "open"), "logs/o{}.log")
    prepared = build(lay(closed_workspace(tmp_path / "ws"), open_, logs))
    assert package_checked(prepared.target, RULESET) == (True, {})
    assert not repository_errors(prepared.target)
    rows = json.loads((prepared.target / "results.json").read_text("utf-8"))["results"]
    ours = {(row["system"], row["benchmark"]): row["official_minutes"] for row in rows}
    assert summary(prepared.target, RULESET) == ours
    assert {score: row["score_minutes"] for score, row in zip(ours, rows, strict=True)} == ours
    names = ["bow-pod16/bert", "bow-pod16/resnet", "bow-pod64-open/rnnt"]
    assert sorted(map("/".join, ours)) == names
    checked = check([str(prepared.target)], Options(round="2.0")).report
    built = (judged.result.row for judged in prepared.judged)
    assert checked.result_sets == tuple(replace(row, system_by=None) for row in built)
    assert (checked.verdict.official, checked.verdict.rules) == (Verdict.PASS, Verdict.PASS)


SET = "results/bow-pod16/resnet"


@pytest.mark.parametrize(
    ("logs", "flags"),
    [
        (TOO_LARGE, {SET: "rcp-bypass"}),
        (with_one_seed(TOO_LARGE), {SET: "rcp-bypass", "results/bow-pod16": "seed-checker-bypass"}),
        (with_one_seed(logs_of("bow-pod16")), {SET: "seed-checker-bypass"}),
        (with_failures(logs_of("bow-pod16"), 1), {}),
    ],
)
def test_bypasses_are_understood(
    tmp_path: Path, logs: tuple[bytes, ...], flags: dict[str, str]
) -> None:
    """One run that does not converge needs none."""
    target = build(resnet_workspace(tmp_path / "ws", logs), Order(bypasses=BYPASSES)).target
    written = {
        path.parent.relative_to(target).as_posix(): path.read_text("utf-8")
        for path in target.rglob(PARAMETERS)
    }
    assert written == flags
    assert package_checked(target, RULESET) == (True, {})


def test_what_is_refused_is_what_the_package_checker_rejects(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path / "ws", TOO_LARGE)
    assert prepare(Folders.of(root), Order()).refusals
    target = build(root, Order(invalid="keep")).target
    passed, errors = package_checked(target, RULESET)
    assert not passed
    assert list(errors) == ["results/bow-pod16/resnet"]
