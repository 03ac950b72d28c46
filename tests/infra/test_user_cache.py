"""Texts in the user's cache folder."""

import os
from pathlib import Path

import pytest

from mlperf_pkg.infra.files import cached


class Maker:
    """Counts the calls that make the text."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return "text"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mlperf-pkg"


def test_a_text_is_made_once(folder: Path) -> None:
    make = Maker()
    assert [cached("one-1.0.js", make) for _ in range(3)] == ["text"] * 3
    assert make.count == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["one-1.0.js"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_a_damaged_file_is_replaced(folder: Path, content: bytes) -> None:
    folder.mkdir()
    (folder / "one").write_bytes(content)
    assert cached("one", Maker()) == "text"
    assert (folder / "one").read_text("utf-8") == "text"


@pytest.mark.parametrize("kind", ["file", "another owner", "relative", "pipe"])
def test_a_cache_that_cannot_be_used(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "file":
        folder.touch()
    elif kind == "another owner":
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    elif kind == "relative":
        monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    else:
        folder.mkdir()
        os.mkfifo(folder / "one")
    make = Maker()
    assert [cached("one", make), cached("one", make)] == ["text"] * 2
    assert make.count == 2
