"""``mlperf-pkg build``: its arguments, what it writes and prints, and its exit status."""

import re
from collections.abc import Callable, Mapping
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
    built_results,
    bytes_below,
    closed_workspace,
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
    first, of_set, built, tables, empty, *table = result.stdout.splitlines()
    assert first == (
        "training 2.0, Graphcore (inferred: first round after the resnet run of 2022-05-06)"
    )
    assert re.fullmatch(
        r"  bow-pod16/resnet  closed +5/5 runs +19\.\d{3} minutes, system found by submission_platform",
        of_set,
    )
    assert built == "built submissions/Graphcore: 1 system, 1 result set, 5 logs"
    assert tables == "tables submissions/Graphcore/results.html, .md, .csv, .json"
    assert empty == ""
    *table, _, findings = table
    assert findings == "0 errors, 0 warnings, 0 notes"
    assert "\n".join([*table, ""]) == Path("submissions/Graphcore/results.md").read_text("utf-8")
    assert result.stderr.startswith("note: no code of resnet")


# ---- what is there already ----------------------------------------------------------------


def test_force_replaces_own_trees_only(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    assert call("build", root).exit_code == 0
    lay(root, {"submissions/Graphcore/extra.txt": b"1", "submissions/Other/a.txt": b"2"})
    result = call("build", root)
    assert result.exit_code == 2
    assert result.stderr.endswith("Graphcore: exists already; --force replaces it\n")
    (root / "submissions/Graphcore/extra.txt").unlink()
    assert call("build", root, "--force").exit_code == 0
    (root / "submissions/Graphcore" / MANIFEST).unlink()
    before = bytes_below(root)
    result = call("build", root, "--force")
    assert result.exit_code == 2
    assert "was not built by mlperf-pkg" in result.stderr
    assert bytes_below(root) == before


@pytest.mark.parametrize(
    ("name", "add"),
    [
        ("benchmarks/resnet/run.sh", lambda path: lay(path.parent, {path.name: b"train"})),
        ("link", lambda path: path.symlink_to("/etc")),
        (f"{MANIFEST}: ", lambda path: lay(path.parent, {MANIFEST: b'{"format": "mlperf-pkg/manifest/1"}'})),
    ],
)  # fmt: skip
def test_force_never_deletes_what_was_not_built(
    tmp_path: Path, name: str, add: Callable[[Path], object]
) -> None:
    root = resnet_workspace(tmp_path)
    assert call("build", root).exit_code == 0
    add(root / "submissions/Graphcore" / name)
    before = bytes_below(root)
    result = call("build", root, "--force")
    assert result.exit_code == 2
    assert name in result.stderr
    assert bytes_below(root) == before


def test_extra_files(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path)
    assert call("build", root).exit_code == 0
    readme = "submissions/Graphcore/README.md"
    files = {readme: b"ours", "legal/a/b": b"c"}
    lay(root, files, {CONFIG_NAME: f"extra_files: {{README.md: {readme}, legal: legal}}".encode()})
    assert call("build", root, "--force").exit_code == 0
    tree = bytes_below(root / "submissions/Graphcore")
    assert (tree["README.md"], tree["legal/a/b"]) == (b"ours", b"c")
    assert call("pack", root / "submissions/Graphcore").exit_code == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("{results.md: x}", "results.md: not copied: twice"),
        ("{Results.md: x}", "Results.md: not copied: the same name as results.md"),
        ("{a/../../b: x}", "a/../../b: not copied: a path that leads elsewhere"),
        ("{README: nowhere}", "nowhere is not a file or a folder"),
        ("{README: ../outside}", "outside the workspace"),
        ("{README: link}", "outside the workspace"),
    ],
)
def test_extra_files_that_are_refused(tmp_path: Path, setting: str, message: str) -> None:
    root = resnet_workspace(tmp_path / "ws")
    lay(tmp_path, {"outside": b"secret"})
    lay(root, {"x": b"1", CONFIG_NAME: f"extra_files: {setting}".encode()})
    (root / "link").symlink_to("../outside")
    result = call("build", root)
    assert (result.exit_code, (root / "submissions").exists()) == (2, False)
    assert message in result.stderr


@pytest.mark.parametrize("code", ["link", "{0}/code"])
def test_code_outside_the_workspace_needs_an_option(tmp_path: Path, code: str) -> None:
    root = resnet_workspace(tmp_path / "ws")
    lay(tmp_path, {"code/run_and_time.sh": b"", "code/README.md": b""})
    (root / "link").symlink_to("../code")
    code = code.format(tmp_path)
    lay(root, {CONFIG_NAME: f"code: {{resnet: {code}}}".encode()})
    result = call("build", root)
    assert (result.exit_code, (root / "submissions").exists()) == (2, False)
    assert f": {code}; --allow-outside copies from there" in result.stderr
    assert call("build", root, "--allow-outside").exit_code == 0
    tree = bytes_below(root / "submissions/Graphcore")
    assert "benchmarks/resnet/implementations/code/run_and_time.sh" in tree


def test_drop_invalid_names_each_with_its_reasons(tmp_path: Path) -> None:
    root = closed_workspace(tmp_path)
    (root / "logs/b0.log").unlink()
    result = call("build", root, "--invalid", "drop")
    assert result.exit_code == 0
    assert "note: left out: bow-pod16/bert is not valid:\n  results/bow-pod16/bert" in (
        result.stderr
    )
    assert built_results(root) == RESULTS
    (root / "logs/r0.log").unlink()
    result = call("build", root, "--invalid", "drop", "--force")
    assert result.exit_code == 1
    assert "no result set is valid: nothing is left to build" in result.stderr
