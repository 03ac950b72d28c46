"""Records of one key, checked together: the same results from undecoded text and from values."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from mlperf_pkg.log.block import HAS_SCAN, METADATA
from mlperf_pkg.log.reader import LogReader
from mlperf_pkg.log.same_key import Group

NAMES = [{"tensor": "a", "n": 1}, {"tensor": "b", "n": 2}, {"tensor": "a"}]
NEEDS_SCAN = pytest.mark.skipif(not HAS_SCAN, reason="_scan was not compiled")
PLAIN = [pytest.param(True, marks=NEEDS_SCAN), False]
# A backslash anywhere causes a block to be read line by line.
ESCAPED = {"key": "k", "time_ms": 0, "value": "\\", "metadata": {"tensor": "c"}}


def group(metadata: list[Any], *, plain: bool) -> Group:
    """The records with some metadata, of a log with one record before them."""
    records = [
        {"key": "k", "time_ms": 0, "value": n, "metadata": m} for n, m in enumerate(metadata)
    ]
    first = {"key": "before", "time_ms": 0, "value": None, "metadata": {}}
    lines = [first, *records, *([] if plain else [ESCAPED])]
    text = "".join(f":::MLLOG {json.dumps(fields)}\n" for fields in lines)
    (block,) = LogReader(io.BytesIO(text.encode()), "log.txt", lambda _: None).blocks()
    assert (block.json(METADATA, [0]) is not None) is plain
    return Group(block.indexes["k"][: len(metadata)], block)


@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.parametrize("_again", range(2))
def test_a_group(plain: bool, _again: int) -> None:
    records = group(NAMES, plain=plain)
    assert (records.first, records.last) == (1, 3)
    assert records.values == [0, 1, 2]
    assert list(records.tensors()) == ["a", "b", "a"]
    assert records.metadata_passes(())
    assert records.metadata_passes((lambda metadata: "tensor" in metadata,))
    assert not records.metadata_passes((lambda _: True, lambda metadata: "n" in metadata))


@pytest.mark.parametrize("plain", PLAIN)
def test_metadata_that_cannot_be_tested_raises_each_time(plain: bool) -> None:
    records = group([{"tensor": "a"}, None], plain=plain)
    for _ in range(2):
        with pytest.raises(TypeError):
            records.metadata_passes((lambda metadata: "tensor" in metadata,))
        with pytest.raises(TypeError):
            records.tensors()


@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.parametrize(
    ("metadata", "names", "passes"),
    [
        ({"a": 1, "b": {"c": 2}}, ("a", "b"), True),
        ({"a": None, "b": 1.5}, ("a", "b", "a"), True),
        ({"a": {"b": 2}}, ("a", "b"), False),
        ({"b": "a"}, ("a",), False),
        ({"": 1, "a b": 2}, ("", "a b"), True),
        (["a"], ("a",), True),  # as Python's "in"
        ("a", ("a",), True),
    ],
)
def test_metadata_with_names(
    metadata: Any, names: tuple[str, ...], passes: bool, plain: bool
) -> None:
    records = group([dict.fromkeys(names), metadata], plain=plain)

    def has_all(value: Any) -> bool:
        return all(name in value for name in names)

    assert records.metadata_passes((has_all,), names) is passes
    assert records.metadata_passes((has_all,)) is passes


@NEEDS_SCAN
def test_a_long_text_is_decoded_but_not_cached() -> None:
    metadata = [{"tensor": "x" * 1000}] * 100
    assert list(group(metadata, plain=True).tensors()) == ["x" * 1000] * 100
