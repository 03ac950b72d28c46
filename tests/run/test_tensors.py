"""The list of tensors: what is missing, too many, or without a name."""

from __future__ import annotations

from typing import Any

import pytest

from mlperf_pkg.run import tensors
from mlperf_pkg.run.tensors import TensorList

NEEDED = frozenset("abcd")


@pytest.mark.parametrize(
    ("names", "wrong", "too_many"),
    [
        (list("abcd"), "", False),
        (list("dcba"), "", False),
        (list("abc"), "1 missing (d...)", False),
        ([], "4 missing (a, b, c...)", False),
        (list("abcdd"), "1 too many (d...)", True),
        (list("abcc"), "1 missing (d...), 1 too many (c...)", True),
        (list("abcdxx"), "2 too many (x...)", True),
        ([*"abcd", 1, None], "2 without a name", True),
        ([*"abc", ["d"]], "1 missing (d...), 1 without a name", True),
    ],
)
def test_what_is_wrong(names: list[Any], wrong: str, too_many: bool) -> None:
    for parts in ([names], [[name] for name in names]):
        tensor_list = TensorList()
        for part in parts:
            tensor_list.add(part)
        assert (tensor_list.differences(NEEDED), tensor_list.has_too_many(NEEDED)) == (
            wrong,
            too_many,
        )


@pytest.mark.parametrize("count", range(100, 106))
def test_a_hostile_number_of_names_is_not_kept(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(tensors, "_MOST_NAMES", 5)
    tensor_list = TensorList()
    for number in range(count):
        tensor_list.add([f"x{number}"])
    tensor_list.add("abcd")
    assert tensor_list.differences(NEEDED) == (
        f"4 missing (a, b, c...), {count + 4} too many (..., x0, x1...)"
    )
