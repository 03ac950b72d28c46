"""``mlperf-pkg build``: its arguments, what it writes and prints, and its exit status."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from mlperf_pkg.commands.builder.contents import TABLES
from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.config import CONFIG_NAME
from tests.helpers.program import call
from tests.helpers.workspaces import (
    POD16,
    RESNET,
    RESULTS,
    bytes_below,
    lay,
    numbered,
    resnet_workspace,
)

# ---- logs as they come --------------------------------------------------------------------


@pytest.mark.parametrize(
    "logs",
    [
        numbered(RESNET, "logs/{}.log"),
        numbered(RESNET, "logs/2022/may/run-{}/slurm.out"),
        numbered(RESNET, "logs/bow-pod16/{}"),
        numbered(RESNET, "{}.log"),
        numbered(RESNET, "logs/tree/results/bow-pod16/resnet/result_{}.txt"),
    ],
    ids=["flat", "nested", "by folder", "without logs/", "ready-made"],
)
def test_layouts_of_logs(tmp_path: Path, logs: Mapping[str, bytes]) -> None:
    root = lay(tmp_path, POD16, logs)
    before = bytes_below(root)
    result = call("build", root, "--division", "closed")
    assert result.exit_code == 0
    tree = bytes_below(root / "submissions" / "Graphcore")
    assert [tree[path] for path in RESULTS] == list(RESNET)
    assert tree["systems/bow-pod16.json"] == POD16["systems/bow-pod16.json"]
    assert {*tree} == {MANIFEST, *TABLES, *RESULTS, "systems/bow-pod16.json"}
    assert {name: bytes_below(root)[name] for name in before} == before


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(resnet_workspace(tmp_path))
    explained = call("build", "--explain", "--systems", "systems")
    assert (explained.exit_code, Path("submissions").exists()) == (0, False)
    assert "submitter: Graphcore\n" in explained.stdout
    result = call("build")
    head, _, tables = result.stdout.partition("\n\n")
    assert re.sub(r"19\.\d{3}", "19.000", head).splitlines() == [
        "training 2.0, Graphcore (inferred: first round after the resnet run of 2022-05-06)",
        "  bow-pod16/resnet  closed    5/5 runs      19.000 minutes, system found by submission_platform",
        "built submissions/Graphcore: 1 system, 1 result set, 5 logs",
        "tables submissions/Graphcore/results.html, .md, .csv, .json",
    ]
    markdown = Path("submissions/Graphcore/results.md").read_text("utf-8")
    assert tables == f"{markdown}\n0 errors, 0 warnings, 0 notes\n"
    assert result.stderr.startswith("note: no code of resnet")


# ---- what is there already ----------------------------------------------------------------


def test_force_replaces_own_trees_only_and_never_deletes_what_was_not_built(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    tree = root / "submissions/Graphcore"
    readme = f"extra_files: {{README.md: {tree.relative_to(root)}/README.md, legal: legal}}"
    assert call("build", root).exit_code == 0
    assert call("build", root).stderr.endswith("Graphcore: exists already; --force replaces it\n")
    lay(root, {"legal/a/b": b"c", CONFIG_NAME: readme.encode()})
    lay(tree, {"README.md": b"ours"})
    assert call("build", root, "--force").exit_code == 0
    assert [bytes_below(tree)[name] for name in ("README.md", "legal/a/b")] == [b"ours", b"c"]
    assert call("pack", tree).exit_code == 0
    (tree / "link").symlink_to("/etc")
    for change, message in (
        ({}, "link: added or changed since the tree was built"),
        ({"benchmarks/resnet/run.sh": b"train"}, "benchmarks/resnet/run.sh, link: added"),
        ({MANIFEST: b'{"format": "mlperf-pkg/manifest/1"}'}, f"{MANIFEST}: not a manifest"),
        ({MANIFEST: b"{}"}, "was not built by mlperf-pkg"),
    ):
        before = bytes_below(lay(tree, change))
        result = call("build", root, "--force")
        assert (result.exit_code, message in result.stderr) == (2, True)
        assert bytes_below(tree) == before


def test_extra_files_and_code_that_are_refused(tmp_path: Path) -> None:
    """What is outside the workspace, also through a link, needs an option."""
    root = lay(resnet_workspace(tmp_path / "ws"), {"x": b"1"})
    lay(tmp_path, {"outside": b"secret", "code/run_and_time.sh": b""})
    (root / "link").symlink_to("../outside")
    (root / "code").symlink_to("../code")
    for setting, message in (
        ("extra_files: {Results.md: x}", "Results.md: not copied: the same name as results.md"),
        ("extra_files: {a/../../b: x}", "a/../../b: not copied: a path that leads elsewhere"),
        ("extra_files: {README: nowhere}", "nowhere is not a file or a folder"),
        ("extra_files: {README: link}", ": link; --allow-outside copies from there"),
        ("code: {resnet: code}", ": code; --allow-outside copies from there"),
        (f"code: {{resnet: {tmp_path}/code}}", f": {tmp_path}/code; --allow-outside copies from"),
    ):
        lay(root, {CONFIG_NAME: setting.encode()})
        result = call("build", root)
        assert (result.exit_code, (root / "submissions").exists()) == (2, False)
        assert message in result.stderr
    assert call("build", root, "--allow-outside").exit_code == 0
    tree = bytes_below(root / "submissions/Graphcore")
    assert "benchmarks/resnet/implementations/code/run_and_time.sh" in tree


def test_nothing_valid_is_left(tmp_path: Path) -> None:
    result = call("build", resnet_workspace(tmp_path, RESNET[:4]), "--invalid", "drop")
    assert result.exit_code == 1
    assert "note: left out: bow-pod16/resnet is not valid:\n  results/bow-pod16" in result.stderr
    assert "no result set is valid: nothing is left to build" in result.stderr
