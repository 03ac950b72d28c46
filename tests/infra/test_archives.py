"""Archives read as folders: their members, and those that are left out."""

import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mlperf_pkg.errors import ArchiveError
from mlperf_pkg.infra import archives, streams
from mlperf_pkg.infra.archives import ArchivePath, open_archive
from mlperf_pkg.infra.paths import list_tree, read_file
from mlperf_pkg.infra.source import content_of, source_of
from mlperf_pkg.infra.streams import Spool, problem_of
from tests.helpers.archives import member, zstandard
from tests.helpers.archives import tar as tar_of
from tests.helpers.examples import examples

Files = Iterable[tuple[str, bytes]]
FILES = (("ACME/a.log", b"one"), ("ACME/deep/b.log", b"two" * 9999), ("c", b""))


def tar(files: Files, *more: tarfile.TarInfo) -> bytes:
    return tar_of(*(member(name, data) for name, data in files), *((info, b"") for info in more))


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name) if method == 0 else name, data)
    return packed.getvalue()


FORMS: dict[str, Callable[[Files], bytes]] = {
    "x.tar": tar,
    "x.tar.gz": lambda files: gzip.compress(tar(files)),
    "x.tar.xz": lambda files: lzma.compress(tar(files)),
    "x.tar.zst": lambda files: zstandard(tar(files)),
    "x.zip": zipped,
    "stored.zip": lambda files: zipped(files, zipfile.ZIP_STORED),
}
every_form = pytest.mark.parametrize("name", FORMS)


def opened(path: Path, data: bytes) -> ArchivePath:
    path.write_bytes(data)
    return open_archive(path, content_of(path, 1 << 10), Spool)


@every_form
def test_an_archive_is_a_folder(tmp_path: Path, name: str) -> None:
    top = opened(tmp_path / name, FORMS[name](FILES))
    assert [(entry.path, entry.folder, entry.size) for entry in list_tree(top)] == [
        ("ACME", True, 0),
        ("ACME/a.log", False, 3),
        ("ACME/deep", True, 0),
        ("ACME/deep/b.log", False, 29997),
        ("c", False, 0),
    ]
    assert {path: read_file(top / path, 1 << 20) for path, _ in FILES} == dict(FILES)
    assert (top / "ACME").is_dir()
    assert not (top / "ACME").is_file()
    assert not (top / "none").exists()
    assert (str(top / "c"), top.name) == (str(tmp_path / name / "c"), name.partition(".")[0])
    assert [path.name for path in tmp_path.iterdir()] == [name]


@every_form
def test_a_member_opens_in_another_process(tmp_path: Path, name: str) -> None:
    top = opened(tmp_path / name, FORMS[name](FILES))
    sources = [source_of(top / "ACME/deep/b.log", "b"), source_of(top / "c", "c").shared()]
    copies = [pickle.loads(pickle.dumps(source)) for source in sources]
    assert [copy.open().read() for copy in copies] == [b"two" * 9999, b""]


def test_several_archives_share_a_spool(tmp_path: Path) -> None:
    spool, tops = Spool(), []
    for number in range(3):
        path = tmp_path / f"{number}.tar.gz"
        path.write_bytes(gzip.compress(tar([("x", b"%d" % number)])))
        tops.append(open_archive(path, content_of(path, 1 << 10), lambda: spool))
    assert [read_file(top / "x", 9) for top in tops] == [b"0", b"1", b"2"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("form", [tar, zipped], ids=["tar", "zip"])
@pytest.mark.parametrize(
    ("names", "left_out", "read"),
    [
        pytest.param(["./a", "./b/c"], set(), ["a", "b", "b/c"], id="below the current folder"),
        pytest.param(
            ["../a", "b/../../c", "/d", "e"], {"../a", "b/../../c", "/d"}, ["e"], id="outside"
        ),
        pytest.param(["a\\b", "x" * 300], {"a\\b", "x" * 300}, [], id="unfit"),
        pytest.param(["a", "b", "a"], {"a"}, ["b"], id="twice"),
        pytest.param(["a", "a/b"], {"a"}, ["a", "a/b"], id="a file, then a folder"),
        pytest.param(["a/b", "a"], {"a"}, ["a", "a/b"], id="a folder, then a file"),
        pytest.param(["__MACOSX/._a", "a"], set(), ["a"], id="of macOS"),
    ],
)
def test_names(
    tmp_path: Path,
    form: Callable[[Files], bytes],
    names: list[str],
    left_out: set[str],
    read: list[str],
) -> None:
    top = opened(tmp_path / "x", form([(name, b"") for name in names]))
    assert {*top.listing.left_out} == left_out
    assert [entry.path for entry in list_tree(top)] == read


def typed(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo("x")
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (b"1", "a hard link"),
        (b"2", "a symbolic link"),
        (b"6", "a device or pipe"),
        (b"S", "a sparse file"),
    ],
)
def test_what_is_no_file_in_a_tar(tmp_path: Path, kind: bytes, reason: str) -> None:
    top = opened(tmp_path / "x.tar", tar([("a", b"")], typed(kind)))
    assert (top.listing.left_out, top.names) == ({"x": reason}, ("a",))


@pytest.mark.parametrize(
    ("name", "value", "left_out"),
    [
        ("external_attr", 0o120777 << 16, {"x": "a symbolic link"}),
        ("external_attr", 0o020777 << 16, {"x": "a device or pipe"}),
        ("compress_type", zipfile.ZIP_LZMA, {"x": "compressed with a method other than deflate"}),
        ("filename", "", {}),
    ],
)
def test_what_is_no_file_in_a_zip(
    name: str, value: Any, left_out: dict[str, str], tmp_path: Path
) -> None:
    packed, info = io.BytesIO(), zipfile.ZipInfo("x")
    setattr(info, name, value)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(info, b"")
    top = opened(tmp_path / "x.zip", packed.getvalue())
    assert (top.listing.left_out, top.names) == (left_out, ())


GOOD, GOOD_ZIP = tar(FILES), zipped(FILES)
BAD = {
    "cut off": (GOOD[:300], "the tar archive is damaged"),
    "no end": (GOOD[: 512 * 3], "cut off|damaged|unexpected"),
    "another header": (GOOD[:1024] + b"x" * 9999, "damaged"),
    "gzip cut off": (gzip.compress(GOOD)[:-9], "the gzip data is cut off"),
    "zip cut off": (GOOD_ZIP[:-9], "the zip archive is damaged"),
    "zip without a member": (GOOD_ZIP[:4] + bytes(40) + GOOD_ZIP[40:], "the zip archive is"),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD)
def test_damaged(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    content = content_of(path, 1 << 10)
    if content.problem:  # seen before it is known to be an archive
        assert content.problem == reason
        return
    with pytest.raises(ArchiveError, match=reason):
        open_archive(path, content, Spool)


@pytest.mark.parametrize("form", [tar, zipped])
def test_too_many_members(form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_NUMBER", 10)
    members = [(str(number), b"") for number in range(11)]
    assert len(opened(tmp_path / "x", form(members[:10])).names) == 10
    with pytest.raises(ArchiveError, match="more than 10 files and folders"):
        opened(tmp_path / "x", form(members))


@pytest.mark.parametrize("form", ["x.tar.gz", "x.zip"])
def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(streams, "_ALWAYS_ALLOWED", 1 << 20)
    with pytest.raises(ArchiveError, match="100 times its size"):
        opened(tmp_path / form, FORMS[form]([("x", bytes(8 << 20))]))


def test_a_header_bomb(tmp_path: Path) -> None:
    """A name of 64 MiB, which tarfile would read into memory."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 64 << 20
    data = info.tobuf() + bytes(64 << 20) + tar([("x", b"")])
    with pytest.raises(ArchiveError, match="a header is larger than 1 MiB"):
        opened(tmp_path / "x.tar", data)


def test_a_part_that_is_cut_off() -> None:
    part = Spool().append(io.BytesIO(b"x"))
    with replace(part, size=2).open() as stream:
        assert (stream.read(), problem_of(stream)) == (b"x", "the archive is cut off")


def test_a_member_whose_checksum_is_wrong(tmp_path: Path) -> None:
    data = bytearray(zipped([("x", b"text" * 99)]))
    for start in (14, data.index(b"PK\1\2") + 16):
        data[start] ^= 1
    source = source_of(opened(tmp_path / "x.zip", bytes(data)) / "x", "x")
    with source.open() as stream:
        stream.read()
        assert problem_of(stream) == "the size or the checksum of the file in the archive is wrong"


@examples(200)
@given(
    form=st.sampled_from([tar, zipped]),
    changes=st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=12)), max_size=3),
)
def test_no_change_makes_it_fall_over(
    tmp_path_factory: pytest.TempPathFactory, form: Any, changes: list[tuple[int, bytes]]
) -> None:
    data = bytearray(form([("a/b", b"x" * 600), ("c", b"y")]))
    for position, junk in changes:
        start = position % len(data)
        data[start : start + len(junk)] = junk
    path = tmp_path_factory.mktemp("fuzz") / "x"
    path.write_bytes(data)
    content = content_of(path, 1 << 10)
    if not content.is_archive:
        return
    try:
        top = open_archive(path, content, Spool)
    except ArchiveError:
        return
    for entry in list_tree(top):
        if not entry.folder:
            read_file(top / entry.path, 1 << 30)
