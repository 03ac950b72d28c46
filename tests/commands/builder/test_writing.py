"""A tree is written whole or not at all, and replaces only what this tool has made."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.commands.builder.contents import PlannedFile
from mlperf_pkg.commands.builder.manifest import FORMAT, MANIFEST
from mlperf_pkg.commands.builder.writing import write_tree
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import files
from tests.helpers.archives import names
from tests.helpers.workspaces import bytes_below, lay

FILES = (PlannedFile("a/b/one.txt", b"one\r\n"), PlannedFile("two", b""))


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
    assert names(target.parent)[:4] == ["ACME", f"ACME/{MANIFEST}", "ACME/a", "ACME/a/b"]


def test_copies_are_neither_links_nor_writable_by_all(tmp_path: Path) -> None:
    lay(tmp_path, {"log": b"x", "run.sh": b"#!/bin/sh\n"})
    (tmp_path / "log").chmod(0o400)
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / "link").symlink_to("log")
    files = tuple(PlannedFile(name, tmp_path / name) for name in ("link", "log", "run.sh"))
    target = write(tmp_path / "out", files)
    plain = (lay(tmp_path, {"fresh": b""}) / "fresh").stat().st_mode
    assert not (target / "link").is_symlink()
    assert (target / "log").stat().st_nlink == 1
    assert (target / "log").stat().st_mode == plain
    assert (target / "run.sh").stat().st_mode == plain | (plain & 0o444) >> 2


# ---- what is there already ----------------------------------------------------------------


FOREIGN: dict[str, Callable[[Path], object]] = {
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


def test_source_that_vanishes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ACME: cannot be written: .*No such file"):
        write(tmp_path / "out" / "ACME", (PlannedFile("a", tmp_path / "gone.log"),))
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
    monkeypatch.setattr(files, "_system_call", lambda name: None)
    assert "two" in names(write(tmp_path / "ACME"))


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
        write(target, (PlannedFile("three", b"3"),), force=True)
    assert bytes_below(target) == {**before, "theirs": b"1"}
