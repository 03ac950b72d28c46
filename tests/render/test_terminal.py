"""Terminals: nothing is cut, tables fit, and data cannot send terminal escapes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import Column, RowGroup, Table
from mlperf_pkg.render.terminal import Terminal

COLUMNS = (Column("Name"), Column("Minutes", 7, numbers=True), Column("Status", 10))


def table(width: int, *names: str, **more: bool) -> list[str]:
    terminal = Terminal(View(width))
    rows = [[(name, ""), ("1.000", ""), ("success", "")] for name in names]
    terminal.table(Table(COLUMNS, [RowGroup("a set", rows, ["a remark"])]), **more)
    return terminal.text().split("\n")


def test_a_table() -> None:
    assert table(80, "a.log", "longer.log") == [
        "Name          Minutes  Status",
        "a set",
        "  a.log         1.000  success",
        "  longer.log    1.000  success",
        "  a remark",
        "",
        "",
    ]


@given(st.text(st.characters(exclude_categories=())), st.integers(40, 100))
def test_a_table_fits(name: str, width: int) -> None:
    lines = (line for line in table(width, name) if line.strip() != visible(name).strip())
    assert all(cell_len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("some words that are wrapped", ["some words that are", "wrapped"]),
        (
            "an/extremely/long/path/of/a_log.txt: bad",
            ["an/extremely/long/path/of/a_log.txt:", "bad"],
        ),
        (
            "\u6f22\u5b57\u6f22\u5b57\u6f22 \u5b57\u6f22\u5b57\u6f22\u5b57",
            ["\u6f22\u5b57\u6f22\u5b57\u6f22", "\u5b57\u6f22\u5b57\u6f22\u5b57"],
        ),
    ],
)
def test_text_is_wrapped_between_words(text: str, expected: list[str]) -> None:
    terminal = Terminal(View(20, wraps=True))
    terminal.paragraph((text, ""))
    terminal.line((text[:5], "bold"), (text[5:], ""))
    assert terminal.text().splitlines() == 2 * expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  short  ", ["  short  CODE1"]),
        ("  " + "word " * 9, ["  word word word", "    word word word", "    word ...  CODE1"]),
        ("  " + "w" * 99, ["  ...  CODE1"]),
    ],
)
def test_a_line_that_is_too_long_is_cut_at_a_word(text: str, expected: list[str]) -> None:
    terminal = Terminal(View(20, wraps=True))
    terminal.line((text, ""), ("CODE1", "red"), most=3)
    assert terminal.text().splitlines() == expected


@given(st.text("ab \u6f22", max_size=80), st.integers(1, 30))
def test_no_word_is_lost_or_broken(text: str, width: int) -> None:
    terminal = Terminal(View(width))
    terminal.paragraph((text, ""))
    assert terminal.text().split() == text.split()
