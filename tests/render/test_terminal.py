"""Pages: nothing is cut, tables fit, and nothing in the data acts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mlperf_pkg.render.terminal import Column, Group, Page
from mlperf_pkg.render.view import View

COLUMNS = (Column("Name"), Column("Minutes", 7, numbers=True), Column("Status", 10))


def table(width: int, *names: str, **more: bool) -> list[str]:
    page = Page(View(width))
    rows = [[(name, ""), ("1.000", ""), ("success", "")] for name in names]
    page.table(COLUMNS, [Group("a set", rows, ["a remark"])], **more)
    return page.text().split("\n")


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


def test_a_long_name_is_folded() -> None:
    assert table(40, "a" * 30)[2:5] == [
        "  aaaaaaaaaaaaaaaaaaaa    1.000  success",
        "aaaaaaaaaa",
        "  a remark",
    ]


@given(st.text(st.characters(exclude_categories=())), st.integers(40, 100))
def test_a_table_fits(name: str, width: int) -> None:
    assert all(cell_len(line) <= width for line in table(width, name))


@pytest.mark.parametrize("width", [1, 5, 20])
def test_a_narrow_page(width: int) -> None:
    assert "".join("".join(table(width, "name")).split()).count("success") <= 1


def test_a_line_is_neither_cut_nor_wrapped() -> None:
    page = Page(View(20))
    page.line(("word " * 100 + "end", ""))
    assert page.text() == "word " * 100 + "end\n"


def test_a_paragraph_is_wrapped() -> None:
    page = Page(View(20))
    page.paragraph(("some words that are wrapped", ""))
    assert page.text() == "some words that are\nwrapped\n"


class RichPage(Page):
    """A page that leaves nothing out that rich does."""

    def _plain(self, _: object) -> None:
        return None


TEXTS = st.text("ab /-.[]", max_size=60)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=3)


@given(ROWS, TEXTS, st.integers(1, 80), st.integers(1, 12))
def test_what_is_plain_is_as_rich_has_it(
    rows: list[tuple[str, str, str]], text: str, width: int, column: int
) -> None:
    columns = (Column("Name"), Column("Minutes", column, numbers=True), Column("Status", column))
    cells = [[(cell, "") for cell in row] for row in rows]
    pages = [kind(View(width)) for kind in (Page, RichPage)]
    for page in pages:
        page.table(columns, [Group(text, cells)])
        page.paragraph((text, "bold"), (text, ""))
        page.line((text, ""))
    assert pages[0].text() == pages[1].text()


HOSTILE = "[red]x[/red] :smile: \x1b[31m\n\udcff https://x"


@pytest.mark.parametrize("color", [False, True])
def test_nothing_in_the_data_acts(color: bool) -> None:
    page = Page(View(200, color=color))
    page.line((HOSTILE, ""))
    assert page.text() == "[red]x[/red] :smile: \\x1b[31m\\n\\udcff https://x\n"


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    plain, colored = Page(View()), Page(View(color=True))
    for page in (plain, colored):
        page.line(("bad", "bold red"))
    assert plain.text() == "bad\n"
    assert colored.text() == "\x1b[1;31mbad\x1b[0m\n"
