"""Files to be read, wherever they are."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.source import SharedFile, Source, source_of
from mlperf_pkg.infra.stores import Object


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "result_0.txt"
    path.write_bytes(b"12345")
    return path


def bytes_of(source: Source) -> bytes:
    with source.open() as stream:
        return stream.read()


def test_every_kind_has_the_same_bytes(log: Path) -> None:
    file, data = source_of(log, "log"), Source("log", log.read_bytes())
    kinds = {
        "file": file,
        "shared file": file.shared(),
        "fetched file": file.fetched(),
        "data": data,
        "shared data": data.shared(),
    }
    copies = {name: pickle.loads(pickle.dumps(source)) for name, source in kinds.items()}
    assert {
        name: (source.label, source.size, bytes_of(source), bool(source.stored))
        for name, source in copies.items()
    } == dict.fromkeys(kinds, ("log", 5, b"12345", False))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_opens_as_empty(log: Path) -> None:
    log.chmod(0)
    assert bytes_of(source_of(log, "log")) == b""
    assert source_of(log, "log").shared() == Source("log", b"")


def test_a_shared_file_has_an_absolute_path(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent)
    assert source_of(Path(log.name), "log").shared().origin == SharedFile(log, 5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda file: file.write_bytes(b"1"),
            "on the machine of the worker, it does not have 5 bytes",
        ),
        (Path.unlink, "No such file or directory"),
    ],
    ids=["another size", "removed"],
)
def test_a_shared_file_that_differs_is_refused(
    log: Path, change: Callable[[Path], object], reason: str
) -> None:
    source = source_of(log, "log").shared()
    change(log)
    with pytest.raises(UserError, match=rf"0\.txt: a worker does not see this file .{reason}"):
        source.open()


def test_a_file_that_is_removed_is_not_found(log: Path) -> None:
    source = source_of(log, "log")
    log.unlink()
    with pytest.raises(FileNotFoundError):
        source.open()


def test_a_small_object_is_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[int, int]] = []

    def fetch(_: Object, start: int, end: int) -> bytes:
        requests.append((start, end))
        return bytes(range(start, end))

    monkeypatch.setattr(Object, "fetch", fetch)
    monkeypatch.setattr("mlperf_pkg.infra.source.REQUEST_BYTES", 5)
    small, large = (Source("log", Object("s3://b", "/b/log", size)) for size in (5, 6))
    assert (small.stored, small.size) == (True, 5)
    assert small.fetched() == Source("log", bytes(range(5)))
    assert requests == [(0, 5)]
    assert large.fetched() is large
