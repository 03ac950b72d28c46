"""The same tree gives the same bytes; what cannot be packed is refused."""

import hashlib
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.commands.archive.encryption import Encryption, Form
from mlperf_pkg.commands.archive.packing import default_target, pack
from mlperf_pkg.commands.archive.tar import PIECE, HashedFile, compress, hash_tree
from mlperf_pkg.commands.builder.manifest import MANIFEST
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.archives import Names
from tests.helpers.archives import FILES, lay, manifest_of, names, packed
from tests.helpers.examples import examples

PARTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0"), min_size=1, max_size=60)  # fmt: skip
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
TREES = st.dictionaries(PATHS, st.binary(max_size=2000), min_size=1, max_size=6)


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {m.name: opened.extractfile(m).read() for m in opened}  # type: ignore[union-attr]


def packable(files: dict[str, bytes]) -> bool:
    """Whether this machine can have these files, and any other."""
    names = Names()
    return all(names.add(path) is None for path in files)


def test_the_bytes_are_for_ever() -> None:
    """An archive of the same files made years ago, anywhere: a change here is a new format."""
    many = b"".join(b"%d\n" % number for number in range(700_000))
    assert len(many) > PIECE
    files = (
        HashedFile.of("a/" + "long/" * 60 + "name", b"x"),
        HashedFile.of("größe", b"\0" * 1000),
        HashedFile("run.sh", 0, hashlib.sha256().hexdigest(), executable=True, content=b""),
        HashedFile.of("z", many),
    )
    data = b"".join(compress("ACME", Path(), files))
    assert (len(data), hashlib.sha256(data).hexdigest()) == GOLDEN


GOLDEN = (978850, "f9369132f883ed00a7836ecabe60ba60c1a246273880cadc83d4be6aca94c803")


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
    assert [info.name for info in infos] == sorted(
        f"ACME/{name}" for name in (*FILES, "run.sh", MANIFEST)
    )
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in infos} == {(0, 0, "", "", 315532800)}
    assert {m.name: m.mode for m in infos if m.mode != 0o644} == {"ACME/run.sh": 0o755}


def test_every_tool_reads_it(tmp_path: Path) -> None:
    """A file beyond one piece of compression, and names beyond a plain header."""
    files = {"a/" * 70 + "x": b"1", "größe/ü": b"2", "big": os.urandom(PIECE + 1), LONG: b"3"}
    tree = lay(tmp_path / "ACME", files)
    packed(tree)
    for command in (["gzip", "-t"], ["tar", "-x", "-C", "out", "-f"]):
        (tmp_path / "out").mkdir(exist_ok=True)
        done = subprocess.run([*command, "ACME.tar.gz"], cwd=tmp_path, capture_output=True, text=True, check=False)  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
    for name, content in files.items():
        assert (tmp_path / "out" / "ACME" / name).read_bytes() == content
    subprocess.run(["sha256sum", "-c", "ACME.tar.gz.sha256"], cwd=tmp_path, check=True, capture_output=True)  # fmt: skip


LONG = "n" * 200


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


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    tree = lay(tmp_path / "ACME", FILES)
    hashed, file = hash_tree(tree), tree / "systems/box.json"
    for change, message in (
        (lambda: file.write_bytes(b"[]\n"), "changed while it was packed"),
        (file.unlink, "cannot be read"),
        (lambda: file.symlink_to("/etc/hostname"), "cannot be read"),
    ):
        change()
        with pytest.raises(UserError, match=rf"box\.json: {message}"):
            pack(hashed, tmp_path / "x.tar.gz", None, force=False)
        assert [path.name for path in tmp_path.iterdir()] == ["ACME"]


def test_archive_and_checksum_are_written_together(tmp_path: Path) -> None:
    tree, taken = lay(tmp_path / "ACME", FILES), tmp_path / "x.tar.gz.sha256"
    taken.write_text("old")
    with pytest.raises(UserError, match="sha256: exists already"):
        packed(tree, tmp_path / "x.tar.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ACME", taken.name]


def test_default_names(tmp_path: Path) -> None:
    tree = lay(tmp_path / "ACME", {}) / ".." / "ACME"
    assert default_target(tree, Form.AGE) == tmp_path / "ACME.tar.gz.age"
    with pytest.raises(UserError, match="/: cannot be packed under its name ''"):
        default_target(Path("/"), None)


STEPS = {"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir"}


def die_at(step: int) -> None:
    """Kill this process at one of its file operations."""
    left = iter(range(step))

    def audit(name: str, _: object) -> None:
        if name in STEPS and next(left, None) is None:
            os._exit(9)

    sys.addaudithook(audit)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_killed_at_any_step(tmp_path: Path) -> None:
    """Encryption writes no plaintext to disk, and the next run removes what is left."""
    tree = lay(tmp_path / "ACME", FILES)
    how = Encryption(Form.OFFICIAL, "secret")
    pack(hash_tree(tree), tmp_path / "first.tar.gz", how, force=False)  # imports what it needs
    target, status, step = tmp_path / "out" / "x.tar.gz", -1, 0
    while status != 0:
        child = os.fork()
        if child == 0:
            die_at(step)
            pack(hash_tree(tree), target, how, force=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        step += 1
        files = [path for path in target.parent.rglob("*") if path.is_file()]
        assert not any(b"\x1f\x8b\x08" in path.read_bytes()[:512] for path in files)
    assert step > 10
    pack(hash_tree(tree), target, how, force=True)
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
