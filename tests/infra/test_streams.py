"""Compressed files, read as streams: whole, cut off, damaged, and far too large."""

import errno
import gzip
import lzma
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.errors import UserError
from mlperf_pkg.infra import streams
from mlperf_pkg.infra.streams import (
    Compression,
    Spool,
    compression_of,
    decompressed,
    problem_of,
    temporary_files,
)
from tests.helpers.archives import zstandard
from tests.helpers.examples import examples

PACK: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.GZIP: gzip.compress,
    Compression.XZ: lzma.compress,
    Compression.ZSTD: zstandard,
}
TEXT = b"".join(b"%d :::MLLOG {}\n" % (number * number) for number in range(5000))
every_format = pytest.mark.parametrize("format_", PACK, ids=lambda format_: format_.name.lower())


def read(packed: bytes, format_: Compression) -> tuple[bytes, str | None]:
    with decompressed(BytesIO(packed), format_) as stream:
        data = stream.read()
        return data, problem_of(stream)


@every_format
@pytest.mark.parametrize(
    "data", [b"", b"x", TEXT, bytes(3 << 20)], ids=["empty", "one byte", "text", "zeros"]
)
def test_whole(format_: Compression, data: bytes) -> None:
    packed = PACK[format_](data)
    assert compression_of(packed) is format_
    assert read(packed, format_) == (data, None)


@every_format
def test_more_than_one_member_and_less(format_: Compression) -> None:
    packed, name = PACK[format_](TEXT), format_.name.lower()
    assert read(packed + PACK[format_](b"more"), format_) == (TEXT + b"more", None)
    data, problem = read(packed + b"something else", format_)
    assert data == TEXT
    assert problem
    data, problem = read(packed[:-9], format_)
    assert TEXT.startswith(data)
    assert problem == f"the {name} data is cut off"
    half = len(packed) // 2
    data, problem = read(packed[:half] + bytes(range(64)) + packed[half + 64 :], format_)
    assert data != TEXT
    assert str(problem).startswith(f"the {name} data is damaged (")


@every_format
def test_a_bomb(format_: Compression, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_ALWAYS_ALLOWED", 1 << 20)
    packed = PACK[format_](bytes(16 << 20))
    tracemalloc.start()
    with decompressed(BytesIO(packed), format_) as stream:
        size = sum(map(len, iter(lambda: stream.read(1 << 16), b"")))
        problem = "the data unpacks to more than 0 GiB and more than 100 times its size"
        assert problem_of(stream) == problem
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size < max(1 << 20, 100 * len(packed)) + (1 << 18)
    assert most < 12 << 20


@pytest.mark.parametrize("head", [b"", b"\x1f", b":::MLLOG", b"PK\3\4", b"\xff\xfe"])
def test_what_is_not_compressed(head: bytes) -> None:
    assert compression_of(head) is None


@examples(200)
@given(
    format_=st.sampled_from(list(PACK)),
    data=st.binary(),
    position=st.integers(0, 200),
    junk=st.binary(max_size=9),
)
def test_no_change_makes_it_fall_over(
    format_: Compression, data: bytes, position: int, junk: bytes
) -> None:
    packed = bytearray(PACK[format_](data))
    packed[position : position + len(junk)] = junk
    text, problem = read(bytes(packed), format_)
    assert text == data or problem or format_ is not Compression.GZIP


# ---- temporary files ----------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT], ids=["disk", "quota"])
def test_a_full_folder_of_temporary_files_is_named(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spool = Spool()
    full = Mock(write=Mock(side_effect=OSError(number, os.strerror(number))))
    monkeypatch.setattr(spool, "file", full)
    message = f"{tmp_path}: no space is left for temporary files; .* the variable TMPDIR"
    with pytest.raises(UserError, match=message):
        spool.append(BytesIO(b"text"))


def test_without_a_folder_of_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", Mock(side_effect=FileNotFoundError(2, "No usable")))
    with pytest.raises(UserError, match="cannot be written anywhere; name a folder"):
        Spool()


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(PermissionError), temporary_files():
        raise PermissionError(errno.EACCES, "Denied")
