"""``mlperf-pkg build --division``: one division is built into the tree of the other one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.commands.builder.contents import TABLES
from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.config import CONFIG_NAME
from tests.helpers.program import call
from tests.helpers.workspaces import (
    bytes_below,
    closed_workspace,
    described,
    lay,
    logs_of,
    numbered,
)

POD64_OPEN = {"systems/bow-pod64-open.json": described("bow-pod64", division="open")}
OPEN = logs_of("bow-pod64-open", "resnet", "open")
DIVISIONS = {"closed": {"bow-pod16"}, "open": {"bow-pod64-open"}}
TREE = "submissions/Graphcore"
Change = Callable[[Path], object]
CONFIG = b"code: {bert: src, resnet: src}\nextra_files: {README.md: README}\n"


def both_divisions(root: Path) -> Path:
    """Two Closed result sets, and an Open one that has a benchmark and code in common with them."""
    files = {CONFIG_NAME: CONFIG, "src/run_and_time.sh": b"", "src/README.md": b"", "README": b"1"}
    return lay(closed_workspace(root), POD64_OPEN, numbered(OPEN, "logs/o{}.log"), files)


def systems_of(root: Path) -> set[str]:
    return {path.name for path in (root / TREE / "results").iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of both divisions, of which Closed is built."""
    root = both_divisions(tmp_path_factory.mktemp("built"))
    assert call("build", root, "--division", "closed").exit_code == 0
    return root


@pytest.fixture
def beside(built: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(built, tmp_path / "workspace"))


# ---- one after the other ------------------------------------------------------------------


def test_one_after_the_other_is_both_at_once(tmp_path: Path) -> None:
    root = both_divisions(tmp_path)
    result = call("build", root, "--division", "open")
    assert (result.exit_code, systems_of(root)) == (0, DIVISIONS["open"])
    assert "note: left out, as they are of the closed division: " in result.stderr
    before = bytes_below(root / TREE)
    result = call("build", root, "--division", "closed")
    assert result.exit_code == 0
    assert " of the open division in " in result.stderr
    assert "note: left out" not in result.stderr
    in_turn = bytes_below(root / TREE)
    assert before.items() - in_turn.items() == {(n, before[n]) for n in (MANIFEST, *TABLES)}
    assert call("build", root, "--force").exit_code == 0
    assert bytes_below(root / TREE) == in_turn
    for division in DIVISIONS:
        assert call("build", root, "--division", division, "--force").exit_code == 0
        assert bytes_below(root / TREE) == in_turn


def test_a_division_that_is_there_needs_force(beside: Path) -> None:
    assert call("build", beside, "--division", "open").exit_code == 0
    result = call("build", beside, "--division", "closed")
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "Graphcore: has results of the closed division already; --force replaces them and keeps"
        " those of the open division\n"
    )


# ---- what would be lost -------------------------------------------------------------------


def config(text: bytes) -> Change:
    return lambda root: lay(root, {CONFIG_NAME: text})


def description(**fields: str) -> Change:
    return lambda root: lay(root, {"systems/bow-pod16.json": described("bow-pod16", **fields)})


def without(pattern: str) -> Change:
    def remove(root: Path) -> None:
        for path in root.glob(pattern):
            path.unlink()

    return remove


BERT = "results/bow-pod16/bert/result_"
CODE = "benchmarks/bert/implementations/src/"


@pytest.mark.parametrize(
    ("change", "options", "first"),
    [
        (without("logs/b0.log"), (), f"{BERT}0.txt,\n  {BERT}1.txt,\n"),
        (description(hw_notes="liquid"), (), "must keep:\n  systems/bow-pod16.json\n"),
        (description(division="open"), ("--as-open",), "systems/bow-pod16.json\n"),
        (without("systems/bow-pod16.json"), (), f"{BERT}0.txt,\n"),
        (lambda root: lay(root, {"src/run_and_time.sh": b"train"}), (), f"{CODE}run_and_time.sh,\n"),
        (config(b"extra_files: {README.md: README}"), (), f"{CODE}README.md,\n  {CODE}run_and_time.sh,\n"),
        (config(CONFIG), ("--leave-out", "bow-pod16/bert"), f"{CODE}README.md,\n"),
    ],
)  # fmt: skip
def test_the_other_division_is_never_lost(
    beside: Path, change: Change, options: tuple[str, ...], first: str
) -> None:
    """Not even by force."""
    change(beside)
    before = bytes_below(beside)
    more = "--dry-run" if options else "--force"
    result = call("build", beside, "--division", "open", *options, more)
    assert result.exit_code == 2
    assert f"{TREE}: " in result.stderr
    assert first in result.stderr
    assert "or choose another --output\n" in result.stderr
    assert bytes_below(beside) == before


def test_extra_files_of_both_change_by_force(beside: Path) -> None:
    lay(beside, {"README": b"2"})
    before = bytes_below(beside)
    result = call("build", beside, "--division", "open")
    assert (result.exit_code, bytes_below(beside)) == (2, before)
    assert ": this build would change or remove README.md; --force allows this\n" in result.stderr
    assert call("build", beside, "--division", "open", "--force").exit_code == 0
    assert bytes_below(beside / TREE)["README.md"] == b"2"
    assert systems_of(beside) == DIVISIONS["closed"] | DIVISIONS["open"]


def test_what_was_not_built_is_never_lost(beside: Path) -> None:
    lay(beside / TREE, {"results/bow-pod16/bert/result_0.txt": b"by hand", "results.md": b"mine"})
    before = bytes_below(beside)
    result = call("build", beside, "--division", "open", "--force")
    assert (result.exit_code, bytes_below(beside)) == (2, before)
    assert (
        ": results.md, results/bow-pod16/bert/result_0.txt: added or changed since" in result.stderr
    )


def test_nothing_of_the_division_is_no_addition(beside: Path) -> None:
    (beside / "logs/o0.log").unlink()
    before = bytes_below(beside)
    for options in (("--invalid", "drop"), ("--leave-out", "bow-pod64-open/resnet")):
        result = call("build", beside, "--division", "open", *options)
        assert (result.exit_code, bytes_below(beside)) == (1, before)
