"""Texts of any origin: nothing that acts gets through."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlperf_pkg.infra.text import (
    did_you_mean,
    escape_cell,
    escape_formula,
    escape_markdown,
    unescape_formula,
    visible,
)

# ``st.text`` leaves out surrogates unless they are asked for.
TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("größer 日本 🚀", "größer 日本 🚀"),
        ("two\nlines\r\n\tand a tab", "two\\nlines\\r\\n\\tand a tab"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("right\u202eleft", "right\\u202eleft"),
        ("half \udcff", "half \\udcff"),
        ("no\xa0break", "no\\xa0break"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(TEXT)
def test_visible_holds_nothing_that_acts(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert not [char for char in shown if unicodedata.category(char).startswith("C")]
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a|b", "a\\|b"),
        ("eval_accuracy", "eval_accuracy"),
        ("*x* `y` <b> [z](u)", "\\*x\\* \\`y\\` \\<b\\> \\[z\\](u)"),
        ("&amp; $x$ ~~y~~", "\\&amp; \\$x\\$ \\~\\~y\\~\\~"),
        ("a\n# heading", "a\\\\n# heading"),
    ],
)
def test_markdown(text: str, markdown: str) -> None:
    assert escape_markdown(text) == markdown


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("\t=1", "\\t=1"),
        ("a; @x;-2", "a;' @x;'-2"),
        (';"=1+1', ";'\"=1+1"),
        ("a;b=1", "a;b=1"),
    ],
)
def test_cell(text: str, cell: str) -> None:
    assert escape_cell(text) == cell


@given(TEXT | st.text("'=; a"))
def test_unescaped_formulas_are_the_text(text: str) -> None:
    assert unescape_formula(escape_formula(text)) == text


@given(TEXT)
def test_cell_is_never_a_formula(text: str) -> None:
    assert [
        part
        for part in escape_cell(text).split(";")
        if part.startswith(("=", "+", "-", "@", "\t", "\r"))
    ] == []


@pytest.mark.parametrize(
    ("name", "match"), [("brt", "bert"), ("RESNET", "resnet"), ("2.00", "2.0"), ("vgg", "")]
)
def test_did_you_mean(name: str, match: str) -> None:
    text = did_you_mean(name, ("bert", "resnet", "unet3d", "2.0", "2.1"))
    assert text == (f"; did you mean {match}?" if match else "")
