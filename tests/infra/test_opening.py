"""Opening untrusted files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlperf_pkg.infra.paths import open_file, read_file

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
