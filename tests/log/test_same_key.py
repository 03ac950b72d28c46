"""Records of one key asked at once: the same is found whether their parts are text or values."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.same_key import Group

NAMES = [{"tensor": "a", "n": 1}, {"tensor": "b", "n": 2}, {"tensor": "a"}]
# A backslash anywhere makes a block be read line by line.
ESCAPED = {"key": "k", "time_ms": 0, "value": "\\", "metadata": {"tensor": "c"}}


def group(metadata: list[Any], *, plain: bool) -> Group:
    """The records with some metadata, of a log with one record before them."""
    records = [
        {"key": "k", "time_ms": 0, "value": n, "metadata": m} for n, m in enumerate(metadata)
    ]
    first = {"key": "before", "time_ms": 0, "value": None, "metadata": {}}
    lines = [first, *records, *([] if plain else [ESCAPED])]
    text = "".join(f":::MLLOG {json.dumps(each)}\n" for each in lines)
    (block,) = LogReader(io.BytesIO(text.encode()), "log.txt", lambda _: None).blocks()
    assert (block.metadata_text([0]) is not None) is plain
    return Group(block.indexes["k"][: len(metadata)], block)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("_again", range(2))
def test_what_a_group_says(plain: bool, _again: int) -> None:
    found = group(NAMES, plain=plain)
    assert (found.first, found.last) == (1, 3)
    assert found.values == [0, 1, 2]
    assert list(found.tensors()) == ["a", "b", "a"]
    assert found.metadata_passes(())
    assert found.metadata_passes((lambda metadata: "tensor" in metadata,))
    assert not found.metadata_passes((lambda _: True, lambda metadata: "n" in metadata))


@pytest.mark.parametrize("plain", [True, False])
def test_what_cannot_be_asked_raises_each_time(plain: bool) -> None:
    found = group([{"tensor": "a"}, None], plain=plain)
    for _ in range(2):
        with pytest.raises(TypeError):
            found.metadata_passes((lambda metadata: "tensor" in metadata,))
        with pytest.raises(TypeError):
            found.tensors()


def test_a_long_text_is_asked_but_not_remembered() -> None:
    many = [{"tensor": "x" * 1000}] * 100
    assert list(group(many, plain=True).tensors()) == ["x" * 1000] * 100
