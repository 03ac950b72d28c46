"""A tree is written whole or not at all, and replaces only what this tool has made."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlperf_pkg.commands.builder.contents import PlannedFile
from mlperf_pkg.commands.builder.manifest import FORMAT, MANIFEST
from mlperf_pkg.commands.builder.prepare import Order, Prepared, acceptance, prepare
from mlperf_pkg.commands.builder.workspace import Folders
from mlperf_pkg.commands.builder.writing import write_tree
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import files
from tests.helpers.workspaces import bytes_below, closed_workspace, lay

FILES = (PlannedFile("a/b/one.txt", b"one\r\n"), PlannedFile("two", b""))
OTHER = (PlannedFile("three", b"3"),)


def names(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def write(target: Path, files: tuple[PlannedFile, ...] = FILES, *, force: bool = False) -> Path:
    write_tree(target, files, force=force)
    return target


def test_tree_and_manifest(tmp_path: Path) -> None:
    source = lay(tmp_path / "in", {"s.log": b"\x00\xff\n"}) / "s.log"
    files = (*FILES, PlannedFile("copy.txt", source, origin="in/s.log"))
    target = write(tmp_path / "new" / "out" / "ACME", files)
    files_below = bytes_below(target)
    manifest = json.loads(files_below.pop(MANIFEST))
    assert files_below == {"a/b/one.txt": b"one\r\n", "two": b"", "copy.txt": b"\x00\xff\n"}
    assert manifest["format"] == FORMAT
    assert manifest["files"] == [
        {
            "path": path,
            "size": len(files_below[path]),
            "sha256": hashlib.sha256(files_below[path]).hexdigest(),
            "origin": "in/s.log" if path == "copy.txt" else None,
        }
        for path in sorted(files_below)
    ]
    assert names(target.parent) == sorted(
        [f"ACME/{n}" for n in ("a", "a/b", *files_below, MANIFEST)] + ["ACME"]
    )


def test_copies_are_neither_links_nor_writable_by_all(tmp_path: Path) -> None:
    lay(tmp_path, {"log": b"x", "run.sh": b"#!/bin/sh\n"})
    (tmp_path / "log").chmod(0o400)
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / "link").symlink_to("log")
    target = write(
        tmp_path / "out", tuple(PlannedFile(n, tmp_path / n) for n in ("link", "log", "run.sh"))
    )
    plain = (lay(tmp_path, {"fresh": b""}) / "fresh").stat().st_mode
    assert not (target / "link").is_symlink()
    assert (target / "log").stat().st_nlink == 1
    assert (target / "log").stat().st_mode == plain
    assert (target / "run.sh").stat().st_mode == plain | (plain & 0o444) >> 2


# ---- what is there already ----------------------------------------------------------------


FOREIGN: dict[str, Callable[[Path], object]] = {
    "empty": Path.mkdir,
    "a file": Path.touch,
    "by hand": lambda target: lay(target, {"results/x/bert/result_0.txt": b""}),
    "other manifest": lambda target: lay(target, {MANIFEST: b'{"format": "other/1"}'}),
    "broken manifest": lambda target: lay(target, {MANIFEST: b"[" * 100_000}),
    "list as manifest": lambda target: lay(target, {MANIFEST: b"[]"}),
    "link": lambda target: target.symlink_to(write(target.parent / "elsewhere")),
    "dead link": lambda target: target.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_nothing_else_is_ever_replaced(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "ACME")
    before = names(tmp_path)
    with pytest.raises(UserError, match="was not built by mlperf-pkg"):
        write(tmp_path / "ACME", force=True)
    assert names(tmp_path) == before


# ---- what goes wrong ----------------------------------------------------------------------


def fail_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, error: Any) -> None:
    """Let the call with that number raise."""
    original, calls = getattr(owner, name), iter(range(10_000))

    def failing(*args: Any, **more: Any) -> Any:
        if next(calls) == call:
            raise error
        return original(*args, **more)

    monkeypatch.setattr(owner, name, failing)


CALLS = [
    (Path, "mkdir", 0),
    (Path, "open", 1),
    (os, "fsync", 0),
    (os, "fsync", 2),
    (os, "open", 0),
    (files, "_install", 0),
]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("owner", "name", "call", "old"),
    [(*call, old) for call in CALLS for old in (True, False)],
)
def test_failure_leaves_everything_as_it_was(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    call: int,
    old: bool,
    error: BaseException,
) -> None:
    target = tmp_path / "submissions" / "ACME"
    if old:
        write(target)
    before = names(tmp_path), bytes_below(tmp_path)
    with monkeypatch.context() as patched:
        fail_at(patched, owner, name, call, error)
        with pytest.raises((UserError, KeyboardInterrupt)):
            write(target, (*OTHER, *FILES), force=True)
    assert (names(tmp_path), bytes_below(tmp_path)) == before


def test_source_that_vanishes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ACME: cannot be written: .*No such file"):
        write(tmp_path / "out" / "ACME", (PlannedFile("a", tmp_path / "gone.log"),))
    assert names(tmp_path) == []


def test_two_files_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write(tmp_path / "ACME", (FILES[0], FILES[0]))
    assert names(tmp_path) == []


def test_file_system_that_cannot_sync_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = os.fsync

    def picky(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        original(descriptor)

    monkeypatch.setattr(os, "fsync", picky)
    assert "two" in names(write(tmp_path / "ACME"))


def test_foreign_tree_that_appears_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "ACME"
    original = Path.rename

    def late(self: Path, to: Path) -> Path:
        lay(target, {"theirs": b"1"})
        return original(self, to)

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(UserError, match="cannot be written"):
        write(target)
    assert bytes_below(tmp_path) == {"ACME/theirs": b"1"}


def test_file_that_is_added_at_the_last_moment_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = write(tmp_path / "ACME")
    before = bytes_below(target)
    original, added = files._exchange, iter([True])

    def late(*paths: Path) -> bool:
        if next(added, False):
            lay(target, {"theirs": b"1"})
        return original(*paths)

    monkeypatch.setattr(files, "_exchange", late)
    with pytest.raises(UserError, match="cannot be written"):
        write(target, OTHER, force=True)
    assert bytes_below(target) == {**before, "theirs": b"1"}


# ---- kills ----------------------------------------------------------------------------------

KILLS = 200 if os.environ.get("MLPERF_PKG_FULL") else 15


def rebuild(prepared: Prepared) -> None:
    write_tree(prepared.target, prepared.files, acceptance(prepared), force=True)


def killed(prepared: Prepared, after_s: float) -> bool:
    """Build in a process of its own that has so long to live; whether it was killed."""
    child = os.fork()
    if child == 0:
        rebuild(prepared)
        os._exit(0)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    """The tree is always the one before or the new one, whole, and the next build tidies up."""
    dice = random.Random(11)
    root = closed_workspace(tmp_path)
    one = prepare(Folders.of(root), Order())
    begun = time.monotonic()
    rebuild(one)
    takes_s = time.monotonic() - begun
    trees = [bytes_below(one.target)]
    other = prepare(Folders.of(root), Order(leave_out=("bow-pod16/bert",)))
    rebuild(other)
    trees.append(bytes_below(other.target))
    assert trees[0] != trees[1]
    limit_s = 1.2 * takes_s
    kills = 0
    while kills < KILLS:
        if killed((one, other)[kills % 2], dice.uniform(0, limit_s)):
            kills += 1
        else:
            limit_s *= 0.9  # it has become faster: the machine has less else to do
        assert bytes_below(one.target) in trees
    rebuild(one)
    assert bytes_below(one.target.parent) == {
        f"Graphcore/{n}": data for n, data in trees[0].items()
    }
