"""The same tree gives the same bytes, and every change to them is detected."""

import gzip
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.checker.check import check
from mlperf_pkg.checker.values import Checked, Options
from mlperf_pkg.commands.archive import packing, verification
from mlperf_pkg.commands.archive import tar as archives
from mlperf_pkg.commands.archive.encryption import Encryption, Form
from mlperf_pkg.commands.archive.packing import pack
from mlperf_pkg.commands.archive.tar import PIECE, HashedFile, hash_tree
from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Severity, Verdict
from mlperf_pkg.infra import archives as names_module
from tests.helpers.archives import (
    FILES,
    LOG,
    codes,
    failed,
    flipped,
    manifest_of,
    member,
    names,
    packed,
    tar,
    tree_tar,
    verified,
    with_manifest,
    write,
    zipped,
)
from tests.helpers.examples import examples
from tests.helpers.forked import apart
from tests.helpers.workspaces import lay

PARTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0"), min_size=1, max_size=60
)
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
TREES = st.dictionaries(PATHS, st.binary(max_size=2000), min_size=1, max_size=6)


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {m.name: opened.extractfile(m).read() for m in opened}  # type: ignore[union-attr]


def packable(files: dict[str, bytes]) -> bool:
    """Whether this machine can have these files, and any other."""
    names = names_module.Names()
    return all(names.add(path) is None for path in files)


MANY = b"".join(b"%d\n" % number for number in range(700_000))
FOR_EVER = (
    HashedFile.of("a/" + "long/" * 60 + "name", b"x"),
    HashedFile.of("größe", b"\0" * 1000),
    HashedFile("run.sh", 0, hashlib.sha256().hexdigest(), executable=True, content=b""),
    HashedFile.of("z", MANY),
)
UNPACKED = "8f75d2c9ca3249daaea97bb51614404750b294d8734495cb0bfb00f5e3263ff8"
BYTES = {
    "deflate 0.9.0": (978552, "c23437b1225e80c04623f2943486474ad9d0c26b76deac5951f3f252ba926a32")
}


def test_the_bytes_are_for_ever() -> None:
    """An archive of the same files made years ago, anywhere: a change here is a new format."""
    assert len(MANY) > PIECE
    data = b"".join(archives.compress("ACME", Path(), FOR_EVER))
    stream = gzip.decompress(data).replace(archives.compressor().encode(), b"deflate 0.9.0")
    assert hashlib.sha256(stream).hexdigest() == UNPACKED
    if archives.compressor() in BYTES:
        assert (len(data), hashlib.sha256(data).hexdigest()) == BYTES[archives.compressor()]


@examples(25)
@given(TREES.filter(packable))
def test_copies_of_a_tree_give_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    """Whoever made them, in whatever order, at whatever time and for whomever readable."""
    root = tmp_path_factory.mktemp("copies")
    one = lay(root / "one" / "ACME", files)
    other = lay(root / "two" / "ACME", dict(reversed(files.items())))
    for number, name in enumerate(files):
        os.utime(other / name, (number, 10**9 + number))
        (other / name).chmod(0o400 | number << 3 & 0o66)
    assert packed(one).read_bytes() == packed(other).read_bytes()
    inside = members(packed(one, root / "x.tar.gz"))
    assert {f"ACME/{name}": content for name, content in files.items()}.items() <= inside.items()
    assert inside.keys() - {f"ACME/{name}" for name in files} == {f"ACME/{MANIFEST}"}


def test_what_an_archive_holds(tmp_path: Path) -> None:
    tree = lay(tmp_path / "ACME", {**FILES, "run.sh": b"#!"})
    (tree / "run.sh").chmod(0o700)
    archive = packed(tree)
    usual = stat.S_IMODE((tree / "systems/box.json").stat().st_mode)
    assert stat.S_IMODE(archive.stat().st_mode) == usual
    with tarfile.open(archive) as opened:
        infos = opened.getmembers()
    assert [m.name for m in infos] == sorted(f"ACME/{n}" for n in (*FILES, "run.sh", MANIFEST))
    assert {m.name: m.mode for m in infos if m.mode != 0o644} == {"ACME/run.sh": 0o755}


@pytest.fixture(scope="module")
def unusual() -> dict[str, bytes]:
    """A file beyond one piece of compression, and names beyond a plain header."""
    return {"a/" * 70 + "x": b"1", "größe/ü": b"2", "big": os.urandom(PIECE + 1), "n" * 200: b"3"}


@pytest.fixture(scope="module")
def unusual_archive(unusual: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(lay(tmp_path_factory.mktemp("unusual") / "ACME", unusual))


@pytest.mark.parametrize(
    "command",
    [["gzip", "-t", "ACME.tar.gz"], ["sha256sum", "--status", "-c", "ACME.tar.gz.sha256"]],
    ids=["gzip", "sha256sum"],
)
def test_tools_accept_it(unusual_archive: Path, command: list[str]) -> None:
    done = subprocess.run(
        command, cwd=unusual_archive.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_tar_reads_it(unusual: dict[str, bytes], unusual_archive: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["tar", "-x", "-f", unusual_archive],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [
        (name, content)
        for name, content in unusual.items()
        if (tmp_path / "ACME" / name).read_bytes() != content
    ] == []


def test_the_manifest_is_made_or_kept(tmp_path: Path) -> None:
    """The tree does not change."""
    tree = lay(tmp_path / "ACME", FILES)
    assert members(packed(tree))[f"ACME/{MANIFEST}"] == manifest_of(FILES).encode()
    assert MANIFEST not in names(tree)
    lay(tree, {MANIFEST: b"own"})
    assert members(packed(tree, tmp_path / "x"))[f"ACME/{MANIFEST}"] == b"own"


def test_empty_folders_are_listed_and_links_and_names_are_unfit(tmp_path: Path) -> None:
    strange = os.fsdecode(b"no-\xff-utf8")
    tree = lay(tmp_path / "ACME", {**FILES, strange: b""})
    (tree / "empty" / "inner").mkdir(parents=True)
    (tree / "link").symlink_to("systems")
    os.mkfifo(tree / "pipe")
    hashed = hash_tree(tree)
    assert hashed.empty == ("empty/inner",)
    reasons = {"link": "a link", "pipe": "not a regular file", strange: "the name is not UTF-8"}
    assert hashed.unfit == reasons
    assert [file.path for file in hashed.files] == sorted(FILES)


def replace_by_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.write_bytes(b"[]\n"), "the file changed while it was packed"),
        (Path.unlink, "cannot be read"),
        (replace_by_link, "cannot be read"),
    ],
    ids=["other bytes", "removed", "a link"],
)
def test_a_file_that_changes_meanwhile(
    tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    tree = lay(tmp_path / "ACME", FILES)
    hashed = hash_tree(tree)
    change(tree / "systems/box.json")
    with pytest.raises(UserError, match=rf"box\.json: {message}"):
        pack(hashed, tmp_path / "x.tar.gz", None, force=False)
    assert [path.name for path in tmp_path.iterdir()] == ["ACME"]


def test_archive_and_checksum_are_written_together(tmp_path: Path) -> None:
    tree, taken = lay(tmp_path / "ACME", FILES), tmp_path / "x.tar.gz.sha256"
    taken.write_text("old")
    with pytest.raises(UserError, match="sha256 exists already"):
        packed(tree, tmp_path / "x.tar.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ACME", taken.name]


def test_default_names(tmp_path: Path) -> None:
    tree = lay(tmp_path / "ACME", {}) / ".." / "ACME"
    assert packing.default_target(tree, Form.AGE) == tmp_path / "ACME.tar.gz.age"
    with pytest.raises(UserError, match="/: cannot be packed under its name ''"):
        packing.default_target(Path("/"), None)


STEPS = {"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir"}


def die_at(step: int) -> None:
    """Kill this process at one of its file operations."""
    left = iter(range(step))

    def audit(name: str, _: object) -> None:
        if name in STEPS and next(left, None) is None:
            os._exit(9)

    sys.addaudithook(audit)


SECRET = Encryption(Form.OFFICIAL, "secret")


def killed_at_any_step(tree: Path, target: Path) -> tuple[int, list[tuple[int, Path]]]:
    """Pack in processes that are killed, until one is not: the number of steps, and the files that
    begin as an archive that is not encrypted, each with the step before which it was there.
    """
    pack(hash_tree(tree), tree.with_name("first.tar.gz"), SECRET, force=False)  # imports all
    status = -1
    step = 0
    plaintexts: list[tuple[int, Path]] = []
    while status != 0:
        child = os.fork()
        if child == 0:
            die_at(step)
            pack(hash_tree(tree), target, SECRET, force=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        step += 1
        files = [path for path in target.parent.rglob("*") if path.is_file()]
        plaintexts += [(step, path) for path in files if b"\x1f\x8b\x08" in path.read_bytes()[:512]]
    return step, plaintexts


def test_killed_at_any_step(tmp_path: Path) -> None:
    """Encryption writes no plaintext to disk, and the next run removes what is left."""
    tree = lay(tmp_path / "ACME", FILES)
    target = tmp_path / "out" / "x.tar.gz"
    step, plaintexts = apart(killed_at_any_step, tree, target)
    assert plaintexts == []
    assert step > 10
    pack(hash_tree(tree), target, SECRET, force=True)
    assert names(target.parent) == ["x.sha1", "x.tar.gz", "x.tar.gz.sha256"]


def test_a_kill_between_the_names_of_two_files(tmp_path: Path) -> None:
    """The next run succeeds even without --force."""
    tree, scratch = lay(tmp_path / "ACME", FILES), tmp_path / ".mlperf-pkg-0123.new"
    lay(scratch, {"x.tar.gz": b"archive", "x.tar.gz.sha256": b"sum"})
    (scratch / ".mlperf-pkg").write_text(f"1 {scratch.stat().st_ino}")
    (tmp_path / "x.tar.gz.sha256").hardlink_to(scratch / "x.tar.gz.sha256")
    packed(tree, tmp_path / "x.tar.gz")
    assert names(tmp_path)[-2:] == ["x.tar.gz", "x.tar.gz.sha256"]
    assert not scratch.exists()


# ---- every change to an archive or a tree is detected ---------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An archive of a few short files."""
    root = tmp_path_factory.mktemp("tiny")
    return packed(lay(root / "ACME", {**FILES, LOG: FILES[LOG][:400]})).read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


# ---- archives -----------------------------------------------------------------------------


def test_every_bit_of_head_and_tail(tiny: bytes, folder: Path) -> None:
    """The gzip header says nothing about the files; all the same nothing in it may change."""
    archive = folder / "ends.tar.gz"
    flips = product((*range(48), *range(-24, 0)), range(8))
    assert [
        (position, bit)
        for position, bit in flips
        if not failed(write(archive, flipped(tiny, position % len(tiny), bit)))
    ] == []


@examples(150)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_bit(tiny: bytes, folder: Path, position: float, bit: int) -> None:
    data = flipped(tiny, int(position * len(tiny)), bit)
    assert failed(write(folder / "any.tar.gz", data))


@examples(100)
@given(end=st.floats(0, 1, exclude_max=True))
def test_cut_off_anywhere(tiny: bytes, folder: Path, end: float) -> None:
    assert failed(write(folder / "cut.tar.gz", tiny[: int(end * len(tiny))]))


@pytest.mark.parametrize(
    "more", [b"\0", b"\n", b"\x1f", archives.HEADER, zipped(b""), zipped(b"\0" * 512)]
)
def test_anything_after_the_end(more: bytes, tiny: bytes, tmp_path: Path) -> None:
    """Zeros and empty members, which other readers pass over, too."""
    assert failed(write(tmp_path / "x.tar.gz", tiny + more))


def with_checksum(folder: Path, archive: bytes, template: str) -> Path:
    """The archive, beside a checksum file that is made from a template."""
    checksums = template.format(right=hashlib.sha256(archive).hexdigest().upper(), other="0" * 64)
    (folder / f"ACME.tar.gz{verification.SUFFIX}").write_text(checksums)
    return write(folder / "ACME.tar.gz", archive)


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{right}  ACME.tar.gz", id="read as text"),
        pytest.param("{right} *ACME.tar.gz\n", id="read as binary"),
        pytest.param("x\n{right}  ACME.tar.gz\r\n", id="in the second line"),
    ],
)
def test_a_checksum_file_that_fits(tiny: bytes, tmp_path: Path, template: str) -> None:
    assert codes(verified(with_checksum(tmp_path, tiny, template))) == set()


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{other}  ACME.tar.gz\n", id="another sum"),
        pytest.param("{right}  Other.tar.gz\n", id="another name"),
        pytest.param("\ufffd\n", id="no sum"),
        pytest.param("{right} ACME.tar.gz\n", id="one space"),
    ],
)
def test_a_checksum_file_of_another_archive(tiny: bytes, tmp_path: Path, template: str) -> None:
    report = verified(with_checksum(tmp_path, tiny, template))
    assert codes(report) == {"PACK101"}
    assert Verdict.PASS not in (report.verdict.official, report.verdict.rules)


# ---- archives of others -------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("ACME",),
        ("-C", "ACME", "."),
        ("-C", "ACME", "results", "systems", "notes", MANIFEST),
        ("--format=pax", "ACME"),
        ("--format=ustar", "ACME"),
    ],
)
def test_archives_made_by_tar(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    lay(tmp_path / "ACME", with_manifest({**FILES, "deep/" * 19 + "file": b"x"}))
    if arguments[-1] == MANIFEST:
        arguments = (*arguments, "deep")
    subprocess.run(["tar", "-czf", "x.tar.gz", *arguments], cwd=tmp_path, check=True)
    report = verified(tmp_path / "x.tar.gz")
    assert codes(report) == {"PACK106", "PACK107"}
    assert {finding.severity for finding in report.findings if finding.code in codes(report)} == {
        Severity.NOTE
    }


@pytest.mark.parametrize(
    ("compressor", "reason"),
    [
        pytest.param("deflate 0.8.1", "deflate 0.8.1, but deflate 0.", id="older"),
        pytest.param("", "another version of deflate, but deflate 0.", id="not recorded"),
    ],
)
def test_archives_of_another_compressor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressor: str, reason: str
) -> None:
    """Their bytes may differ from what is compressed here, so only their contents are compared."""
    with monkeypatch.context() as patch:
        patch.setattr(archives, "compressor", lambda: compressor)
        patch.setattr(archives, "LEVEL", 1)
        archive = packed(lay(tmp_path / "ACME", FILES))
    report = verified(archive)
    (note,) = [finding for finding in report.findings if finding.code.startswith("PACK")]
    assert (note.code, note.severity) == ("PACK106", Severity.NOTE)
    assert note.text.startswith(f"the archive was compressed by {reason}")


WITH_LONG_NAME = with_manifest({**FILES, "n" * 200: b"x"})
OF_OTHERS = {"PACK106", "PACK107"}


@pytest.mark.parametrize(
    ("format_", "files", "expected"),
    [
        pytest.param(tarfile.GNU_FORMAT, WITH_LONG_NAME, OF_OTHERS, id="GNU"),
        pytest.param(tarfile.PAX_FORMAT, WITH_LONG_NAME, OF_OTHERS, id="PAX"),
        pytest.param(tarfile.USTAR_FORMAT, with_manifest(FILES), OF_OTHERS, id="USTAR"),
        pytest.param(
            tarfile.USTAR_FORMAT, FILES, {"PACK201", *OF_OTHERS}, id="USTAR without a manifest"
        ),
    ],
)
def test_archives_made_by_tarfile(
    tmp_path: Path, format_: int, files: dict[str, bytes], expected: set[str]
) -> None:
    archive = write(tmp_path / "x.tar.gz", zipped(tree_tar(files, format_=format_)))
    assert codes(verified(archive)) == expected


def test_a_mark_does_not_vouch_for_other_bytes(tiny: bytes, tmp_path: Path) -> None:
    """Our own tar, compressed by somebody else."""
    assert codes(verified(write(tmp_path / "ours.tar.gz", tiny))) == {"PACK107"}
    archive = write(tmp_path / "x.tar.gz", zipped(gzip.decompress(tiny)))
    assert codes(verified(archive)) == {"PACK105", "PACK107"}


# ---- trees --------------------------------------------------------------------------------


def tree_codes(tree: Path) -> set[str]:
    return codes(verification.verify_tree(tree, Options())[1])


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


def with_data(data: bytes) -> Callable[[Path], object]:
    """A change of the manifest."""
    return lambda tree: (tree / MANIFEST).write_bytes(data)


TREE_CHANGES: list[tuple[str, str, Callable[[Path], object]]] = [
    ("a file removed", "PACK203", lambda tree: (tree / "systems/box.json").unlink()),
    ("a file emptied", "PACK204", lambda tree: (tree / "systems/box.json").write_bytes(b"")),
    ("a file added", "PACK205", lambda tree: (tree / "more").write_bytes(b"")),
    ("a link added", "PACK206", lambda tree: (tree / "link").symlink_to("systems")),
    ("the manifest removed", "PACK201", lambda tree: (tree / MANIFEST).unlink()),
    ("a large manifest", "PACK202", lambda tree: os.truncate(tree / MANIFEST, 65 << 20)),
    ("a manifest that is not text", "PACK202", with_data(b"\xff")),
    ("a manifest nested too deeply", "PACK202", with_data(b"[" * 10**5)),
    ("a manifest of numbers", "PACK202", with_data(b'{"files": [3]}')),
    ("a manifest with NaN", "PACK202", with_data(b'{"files": [], "tool": {"a": NaN}}')),
]


@pytest.mark.parametrize(
    ("code", "change"),
    [case[1:] for case in TREE_CHANGES],
    ids=[case[0] for case in TREE_CHANGES],
)
def test_changes_to_a_tree(
    tree: Path, tmp_path: Path, code: str, change: Callable[[Path], object]
) -> None:
    copy = Path(shutil.copytree(tree, tmp_path / "copy"))
    change(copy)
    assert tree_codes(copy) == {code}


def test_a_tree_without_logs(tmp_path: Path) -> None:
    tree = lay(tmp_path / "ACME", with_manifest({"x": b""}))
    with pytest.raises(UserError, match=r"no MLPerf log in .*/ACME\.tar\.gz "):
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
    monkeypatch.setattr(archives._Stream, "padding", Mock(side_effect=KeyboardInterrupt))
    archive = write(tmp_path / "x.tar.gz", tiny)
    with pytest.raises(KeyboardInterrupt):
        verified(archive, extract=tmp_path / "out")
    assert names(tmp_path) == ["tmp", "x.tar.gz"]


# ---- what must not be unpacked: the reason is reported, and nothing is left behind --------

GOOD = tree_tar(with_manifest(FILES))
END = bytes(1024)
PAX = {"format_": tarfile.PAX_FORMAT}


def typed(kind: bytes, name: str = "ACME/x", link: str = "") -> bytes:
    return tar(member(name, type=kind, linkname=link))


def pax(**records: str) -> bytes:
    return tar(member("ACME/x", b"1", pax_headers=records), **PAX)


def broken(change: Callable[[bytearray], None]) -> bytes:
    """A tar archive of one file whose header was changed and has a right checksum again."""
    data = bytearray(tar(member("ACME/x", b"1")))
    change(data)
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def put(position: int, what: bytes) -> Callable[[bytearray], None]:
    return lambda data: data.__setitem__(slice(position, position + len(what)), what)


TARS = {
    "absolute": (typed(b"0", "/tmp/x"), "PACK103", "an absolute path"),
    "up": (typed(b"0", "../x"), "PACK103", "a path with"),
    "up as a folder": (typed(b"5", "ACME/.."), "PACK103", "a path with"),
    "no name": (typed(b"0", ""), "PACK103", "a path with"),
    "backslash": (typed(b"0", "..\\x"), "PACK103", "backslash"),
    "no utf-8": (typed(b"0", "ACME/\udcff"), "PACK103", "not UTF-8"),
    "long": (tar(member("x/" * 600 + "x", b"")), "PACK103", "longer than"),
    "symbolic link out": (typed(b"2", link="/etc/passwd"), "PACK103", "a symbolic link"),
    "hard link": (typed(b"1", link="ACME/y"), "PACK103", "a hard link"),
    "character device": (typed(b"3"), "PACK103", "a device"),
    "sparse": (broken(put(156, b"S")), "PACK103", "a sparse file"),
    "unknown type": (broken(put(156, b"Z")), "PACK103", "neither a file nor a folder"),
    "twice": (tree_tar({"x": b"1"})[:1024] + tree_tar({"x": b"2"}), "PACK103", "twice"),
    "file, then folder": (tar(member("ACME", b""), member("ACME/x", b"")), "PACK103", "twice"),
    "folder, then file": (tar(member("ACME/x", b""), member("ACME", b"")), "PACK103", "twice"),
    "case": (tar(member("ACME/x"), member("acme/y")), "PACK103", "the same name as ACME"),
    "pax path": (pax(path="../x"), "PACK103", "a path with"),
    "pax sparse": (pax(**{"GNU.sparse.name": "../x"}), "PACK102", "a pax header has"),
    "pax size": (pax(size="-1"), "PACK102", "not a number"),
    "pax unknown": (
        pax(hidden="x"),
        "PACK102",
        "a pax header has the field 'hidden', which an archive of files does not need",
    ),
    "pax bomb": (pax(comment="x" * 70_000), "PACK104", "a header has 70"),
    "global pax": (
        tarfile.TarInfo.create_pax_global_header({"path": "x"}),
        "PACK102",
        "a global pax",
    ),
    "pax alone": (pax(path="é")[:1024] + END, "PACK102", "not followed by the member"),
    "pax torn": (broken(put(156, b"x")), "PACK102", "cannot be read"),
    "folder with content": (broken(put(156, b"5")), "PACK102", "a folder has content of its own"),
    "not tar": (b"Dear chair, here is our submission." * 99, "PACK102", "not a tar archive"),
    "nothing": (b"", "PACK102", "cut off"),
    "wrong checksum": (flipped(GOOD, 0, 0), "PACK102", "checksum of a header"),
    "wrong size": (broken(put(124, b"x")), "PACK102", "a number in a header"),
    "size beyond the end": (broken(put(124, b"7" * 11)), "PACK102", "cut off"),
    "cut in a file": (GOOD[:600], "PACK102", "cut off"),
    "no end": (GOOD.rstrip(b"\0") + bytes(-len(GOOD.rstrip(b"\0")) % 512), "PACK102", "cut off"),
    "after the end": (GOOD + b"x" + bytes(511), "PACK102", "follows the end"),
    "after one block of the end": (tar(member("x"))[:1024] + b"x" * 512, "PACK102", "follows"),
    "in the padding": (
        flipped(tar(member("ACME/x", b"1")), 513, 0),
        "PACK102",
        "between two members",
    ),
}


@pytest.mark.parametrize(("data", "code", "message"), TARS.values(), ids=TARS)
def test_hostile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, code: str, message: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    archive = write(tmp_path / "x.tar.gz", zipped(data))
    (finding,) = [
        f for f in verified(archive, extract=tmp_path / "out").findings if f.code != "PACK107"
    ]
    assert (finding.code, message in finding.text) == (code, True), finding
    assert names(tmp_path) == ["tmp", "x.tar.gz"]


def test_content_that_only_some_readers_see(tmp_path: Path) -> None:
    """Some stop at the first member or at the end of tar; GNU gzip ends at zeros."""
    in_second, behind_zeros = zipped(tree_tar({"evil": b""})), bytes(3) + zipped(GOOD[1024:])
    assert [
        data
        for data in (zipped(GOOD) + in_second, zipped(GOOD[:1024]) + behind_zeros)
        if "PACK102" not in codes(verified(write(tmp_path / "x.tar.gz", data)))
    ] == []


@pytest.mark.parametrize("tail", [True, False])
@pytest.mark.parametrize("content", [bytes(3 << 20), os.urandom(3 << 20)], ids=["zeros", "noise"])
def test_a_bomb(tmp_path: Path, tail: bool, content: bytes) -> None:
    """Zeros in a file, and zeros after the end, have the same limit, compressed or not."""
    data = GOOD + content if tail else tar(member("ACME/x", content))
    archive = write(tmp_path / "x.tar.gz", zipped(data))
    report = verification.verify_archive(archive, Options(), str, largest=1 << 20)
    (finding,) = [f for f in report.findings if f.code in {"PACK104", "PACK102"}]
    is_bomb = not tail or not any(content)
    assert finding.code == ("PACK104" if is_bomb else "PACK102")
    assert ("more than 0.000976562 GiB; --max-unpacked sets" in finding.text) is is_bomb


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names_module, "LARGEST_NUMBER", 10)
    data = tar(*(member(f"ACME/{number}") for number in range(11)))
    assert "PACK103" in codes(verified(write(tmp_path / "x.tar.gz", zipped(data))))


@pytest.mark.parametrize(
    "data", [b"", b"\x1f", b"PK\3\4", b"text", b"Salted__", b"Salted__12345678"]
)
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UserError, match=r"x\.tar\.gz: "):
        verified(write(tmp_path / "x.tar.gz", data), "secret")


@examples(300)
@given(
    format_=st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    changes=st.lists(
        st.tuples(st.integers(0, 2**20), st.binary(min_size=1, max_size=12)), max_size=3
    ),
    repair=st.booleans(),
)
def test_no_change_makes_it_fall_over(
    tmp_path_factory: pytest.TempPathFactory,
    format_: int,
    changes: list[tuple[int, bytes]],
    repair: bool,
) -> None:
    """It is unpacked below its folder, or refused; there is no third."""
    data = bytearray(tree_tar({"a/ö": b"x" * 600, "b": b""}, format_=format_))
    for position, what in changes:
        put(position % 3000, what)(data)
    for start in range(0, 3072, 512) if repair else ():
        block = data[start : start + 512]
        block[148:156] = b" " * 8
        data[start + 148 : start + 156] = b"%06o\0 " % sum(block)
    root = tmp_path_factory.mktemp("fuzz")
    (root / "inner").mkdir()
    position = 0

    def read(size: int) -> bytes:
        nonlocal position
        position += size
        return bytes(data[position - size : position])

    with suppress(archives.BadArchive):
        archives.untar(read, root / "inner", len(data))
    assert [path.name for path in root.iterdir()] == ["inner"]
