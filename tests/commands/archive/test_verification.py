"""Every change to an archive or a tree is detected."""

import gzip
import os
import shutil
import subprocess
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.archive import untar, verification
from mlperf_pkg.commands.archive.compression import HEADER
from mlperf_pkg.commands.archive.verification import SUFFIX, verify_tree
from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Severity, Verdict
from tests.helpers.archives import (
    FILES,
    LOG,
    codes,
    failed,
    flipped,
    lay,
    names,
    packed,
    tree_tar,
    verified,
    with_manifest,
    write,
    zipped,
)
from tests.helpers.examples import examples


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An archive of a few short files."""
    root = tmp_path_factory.mktemp("tiny")
    return packed(lay(root / "ACME", {**FILES, LOG: FILES[LOG][:400]})).read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


# ---- archives -----------------------------------------------------------------------------


@pytest.mark.parametrize("position", [*range(48), *range(-24, 0)])
def test_every_bit_of_head_and_tail(tiny: bytes, folder: Path, position: int) -> None:
    """The gzip header says nothing about the files; all the same nothing in it may change."""
    for bit in range(8):
        data = flipped(tiny, position % len(tiny), bit)
        assert failed(write(folder / "ends.tar.gz", data))


@examples(150)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_bit(tiny: bytes, folder: Path, position: float, bit: int) -> None:
    data = flipped(tiny, int(position * len(tiny)), bit)
    assert failed(write(folder / "any.tar.gz", data))


@examples(100)
@given(end=st.floats(0, 1, exclude_max=True))
def test_cut_off_anywhere(tiny: bytes, folder: Path, end: float) -> None:
    assert failed(write(folder / "cut.tar.gz", tiny[: int(end * len(tiny))]))


def test_anything_after_the_end(tiny: bytes, tmp_path: Path) -> None:
    """Zeros and empty members, which other readers pass over, too."""
    for more in (b"\0", b"\n", b"\x1f", HEADER, zipped(b""), zipped(b"\0" * 512)):
        assert failed(write(tmp_path / "x.tar.gz", tiny + more))


FITTING = ["{right}  ACME.tar.gz", "{right} *ACME.tar.gz\n", "x\n{right}  ACME.tar.gz\r\n"]
OTHERS = ["{other}  ACME.tar.gz\n", "{right}  Other.tar.gz\n", "\ufffd\n", "{right} ACME.tar.gz\n"]


def test_checksum_files_of_others(tmp_path: Path) -> None:
    archive = packed(lay(tmp_path / "ACME", FILES))
    beside = archive.with_name(archive.name + SUFFIX)
    right = beside.read_text().split()[0].upper()
    for text in (*FITTING, *OTHERS):
        beside.write_text(text.format(right=right, other="0" * 64))
        report = verified(archive)
        assert codes(report) == ({"PACK101"} if text in OTHERS else set())
    assert Verdict.PASS not in (report.verdict.official, report.verdict.rules)


# ---- archives of others -------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("ACME",), ("-C", "ACME", "."), ("-C", "ACME", "results", "systems", "notes", MANIFEST), ("--format=pax", "ACME"), ("--format=ustar", "ACME")])  # fmt: skip
def test_archives_made_by_tar(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    lay(tmp_path / "ACME", with_manifest({**FILES, "deep/" * 19 + "file": b"x"}))
    if arguments[-1] == MANIFEST:
        arguments = (*arguments, "deep")
    subprocess.run(["tar", "-czf", "x.tar.gz", *arguments], cwd=tmp_path, check=True)
    report = verified(tmp_path / "x.tar.gz")
    assert codes(report) == {"PACK106", "PACK107"}
    assert {finding.severity for finding in report.findings if finding.code in codes(report)} == {Severity.NOTE}  # fmt: skip


def test_archives_made_by_tarfile(tmp_path: Path) -> None:
    long = with_manifest({**FILES, "n" * 200: b"x"})
    for format_, files in ((1, long), (2, long), (0, with_manifest(FILES)), (0, FILES)):
        archive = write(tmp_path / "x.tar.gz", zipped(tree_tar(files, format_=format_)))
        missing = {"PACK201"} if files is FILES else set()
        assert codes(verified(archive)) == {"PACK106", "PACK107"} | missing


def test_a_mark_does_not_vouch_for_other_bytes(tiny: bytes, tmp_path: Path) -> None:
    """Our own tar, compressed by somebody else."""
    assert codes(verified(write(tmp_path / "ours.tar.gz", tiny))) == {"PACK107"}
    archive = write(tmp_path / "x.tar.gz", zipped(gzip.decompress(tiny)))
    assert codes(verified(archive)) == {"PACK105", "PACK107"}


# ---- trees --------------------------------------------------------------------------------


def tree_codes(tree: Path) -> set[str]:
    return codes(verify_tree(tree, Options())[1])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay(tmp_path_factory.mktemp("tree") / "ACME", with_manifest(FILES))


@examples(75)
@given(
    name=st.sampled_from([LOG, "systems/box.json", MANIFEST]),
    position=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
def test_any_bit_of_any_file(tree: Path, name: str, position: float, bit: int) -> None:
    path = tree / name
    before = path.read_bytes()
    try:
        path.write_bytes(flipped(before, int(position * len(before)), bit))
        assert tree_codes(tree) == ({"PACK202"} if name == MANIFEST else {"PACK204"})
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda tree: (tree / "systems/box.json").unlink(), "PACK203"),
        (lambda tree: (tree / "systems/box.json").write_bytes(b""), "PACK204"),
        (lambda tree: (tree / "more").write_bytes(b""), "PACK205"),
        (lambda tree: (tree / "link").symlink_to("systems"), "PACK206"),
        (lambda tree: (tree / MANIFEST).unlink(), "PACK201"),
        (lambda tree: (tree / MANIFEST).write_bytes(b"\xff"), "PACK202"),
        (lambda tree: (tree / MANIFEST).write_bytes(b"[" * 10**5), "PACK202"),
        (lambda tree: os.truncate(tree / MANIFEST, 65 << 20), "PACK202"),
        (lambda tree: (tree / MANIFEST).write_bytes(b'{"files": [3]}'), "PACK202"),
        (lambda tree: (tree / MANIFEST).write_bytes(b'{"files": [], "tool": {"a": NaN}}'), "PACK202"),
    ],
)  # fmt: skip
def test_changes_to_a_tree(tree: Path, tmp_path: Path, change: object, code: str) -> None:
    copy = Path(shutil.copytree(tree, tmp_path / "ACME"))
    change(copy)  # type: ignore[operator]
    assert tree_codes(copy) == {code}


def test_a_tree_without_logs(tmp_path: Path) -> None:
    tree = lay(tmp_path / "ACME", with_manifest({"x": b""}))
    with pytest.raises(UserError, match=r"ACME\.tar\.gz: no MLPerf log here"):
        verified(packed(tree))


@pytest.mark.parametrize("before", [True, False])
def test_a_temporary_folder_that_vanishes_is_no_damage(
    tiny: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    def checked(arguments: list[str], options: Options) -> Checked:
        scratch = Path(arguments[0]).parents[1]
        if before:
            shutil.rmtree(scratch)
        result = check(arguments, options)
        shutil.rmtree(scratch)
        return result

    monkeypatch.setattr(verification, "check", checked)
    archive = write(tmp_path / "x.tar.gz", tiny)
    with pytest.raises(FileNotFoundError, match="was removed by another program"):
        verified(archive)


# ---- unpacking for good -------------------------------------------------------------------


def test_extract(tmp_path: Path) -> None:
    tree = lay(tmp_path / "ACME", FILES)
    (tree / LOG).chmod(0o755)
    archive, out = packed(tree), tmp_path / "new" / "out" / "ACME"
    verified(archive, extract=out.parent)
    assert {name: (out / name).read_bytes() for name in FILES} == FILES
    assert names(out) == sorted([*names(tree), MANIFEST])
    assert (out / LOG).stat().st_mode & 0o777 == 0o755
    write(archive, zipped(tree_tar(with_manifest(FILES) | {LOG: b":::MLLOG"})))
    assert "PACK204" in codes(verified(archive, extract=tmp_path / "damaged"))
    assert not (tmp_path / "damaged").exists()


def test_an_interruption_leaves_nothing(
    tiny: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(untar._Stream, "padding", Mock(side_effect=KeyboardInterrupt))
    archive = write(tmp_path / "x.tar.gz", tiny)
    with pytest.raises(KeyboardInterrupt):
        verified(archive, extract=tmp_path / "out")
    assert names(tmp_path) == ["tmp", "x.tar.gz"]
