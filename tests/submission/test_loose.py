"""Files among loose logs: compressed logs, archives, and what is not read."""

import gzip
import lzma
from pathlib import Path

import pytest
from backports import zstd

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import content_of
from mlperf_pkg.submission import find
from mlperf_pkg.submission.find import find_input
from mlperf_pkg.submission.model import Input, Why
from tests.helpers.archives import tree_tar, tree_zip
from tests.helpers.trees import SYSTEM, simulated, write_submission

LOG = simulated()[0]


def tar(**files: bytes) -> bytes:
    return tree_tar(files, top="")


def zipped(**files: bytes) -> bytes:
    return tree_zip(files)


GZ, XZ, ZST = gzip.compress(LOG), lzma.compress(LOG), zstd.compress(LOG)


def found(root: Path, files: dict[str, bytes]) -> Input:
    for name, content in {**files, "run.log": LOG}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return find_input(str(root))


def unread(contents: Input) -> dict[str, tuple[str, Why]]:
    return {file.place.label: (file.reason, file.why) for file in contents.unread}


@pytest.mark.parametrize(
    "files",
    [
        {"a.log.gz": GZ},
        {"a.log.xz": XZ},
        {"a.log.zst": ZST},
        {"result_0.txt.gz": GZ},
        {"result_0.txt.zst": zstd.compress(b"")},
        {"a.gz": XZ},
        {"a.log": ZST},
        {"a": GZ},
        {"x.tar/a.log": LOG},
        {"node_0.txt": LOG},
        {"power/result_0/notes.txt": LOG},
    ],
    ids=", ".join,
)
def test_one_more_log(tmp_path: Path, files: dict[str, bytes]) -> None:
    contents = found(tmp_path, files)
    assert sorted(log.label for log in contents.logs) == sorted([*files, "run.log"])
    assert contents.unread == ()
    (log,) = (log for log in contents.logs if log.label in files)
    with log.source.open() as stream:
        assert stream.read() in (LOG, b"")


@pytest.mark.parametrize(
    ("archive", "logs"),
    [
        ({"x.tar": tar(**{"a.log": LOG, "b/c.log": LOG})}, ["x.tar/a.log", "x.tar/b/c.log"]),
        ({"x.tgz": gzip.compress(tar(a=LOG))}, ["x.tgz/a"]),
        ({"x.txz": lzma.compress(tar(a=GZ))}, ["x.txz/a"]),
        ({"d/x.zip": zipped(**{"a.log": LOG, ".hidden": LOG, "a.py": LOG})}, ["d/x.zip/a.log"]),
        ({"x.zip": zipped(**{"a.log.xz": XZ})}, ["x.zip/a.log.xz"]),
        ({"x.log": tar(a=LOG)}, ["x.log/a"]),
    ],
)
def test_logs_in_an_archive(tmp_path: Path, archive: dict[str, bytes], logs: list[str]) -> None:
    contents = found(tmp_path, archive)
    assert sorted(log.label for log in contents.logs) == sorted(["run.log", *logs])
    for log in contents.logs:
        with log.source.open() as stream:
            assert stream.read() == LOG


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"README.txt": b"hello"}, {"README.txt": "no line holds ':::MLLOG '"}),
        ({"a.txt.gz": gzip.compress(b"hello")}, {"a.txt.gz": "no line holds ':::MLLOG '"}),
        ({"empty.txt": b"", "LICENSE": b"x", "data.csv.gz": gzip.compress(b"x")}, {}),
        ({"a.log.gz": GZ[:-9]}, {}),  # which the check of the log reports
        ({"power/result_0/node_0.txt": b"no log"}, {}),
        ({"a.log.gz": GZ[:3] + b"x" * 99}, {"a.log.gz": "the gzip data is damaged"}),
        ({"a.gz": gzip.compress(XZ)}, {"a.gz": "compressed twice"}),
        ({"a.tar": tar(**{"b.zip": zipped(a=LOG)})}, {"a.tar/b.zip": "an archive in an archive"}),
        ({"a.tar.gz": gzip.compress(tar(a=LOG))[:-9]}, {"a.tar.gz": "the gzip data is cut off"}),
        ({"a.zip": b"PK\3\4"}, {"a.zip": "the zip archive is damaged"}),
        ({"a.txt": b"Salted__12345678"}, {"a.txt": "an archive, not a log"}),
        ({"a.tar": tar(**{"../a.log": LOG})}, {"a.tar/../a.log": "a path that leads elsewhere"}),
    ],
    ids=", ".join,
)
def test_what_is_not_read(
    tmp_path: Path, files: dict[str, bytes], expected: dict[str, str]
) -> None:
    reasons = unread(found(tmp_path, files))
    assert reasons.keys() == expected.keys()
    for name, (reason, why) in reasons.items():
        assert reason.startswith(expected[name])
        assert (why is Why.NOT_A_LOG) == reason.startswith("no line")


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, size: int) -> object:
        if path.name == "secret.log":
            raise PermissionError
        return content_of(path, size)

    monkeypatch.setattr(find, "content_of", refuse)
    reasons = unread(found(tmp_path, {"secret.log": LOG}))
    assert reasons == {"secret.log": ("no permission to read it", Why.PROBLEM)}


@pytest.mark.parametrize("name", ["ACME.tar.gz", "ACME.zip"])
@pytest.mark.parametrize("top", ["", "ACME/"])
def test_a_submission_in_an_archive(tmp_path: Path, name: str, top: str) -> None:
    root = write_submission(tmp_path / "tree")
    names = {f"{top}{p.relative_to(root)}": p for p in root.rglob("*") if p.is_file()}
    files = {path: file.read_bytes() for path, file in names.items()}
    data = zipped(**files) if name.endswith("zip") else gzip.compress(tar(**files))
    (tmp_path / name).write_bytes(data)
    (submission,) = find_input(str(tmp_path / name)).submissions
    assert submission.name == "ACME"
    (result_set,) = submission.result_sets
    assert result_set.place.label == f"{name}/{top}results/{SYSTEM}/resnet"
    assert len(result_set.logs) == 5


def test_a_round_in_an_archive(tmp_path: Path) -> None:
    root = write_submission(tmp_path / "tree")
    paths = [path for path in root.rglob("*") if path.is_file()]
    names = {f"v2.0/{name}/{path.relative_to(root)}": path for name in "AB" for path in paths}
    (tmp_path / "x.tar").write_bytes(tar(**{name: p.read_bytes() for name, p in names.items()}))
    submissions = find_input(str(tmp_path / "x.tar")).submissions
    assert [s.place.label for s in submissions] == ["x.tar/v2.0/A", "x.tar/v2.0/B"]


def test_archives_beside_submissions(tmp_path: Path) -> None:
    write_submission(tmp_path / "ACME")
    for name in ("ACME.tar.gz", "Other.tar.gz", "x.txt"):
        (tmp_path / name).write_bytes(b"")
    contents = find_input(str(tmp_path))
    assert unread(contents) == {"Other.tar.gz": ("an archive beside submissions", Why.PROBLEM)}


def test_the_error_names_what_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK\3\4")
    with pytest.raises(UserError, match=r"no MLPerf log here .*; not read: x\.zip \(the zip"):
        find_input(str(tmp_path))
