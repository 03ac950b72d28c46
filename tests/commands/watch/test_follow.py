"""Files that grow, are truncated, moved away and replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.commands.watch import session
from mlperf_pkg.commands.watch.session import Change, Follower, Lines, News
from mlperf_pkg.errors import UserError


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def test_a_file_that_appears_and_grows(log: Path) -> None:
    follower = Follower(log)
    assert follower.poll() == News(Change.MISSING)
    log.write_bytes(b"")
    assert follower.poll() == News(Change.NONE)
    for data in (b"one\ntw", b"o\n"):
        append(log, data)
        assert follower.poll() == News(Change.GROWN, data)
    assert follower.poll() == News(Change.NONE)
    follower.close()


@pytest.mark.parametrize("new", [b"", b"new", b"other", b"much more than there was before"])
def test_a_truncated_file_is_read_again(log: Path, new: bytes) -> None:
    log.write_bytes(b"first")
    follower = Follower(log)
    follower.poll()
    log.write_bytes(new)
    assert follower.poll() == News(Change.TRUNCATED, new)
    assert follower.poll() == News(Change.NONE)
    follower.close()


def test_a_file_moved_away_is_read_to_its_end_first(log: Path) -> None:
    append(log, b"first")
    follower = Follower(log)
    follower.poll()
    append(log, b" last")
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new")
    assert follower.poll() == News(Change.GROWN, b" last")
    assert follower.poll() == News(Change.REPLACED, b"new")
    follower.close()


def test_a_file_that_is_gone_may_come_back(log: Path) -> None:
    append(log, b"first")
    follower = Follower(log)
    follower.poll()
    aside = log.with_suffix(".aside")
    append(log, b" more")
    log.rename(aside)
    assert follower.poll() == News(Change.GROWN, b" more")
    assert follower.poll() == News(Change.MISSING)
    aside.rename(log)
    assert follower.poll() == News(Change.NONE)
    log.unlink()
    log.write_bytes(b"new")
    assert follower.poll() == News(Change.REPLACED, b"new")
    follower.close()


def test_a_large_file_comes_in_blocks(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "BLOCK_BYTES", 4)
    log.write_bytes(b"one two three")
    follower = Follower(log)
    assert [follower.poll().data for _ in range(5)] == [b"one ", b"two ", b"thre", b"e", b""]
    follower.close()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ""):
        with pytest.raises(UserError, match="not a file"):
            Follower(tmp_path / name).poll()


LINES = st.lists(
    st.sampled_from([b":::MLLOG {}", b"a", b"", b"\n", b"\r", b"\r\n", b":::ML", b"x :::MLLOG"])
)


@given(LINES, st.integers(1, 7))
def test_records_keep_their_lines(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    lines = Lines()
    for start in range(0, len(data), size):
        lines.add(data[start : start + size])
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    assert lines.partial == data[end:]
    assert numbered(bytes(lines.text)) == numbered(data[:end])


def numbered(text: bytes) -> list[tuple[int, bytes]]:
    """The lines with a record, by the number of LF before them."""
    return [
        (number, line)
        for number, whole in enumerate(text.split(b"\n"))
        for line in whole.split(b"\r")
        if b":::MLL" in line
    ]


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_LINE_BYTES", 20)
    lines = Lines()
    for _ in range(10):
        lines.add(b":::MLLOG x")
    assert (lines.partial, lines.too_long) == (b"", 1)
    lines.add(b"end\n:::MLLOG y\n")
    assert bytes(lines.text) == b"\n:::MLLOG y\n"
