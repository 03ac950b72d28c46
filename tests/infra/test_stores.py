"""Object stores: reading, writing, and the messages for what goes wrong."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import stores
from mlperf_pkg.infra.files import write_all
from mlperf_pkg.infra.paths import FolderEntry, list_tree, read_file
from mlperf_pkg.infra.stores import Object, StoredFile, StoredPath, path_of
from tests.helpers import servers
from tests.helpers.program import call
from tests.helpers.trees import write_submission

fsspec, *_ = (
    pytest.importorskip(name, reason="needs pip install 'mlperf-pkg[test-cluster]'")
    for name in ("fsspec", "moto", "s3fs")
)


@pytest.fixture
def memory() -> Iterator[str]:
    """The URL of an empty folder in a store that this process has in memory."""
    yield "memory://bucket/top"
    fsspec.filesystem("memory").rm("/bucket", recursive=True)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with servers.s3():
        yield f"s3://{servers.BUCKET}"


def put(url: str, **files: bytes) -> None:
    for name, data in files.items():
        StoredFile(f"{url}/{name}").write(data, replace=True)


def stored(url: str) -> StoredPath:
    path = path_of(url)
    assert isinstance(path, StoredPath)
    return path


# ---- reading ------------------------------------------------------------------------------


def test_a_listing_is_a_tree(memory: str) -> None:
    put(memory, **{"b.txt": b"12", "a/x y#%?.txt": b"1", "a-b": b""})
    assert list_tree(stored(memory)) == (
        FolderEntry("a", folder=True),
        FolderEntry("a-b", folder=False, size=0),
        FolderEntry("a/x y#%?.txt", folder=False, size=1),
        FolderEntry("b.txt", folder=False, size=2),
    )
    top = stored(f"{memory}/")
    assert (top.name, top.parts[-2:], str(top / "a")) == ("top", ("bucket", "top"), f"{memory}/a")
    assert (top / "a").is_dir()
    assert read_file(top / "a" / "x y#%?.txt", 9) == b"1"
    assert not (top / "c").exists()
    assert stored(f"{memory}/b.txt").is_file()


def test_an_object_that_marks_a_folder_is_one(bucket: str) -> None:
    fs = fsspec.filesystem("s3")
    fs.call_s3("put_object", Bucket=servers.BUCKET, Key="marked/logs/", Body=b"")
    fs.pipe_file(f"{servers.BUCKET}/marked/a", b"1")
    assert list_tree(stored(f"{bucket}/marked")) == (
        FolderEntry("a", folder=False, size=1),
        FolderEntry("logs", folder=True),
    )


@pytest.mark.parametrize("name", ["a//b", "a/../b", "a/./b", "file/below"])
def test_names_that_no_file_has_are_refused(bucket: str, name: str) -> None:
    fs = fsspec.filesystem("s3")
    for key in ("odd/file", f"odd/{name}"):
        fs.call_s3("put_object", Bucket=servers.BUCKET, Key=key, Body=b"")
    with pytest.raises(UserError, match="the key cannot be the path of a file"):
        path_of(f"{bucket}/odd")
    fs.call_s3("delete_object", Bucket=servers.BUCKET, Key=f"odd/{name}")


@pytest.mark.parametrize("size", [0, 9, 10, 11, 35])
@pytest.mark.parametrize("count", [1, 7, 10, 100])
def test_large_objects_are_read_in_parts(
    memory: str, size: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "REQUEST_BYTES", 10)
    data = bytes(range(size))
    put(memory, log=data)
    with stored(f"{memory}/log").open() as stream:
        assert b"".join(iter(partial(stream.read, count), b"")) == data


@pytest.mark.parametrize("size", [0, 9, 10, 11, 35])
def test_the_rest_of_a_large_object_is_read(
    memory: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "REQUEST_BYTES", 10)
    data = bytes(range(size))
    put(memory, log=data)
    with stored(f"{memory}/log").open() as stream:
        assert (stream.read(3), stream.read()) == (data[:3], data[3:])


def test_an_object_that_changes_is_reported(memory: str) -> None:
    put(memory, log=b"short")
    with pytest.raises(UserError, match=r"memory://bucket/top/log: changed while it was read"):
        Object(memory, "/bucket/top/log", 9).open().read()


def test_a_file_of_such_a_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_submission(tmp_path / "s3:" / "bucket" / "ACME")
    assert path_of("s3://bucket/ACME") == Path("s3:/bucket/ACME")
    assert call("check", "s3://bucket/ACME").exit_code == 0


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://", "does not name a bucket"),
        ("s3://no-such-bucket/x", "no such bucket"),
        ("s3://submissions/no-such", "s3://submissions/no-such: no such object or folder"),
        ("what://x", "what://x: not the URL of an object store; expected s3://"),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_a_missing_object_is_reported(url: str, message: str) -> None:
    done = call("check", url)
    assert (done.exit_code, done.stdout, message in done.stderr) == (2, "", True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError("Access Denied"), "permission denied: Access Denied"),
        (RuntimeError("no route"), "cannot be read: no route"),
    ],
)
def test_errors_of_a_store_are_reported(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fsspec.core.url_to_fs", Mock(side_effect=error))
    with pytest.raises(UserError, match=f"^s3://bucket/x: {message}$"):
        path_of("s3://bucket/x")


# ---- writing ------------------------------------------------------------------------------


def test_a_report_goes_to_a_store(bucket: str, tmp_path: Path) -> None:
    url = servers.upload(write_submission(tmp_path / "ACME"), "ACME")
    output = f"{bucket}/reports/report.json"
    assert call("check", url, "-o", output).exit_code == 0
    written = read_file(stored(output), 1 << 20)
    assert written == call("check", tmp_path / "ACME", "--format", "json").stdout_bytes
    again = call("check", url, "-o", output)
    assert (again.exit_code, "exists already; --force" in again.stderr) == (2, True)
    assert call("score", url, "-o", output, "--force").exit_code == 0
    assert read_file(stored(output), 1 << 20) != written


@pytest.mark.parametrize(
    ("input_", "output", "message"),
    [
        (
            "s3://submissions/ACME",
            "s3://submissions/ACME/report.json",
            "refusing to write inside an input folder",
        ),
        ("ACME", "s3://submissions", "does not name a file"),
        ("ACME", "s3://submissions/x/", "does not name a file"),
        ("ACME", "s3://no-such-bucket/report.json", "no such bucket"),
        ("ACME", "json:what://x", "not the URL of an object store"),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_outputs_are_refused_before_the_work(
    input_: str, output: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_submission(tmp_path / "ACME")
    monkeypatch.chdir(tmp_path)
    done = call("check", input_, "-o", output)
    assert (done.exit_code, message in done.stderr) == (2, True)


def test_what_appears_meanwhile_is_not_overwritten(bucket: str) -> None:
    StoredFile(f"{bucket}/mine").write(b"mine", replace=False)
    with pytest.raises(UserError, match="exists already"):
        StoredFile(f"{bucket}/mine").write(b"yours", replace=False)
    assert read_file(stored(f"{bucket}/mine"), 1 << 20) == b"mine"


def test_files_here_and_in_stores_are_written_all_or_none(bucket: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    one, two = StoredFile(f"{bucket}/together/1"), tmp_path / "2"
    both: dict[Path | StoredFile, str | bytes] = {one: "1", two: "2"}
    with pytest.raises(UserError, match="exists already"):
        write_all({**both, tmp_path / "taken": "3"}, replace=False)
    assert (one.exists(), two.exists()) == (False, False)
    write_all(both, replace=False)
    assert (read_file(stored(one.url), 1 << 20), two.read_text()) == (b"1", "2")


@pytest.mark.parametrize("command", ["pack", "verify", "init", "build --logs"])
def test_other_commands_refuse_urls(command: str) -> None:
    done = call(*command.split(), "s3://bucket/x")
    assert (done.exit_code, "is a URL" in done.stderr) == (2, True)
