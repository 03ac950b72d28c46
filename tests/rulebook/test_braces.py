"""Patterns and what they stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.rulebook.load import expand_braces


def test_expansion() -> None:
    for pattern, expected in [
        ("", [""]),
        ("x{}y", ["xy"]),
        ("{attention/,}output", ["attention/output", "output"]),
        ("layer_{0..2}", ["layer_0", "layer_1", "layer_2"]),
        ("{a{1..2},b}", ["a1", "a2", "b"]),
        ("{a,b{c,d{e,}}}!", ["a!", "bc!", "bde!", "bd!"]),
        ("{0..1,x}", ["0..1", "x"]),
        ("{{0..1},x}", ["0", "1", "x"]),
    ]:
        assert expand_braces(pattern) == expected


def test_unbalanced_braces_and_descending_ranges_are_refused() -> None:
    for pattern in ["{", "}", "{a", "a}", "{a,{b}", "{a}}", "}{", "{0..3"]:
        with pytest.raises(ValueError, match="unbalanced"):
            expand_braces(pattern)
    with pytest.raises(ValueError, match=r"3\.\.1 in 'x\{3\.\.1\}' ends before it starts"):
        expand_braces("x{3..1}")


_words = st.text("abc/_", max_size=5)


@given(st.lists(st.lists(_words, min_size=1, max_size=3), max_size=4))
def test_product_of_the_alternatives(groups: list[list[str]]) -> None:
    pattern = "".join("{" + ",".join(group) + "}" for group in groups)
    expected = [""]
    for group in groups:
        expected = [before + word for before in expected for word in group]
    assert expand_braces(pattern) == expected
