"""Paths of this machine: the walk of a tree and the opening of untrusted files.

tests/infra/test_stores.py has the walk of a store.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlperf_pkg.infra.paths import FolderCache, FolderEntry, list_tree, open_file, read_file, walk


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A tree with one entry of each kind."""
    (tmp_path / "a" / "inner").mkdir(parents=True)
    (tmp_path / "a" / "inner" / "x").write_bytes(b"12")
    (tmp_path / "a-b").write_bytes(b"")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "to-file").symlink_to("a-b")
    (tmp_path / "to-folder").symlink_to(tmp_path / "a")
    (tmp_path / "to-itself").symlink_to("to-itself")
    (tmp_path / "to-pipe").symlink_to("pipe")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_every_kind(top: Path) -> None:
    assert list_tree(top) == (
        FolderEntry(".hidden", folder=True),
        FolderEntry("a", folder=True),
        FolderEntry("a-b", folder=False),
        FolderEntry("a/inner", folder=True),
        FolderEntry("a/inner/x", folder=False, size=2),
        FolderEntry("pipe", folder=False, special=True),
        FolderEntry("to-file", folder=False, link="a-b"),
        FolderEntry("to-folder", folder=True, link=str(top / "a")),
        FolderEntry("to-itself", folder=False, link="to-itself", resolves=False),
        FolderEntry("to-pipe", folder=False, link="pipe", special=True),
    )


def test_siblings_come_by_name_and_folders_before_their_contents(top: Path) -> None:
    paths = [entry.path for entry in walk(top, keep=lambda entry: not entry.hidden)]
    assert paths[:4] == ["a", "a/inner", "a/inner/x", "a-b"]
    assert list(walk(top, keep=lambda entry: entry.name == "inner")) == []  # nor entered
    assert "to-folder/inner/x" not in [entry.path for entry in walk(top)]
    assert "to-folder/inner/x" in [entry.path for entry in walk(top, follow_links=True)]


def test_a_folder_is_read_once(top: Path) -> None:
    cache = FolderCache()
    before = list_tree(top, cache)
    (top / "new").touch()
    assert list_tree(top, cache) == before
    assert "new" in [entry.path for entry in list_tree(top)]


def test_a_folder_that_cannot_be_read(top: Path) -> None:
    assert list_tree(top / "missing") == ()
    with pytest.raises(FileNotFoundError):
        list(walk(top / "missing"))


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A tree deeper than Python recurses, which therefore no library removes."""
    subprocess.run(["mkdir", "-p", tmp_path / ("d/" * 1200)], check=True)
    yield tmp_path
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)


def test_a_tree_deeper_than_python_recurses(deep: Path) -> None:
    assert len(list_tree(deep)) == 1200


WAITS = Path("/proc/kmsg")  # a regular file that waits for the next message of the kernel


def test_a_file_that_would_wait_ends() -> None:
    try:
        stream = open_file(WAITS)
    except OSError:
        pytest.skip("no such file, or no permission")
    with stream:
        stream.read()
        assert stream.read(10) == b""
    assert isinstance(read_file(WAITS, 1 << 20), bytes)


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc" * 10_000)
    assert read_file(path, 1 << 20) == path.read_bytes()
    with open_file(path) as stream:
        assert (stream.read(1), stream.peek(1)[:1], stream.readline()[:2]) == (b"a", b"b", b"bc")
