"""A section of a review: paragraphs and tables. A list of results across rounds, in all formats."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Table, by_key, records, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording

Cell = str | int | float | None
"""The content of a table; None is an empty cell."""

_DECIMALS = 3
_MARKED = "Marked: to be settled with the submitter."


class Section(Struct, frozen=True):
    """A part of a review. ``name`` is the stem of its files; ``text`` are paragraphs.

    ``tables`` are by the stem of their files, after that of the section; ``checks`` makes them
    lists of checkboxes. ``summary`` are the lines that the command prints.
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    tables: Mapping[str, Table] = {}
    summary: tuple[str, ...] = ()
    checks: bool = False


def column(title: str, of: Callable[[Any], Any] | None = None, *, numbers: bool = False) -> Column:
    """Return a column that has its title in data, too."""
    return Column(title, key=title, of=of, numbers=numbers)


def table_of_cells(columns: Sequence[str], rows: Sequence[Sequence[Cell]], **more: Any) -> Table:
    """Return a table of cells; a column that contains nothing but numbers is one of numbers."""
    made = []
    for place, title in enumerate(columns):
        cells = [row[place] for row in rows if row[place] is not None]
        numbers = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        made.append(column(title, numbers=numbers))
    return table_of(made, rows, **more)


# ---- a list across rounds -----------------------------------------------------------------


class Listing(Struct, frozen=True):
    """Results across rounds, and the numbers of them by outcome (``counts``).

    Text shows the rows in groups; ``group_of`` returns the title of that of a row. The rows for
    which ``is_open`` is true have to be settled in the review; only verbose text shows others. A
    section of a review has the columns with the keys ``brief``.
    """

    name: str
    title: str
    summary: tuple[str, ...]
    counts: Mapping[str, int]
    columns: tuple[Column, ...]
    rows: Sequence[Any]
    group_of: Callable[[Any], str]
    is_open: Callable[[Any], bool]
    brief: tuple[str, ...]
    legend: str = ""

    def groups(self, *, are_open: bool) -> list[Group]:
        """Return the rows that are open, or all others."""
        rows = (row for row in self.rows if self.is_open(row) is are_open)
        by_title = by_key((self.group_of(row), row) for row in rows)
        return [Group(f"{title} ({len(rows)})", rows) for title, rows in by_title.items()]


def text(listing: Listing, view: View) -> str:
    """Return the list for a terminal or a pipe, its summary first."""
    terminal = Terminal(view)
    terminal.paragraph((listing.title, HEADING))
    for line in listing.summary:
        terminal.paragraph((line, PLAIN))
    terminal.line()
    groups = listing.groups(are_open=True)
    groups += listing.groups(are_open=False) if view.verbose else []
    if groups:
        terminal.table(Table(listing.columns, groups), apart=True)
        if listing.legend:
            terminal.paragraph((listing.legend, PLAIN))
    if hidden := len(listing.rows) - sum(len(group.rows) for group in groups):
        terminal.paragraph((f"{wording.counted(hidden, 'row')} more: --verbose shows them", PLAIN))
    return terminal.text()


def json(listing: Listing, _: View) -> str:
    """Return all rows as JSON."""
    return tables.json_text(
        {
            "format": f"mlperf-pkg/review-{listing.name}/1",
            "title": listing.title,
            "counts": listing.counts,
            listing.name: records(table_of(listing.columns, listing.rows)),
        }
    )


def csv(listing: Listing, _: View) -> str:
    """Return all rows as CSV."""
    return tables.csv(table_of(listing.columns, listing.rows))


def markdown(listing: Listing, _: View) -> str:
    """Return all rows as Markdown, the summary as a list."""
    groups = [*listing.groups(are_open=True), *listing.groups(are_open=False)]
    legend = listing.legend if groups else ""
    return tables.document(
        f"## {escape_markdown(listing.title)}",
        "\n".join(f"- {escape_markdown(line)}" for line in listing.summary),
        tables.markdown(Table(listing.columns, groups, note=legend)),
    )


def listed_section(listing: Listing, title: str) -> Section:
    """Return the list as a section of a review, with the ``brief`` columns that are not empty."""
    rows = records(table_of(listing.columns, listing.rows))
    keys = [key for key in listing.brief if any(row[key] is not None for row in rows)]
    marked = frozenset((n, 0) for n, row in enumerate(listing.rows) if listing.is_open(row))
    titles = [key.replace("_", " ").capitalize() for key in keys]
    cells = ([row[key] for key in keys] for row in rows)
    rounded = [[round(v, _DECIMALS) if isinstance(v, float) else v for v in row] for row in cells]
    more = {"title": listing.title, "note": _MARKED if marked else "", "marked": marked}
    parts = {"table": table_of_cells(titles, rounded, **more)} if rows else {}
    return Section(listing.name, title, listing.summary, parts, listing.summary)


LISTING_FORMATS = {"text": text, "json": json, "markdown": markdown, "csv": csv}
