"""Terminals: nothing is cut, tables fit, and data cannot send terminal escapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import Column, Group, Table
from mlperf_pkg.render.terminal import Terminal

COLUMNS = (Column("Name"), Column("Minutes", 7, numbers=True), Column("Status", 10))


def table(width: int, *names: str, **more: bool) -> list[str]:
    terminal = Terminal(View(width))
    rows = [[(name, ""), ("1.000", ""), ("success", "")] for name in names]
    terminal.table(Table(COLUMNS, [Group("a set", rows, ["a remark"])]), **more)
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


def test_a_long_name_in_a_whole_column_has_a_line_of_its_own() -> None:
    columns = (Column("Name", whole=True), *COLUMNS[1:])
    names = ("a" * 30, "a" * 30, "b", "c" * 40)
    rows = [[(name, ""), ("1.000", ""), ("success", "")] for name in names]
    terminal = Terminal(View(40))
    terminal.table(Table(columns, [Group("a set", rows)]))
    assert terminal.text().split("\n")[1:] == [
        "a set",
        "  " + "a" * 30,
        "                          1.000  success",
        "                          1.000  success",
        "  b                       1.000  success",
        "  " + "c" * 40,
        "                          1.000  success",
        "",
        "",
    ]


@given(st.text(st.characters(exclude_categories=())), st.integers(40, 100))
def test_a_table_fits(name: str, width: int) -> None:
    assert all(cell_len(line) <= width for line in table(width, name))


@pytest.mark.parametrize("width", [1, 5, 20])
def test_a_narrow_terminal(width: int) -> None:
    assert "".join("".join(table(width, "name")).split()).count("success") <= 1


def test_a_line_is_neither_cut_nor_wrapped() -> None:
    terminal = Terminal(View(20))
    terminal.line(("word " * 100 + "end", ""))
    assert terminal.text() == "word " * 100 + "end\n"


def test_a_paragraph_is_wrapped() -> None:
    terminal = Terminal(View(20))
    terminal.paragraph(("some words that are wrapped", ""))
    assert terminal.text() == "some words that are\nwrapped\n"


class RichTerminal(Terminal):
    """A terminal that leaves every line to rich."""

    def _plain(self, _: object) -> None:
        return None


TEXTS = st.text("ab /-.[]", max_size=60)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=3)


@given(ROWS, TEXTS, st.integers(1, 80), st.integers(1, 12))
def test_plain_text_equals_rich_text(
    rows: list[tuple[str, str, str]], text: str, width: int, column: int
) -> None:
    columns = (Column("Name"), Column("Minutes", column, numbers=True), Column("Status", column))
    cells = [[(cell, "") for cell in row] for row in rows]
    terminals = [kind(View(width)) for kind in (Terminal, RichTerminal)]
    for terminal in terminals:
        terminal.table(Table(columns, [Group(text, cells)]))
        terminal.paragraph((text, "bold"), (text, ""))
        terminal.line((text, ""))
    assert terminals[0].text() == terminals[1].text()


HOSTILE = "[red]x[/red] :smile: \x1b[31m\n\udcff https://x"


@pytest.mark.parametrize("color", [False, True])
def test_hostile_text_is_escaped(color: bool) -> None:
    terminal = Terminal(View(200, color=color))
    terminal.line((HOSTILE, ""))
    assert terminal.text() == "[red]x[/red] :smile: \\x1b[31m\\n\\udcff https://x\n"


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain, colored = Terminal(View()), Terminal(View(color=True))
    for terminal in (plain, colored):
        terminal.line(("bad", "bold red"))
    assert plain.text() == "bad\n"
    assert colored.text() == "\x1b[1;31mbad\x1b[0m\n"
