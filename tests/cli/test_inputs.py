"""Inputs as people have them: compressed, in archives, given twice."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from shutil import make_archive
from typing import Any

import pytest

from tests.helpers.archives import zstandard
from tests.helpers.program import call
from tests.helpers.trees import SYSTEM, simulated, write_set, write_submission, write_system

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_set(tmp_path / "logs", simulated())


def compress(folder: Path, suffix: str) -> None:
    for log in list(folder.iterdir()):
        log.with_name(log.name + suffix).write_bytes(PACK[suffix](log.read_bytes()))
        log.unlink()


def report(*arguments: Path | str) -> Any:
    return json.loads(call("check", *arguments, "--format", "json").stdout)


# ---- compressed ---------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_logs_are_judged_as_logs(folder: Path, suffix: str) -> None:
    plain = json.dumps(report(folder))
    compress(folder, suffix)
    assert json.dumps(report(folder)).replace(f".txt{suffix}", ".txt") == plain


def test_a_build_decompresses(folder: Path) -> None:
    root = folder.parent
    compress(folder, ".zst")
    write_system(root / "systems")
    assert call("build", root).exit_code == 0
    built = root / "submissions" / "Graphcore" / "results" / SYSTEM / "resnet"
    assert {path.read_bytes() for path in built.glob("result_*.txt")} == {*simulated()}


# ---- archives -----------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "jobs"), [("tar", "1"), ("gztar", "2"), ("zip", "1")])
def test_an_archive_has_the_report_of_its_folder(tmp_path: Path, form: str, jobs: str) -> None:
    root = write_submission(tmp_path / "ACME", "resnet", "bert")
    for log in root.rglob("result_1.txt"):
        log.write_bytes(log.read_bytes().replace(b"seed", b"sead"))
    (root / "results" / SYSTEM / "bert" / "result_0.txt").unlink()
    name = Path(make_archive(str(root), form, root)).name
    packed, plain = (json.dumps(report(path, "-j", jobs)) for path in (tmp_path / name, root))
    # In the report of the archive, its name is before the paths.
    labelled = packed.replace(f"{name}/", "").replace(f'"{name}"', '"."')
    same = plain.replace('"subject": ""', '"subject": "."')
    assert json.loads(labelled.replace('"subject": ""', '"subject": "."')) == json.loads(same)


# ---- twice --------------------------------------------------------------------------------


def test_the_same_logs_are_judged_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    (folder.parent / "link").symlink_to("logs")
    others = ["./logs", "logs/", "logs/result_0.txt", "link"]
    checked = report("logs", *others)
    assert [run["path"] for run in checked["runs"]] == [f"logs/result_{n}.txt" for n in range(5)]
    notes = [f["places"] for f in checked["findings"] if f["code"] == "TREE113"]
    twice = {place["path"] for places in notes for place in places}
    assert twice == {"./logs", "logs", "logs/result_0.txt", "link"}
    assert checked["verdict"]["official"] == "pass"
