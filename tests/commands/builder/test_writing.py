"""A tree is written whole or not at all, and replaces only what this tool has made."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Options
from mlperf_pkg.commands.builder.manifest import FORMAT, MANIFEST
from mlperf_pkg.commands.builder.prepare import Prepared
from mlperf_pkg.commands.builder.writing import (
    PARAMETERS,
    TABLES,
    PlannedFile,
    chunks,
    unfit,
    write_tree,
)
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Verdict
from mlperf_pkg.infra import files
from mlperf_pkg.infra.source import Source
from tests.helpers.archives import names, tree_tar, tree_zip
from tests.helpers.official import package_checked, repository_errors, summary
from tests.helpers.workspaces import (
    POD16,
    RESNET,
    bytes_below,
    closed_workspace,
    described,
    lay,
    logs_of,
    numbered,
    prepared,
    resnet_workspace,
    with_failures,
    with_one_seed,
)

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
    assert [entry["path"] for entry in manifest["files"]] == sorted(files_below)
    digest = hashlib.sha256(b"\x00\xff\n").hexdigest()
    copy = {"path": "copy.txt", "size": 3, "sha256": digest, "origin": "in/s.log"}
    assert manifest["files"][1] == copy
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
    with pytest.raises(UserError, match=r"ACME: cannot be written: .*no such file"):
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


# ---- the files of a tree: bypasses, code, tables --------------------------------------------


def bytes_of(content: bytes | Path | Source) -> bytes:
    assert isinstance(content, bytes)
    return content


def code_of(root: Path, config: str) -> dict[str, str | None]:
    files = prepared(root, config).files
    return {file.path: file.origin for file in files if file.path.startswith("benchmarks/")}


def test_origins_and_remarks(tmp_path: Path) -> None:
    config = """
notes: {bow-pod16/bert: a <note>, bow-pod16/dlrm: of no result}
prices:
  bow-pod16: {price_usd: 149000, source: the vendor, date: 2021-06-30}
  other: {price_usd: 1, source: nobody}
"""
    files = prepared(closed_workspace(tmp_path), config).files
    origins = {file.path: file.origin for file in files}
    assert list(origins) == sorted(origins)
    assert origins["systems/bow-pod16.json"] == "systems/bow-pod16.json"
    assert origins["results/bow-pod16/resnet/result_4.txt"] == "logs/r4.log"
    made = {file.path: file.content for file in files if file.origin is None}
    assert made.keys() == set(TABLES)
    assert bytes_of(made["results.md"]).decode().splitlines()[-5:-3] == [
        r"- bow-pod16/bert: a \<note\>",
        r"- list price of bow-pod16: \$149,000 (the vendor, 2021-06-30)",
    ]
    assert b"<li>bow-pod16/bert: a &lt;note&gt;</li>" in bytes_of(made["results.html"])


# ---- beside the logs ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "run", "ending"),
    [
        ("logs", "result_{}", ".txt"),
        ("logs/tree/results/bow-pod16/resnet", "result_{}", ".txt"),
        ("logs", "run.{}", ".log"),
        ("logs", "run_{}", ".a.log"),
        ("logs", "run.{}", ""),
    ],
)
def test_power_logs_follow_their_runs_and_the_scaling_factor_of_a_tree(
    tmp_path: Path, folder: str, run: str, ending: str
) -> None:
    """Power is in folders named like the logs, in ``power/`` beside them."""
    names = [run.format(4 - number) for number in range(5)]
    logs = {f"{folder}/{name}{ending}": log for name, log in zip(names, RESNET, strict=True)}
    power = {f"{folder}/power/{name}/node_0.txt": b"" for name in names}
    lay(tmp_path, POD16, logs, power, {f"{folder}/scaling.json": b'{"scaling_factor": 1.5}'})
    made = {file.path: file.origin for file in prepared(tmp_path).files}
    results = "results/bow-pod16/resnet"
    assert {path: origin for path, origin in made.items() if "/power/" in path} == {
        f"{results}/power/result_{n}/node_0.txt": f"{folder}/power/{name}/node_0.txt"
        for n, name in enumerate(names)
    }
    assert (f"{results}/scaling.json" in made) is (folder != "logs")


@pytest.mark.parametrize("pack", [tree_tar, tree_zip])
def test_power_logs_in_an_archive(
    tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    logs = numbered(RESNET, "run/{}.log")
    power = {f"run/power/{number}/node_0.txt": b"%d" % number for number in range(5)}
    lay(tmp_path, POD16, {"logs/l.zip": pack({**logs, **power})})
    measured = {}
    for file in prepared(tmp_path).files:
        if "/power/" in file.path:
            measured[file.path] = b"".join(chunks(file.content))
    folder = "results/bow-pod16/resnet/power"
    assert measured == {f"{folder}/result_{n}/node_0.txt": b"%d" % n for n in range(5)}


# ---- code ---------------------------------------------------------------------------------


def test_code_without_links_and_hidden_files(tmp_path: Path) -> None:
    names = ("bert/run.sh", "bert/lib/a.py", "bert/.git/config", "bert/.env", "other")
    lay(closed_workspace(tmp_path), {f"src/{name}": b"" for name in names})
    (tmp_path / "src/bert/link.py").symlink_to("lib/a.py")
    (tmp_path / "src/bert/up").symlink_to("..")
    assert code_of(tmp_path, "code: {bert: src/bert, ssd: src/nowhere}") == {
        "benchmarks/bert/implementations/bert/lib/a.py": "src/bert/lib/a.py",
        "benchmarks/bert/implementations/bert/run.sh": "src/bert/run.sh",
    }
    lay(tmp_path, {"extra/.conf/a": b"", "extra/b": b""})
    made = prepared(tmp_path, "{code: {bert: src/bert}, extra_files: {docs: extra}}")
    (note,) = (note for note in made.notes if "not copied" in note)
    assert note.endswith(": extra/.conf, src/bert/.env, src/bert/link.py, src/bert/up")
    assert [file.origin for file in made.files if file.path.startswith("docs")] == ["extra/b"]


def test_several_implementations(tmp_path: Path) -> None:
    lay(closed_workspace(tmp_path), {"a/README.md": b"", "a/run_and_time.sh": b"", "b/x.py": b""})
    config = "code: {bert: {popart: a, torch: b}, resnet: b}"
    assert code_of(tmp_path, config) == {
        "benchmarks/bert/implementations/popart/README.md": "a/README.md",
        "benchmarks/bert/implementations/popart/run_and_time.sh": "a/run_and_time.sh",
        "benchmarks/bert/implementations/torch/x.py": "b/x.py",
        "benchmarks/resnet/implementations/b/x.py": "b/x.py",
    }
    assert [note for note in prepared(tmp_path, config).notes if "reviewers" in note] == [
        f"benchmarks/{folder} has no README.md and no run_and_time.sh, which reviewers expect"
        for folder in ("bert/implementations/torch", "resnet/implementations/b")
    ]


def test_code_that_is_not_there(tmp_path: Path) -> None:
    lay(closed_workspace(tmp_path), {"code/README.md": b""})
    with pytest.raises(UserError) as failure:
        prepared(tmp_path, "code: {brt: code, bert: {a: logs/r0.log, b: code}, resnet: no/where}")
    assert str(failure.value).splitlines() == [
        f"{CONFIG_NAME}: code names brt, which is not a benchmark of round 2.0; did you mean bert?",
        f"{CONFIG_NAME}: code: bert: there is no folder logs/r0.log",
        f"{CONFIG_NAME}: code: resnet: there is no folder no/where",
    ]


def test_logs_among_the_code_are_not_runs(tmp_path: Path) -> None:
    lay(closed_workspace(tmp_path), {"logs/code/result_0.txt": b"an example"})
    assert len(prepared(tmp_path, "code: {bert: logs/code}").plan.sets) == 2


# ---- the repository checker ---------------------------------------------------------------


def test_unfit(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as stream:
        stream.truncate((50 << 20) + 1)
    spaced = PlannedFile("a b/c.py", b"", "src/a b/c.py")
    large = PlannedFile("ok", tmp_path / "large", "logs/large\x07")
    problems = ["src/a b/c.py: its path contains a space", "logs/large\\x07: larger than 50 MiB"]
    assert list(unfit((spaced, large, PlannedFile("ok2", b"x" * 100)))) == problems


# ---- the official tools accept what was built, and read our scores from it ----------------

RULESET = "2.0.0"
TOO_LARGE = logs_of("bow-pod16", batch_size=100_000)
BYPASSES = ("rcp-bypass", "seed-checker-bypass")


def build(root: Path, **order: Any) -> Prepared:
    made = prepared(root, **order)
    assert made.refusals == ()
    write_tree(made.target, made.files, force=False)
    return made


def test_scores_and_verdicts(tmp_path: Path) -> None:
    """Those of the build, of a check of the tree, and of the official tools."""
    open_ = {"systems/bow-pod64-open.json": described("bow-pod64", division="open")}
    logs = numbered(logs_of("Bow Pod64", "rnnt", "open"), "logs/o{}.log")
    made = build(lay(closed_workspace(tmp_path / "ws"), open_, logs))
    assert package_checked(made.target, RULESET) == (True, {})
    assert not repository_errors(made.target)
    rows = json.loads((made.target / "results.json").read_text("utf-8"))["results"]
    ours = {(row["system"], row["benchmark"]): row["official_minutes"] for row in rows}
    assert summary(made.target, RULESET) == ours
    assert {score: row["score_minutes"] for score, row in zip(ours, rows, strict=True)} == ours
    names = ["bow-pod16/bert", "bow-pod16/resnet", "bow-pod64-open/rnnt"]
    assert sorted(map("/".join, ours)) == names
    checked = check([str(made.target)], Options(round="2.0")).report
    built = (judged.result.row for judged in made.judged)
    expected = tuple(replace(row, system_by=None, companies=("Graphcore",)) for row in built)
    assert checked.result_sets == expected
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
    target = build(resnet_workspace(tmp_path / "ws", logs), bypasses=BYPASSES).target
    files = target.rglob(PARAMETERS)
    assert {f.parent.relative_to(target).as_posix(): f.read_text() for f in files} == flags
    assert package_checked(target, RULESET) == (True, {})


def test_what_is_refused_is_what_the_package_checker_rejects(tmp_path: Path) -> None:
    root = resnet_workspace(tmp_path / "ws", TOO_LARGE)
    assert prepared(root).refusals
    target = build(root, invalid="keep").target
    passed, errors = package_checked(target, RULESET)
    assert not passed
    assert list(errors) == ["results/bow-pod16/resnet"]
