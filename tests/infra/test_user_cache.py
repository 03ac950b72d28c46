"""Texts in the user's cache folder."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from mlperf_pkg.infra.files import cached


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mlperf-pkg"


def test_a_text_is_made_once(folder: Path) -> None:
    make = Mock(return_value="text")
    assert [cached("one-1.0.js", make) for _ in range(3)] == ["text"] * 3
    make.assert_called_once_with()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["one-1.0.js"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_a_damaged_file_is_replaced(folder: Path, content: bytes) -> None:
    folder.mkdir()
    (folder / "one").write_bytes(content)
    assert cached("one", lambda: "text") == "text"
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
    make = Mock(return_value="text")
    assert [cached("one", make), cached("one", make)] == ["text"] * 2
    assert make.call_count == 2
