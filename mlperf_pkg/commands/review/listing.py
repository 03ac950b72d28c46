"""A list of results across rounds: its formats, and as a section of a review."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mlperf_pkg.commands.review.model import Cell, Section, Table
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, csv_text
from mlperf_pkg.render.table import Table as TextTable
from mlperf_pkg.render.table import markdown as markdown_table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording

_DECIMALS = 3
_MARKED = "Marked: to be settled with the submitter."
_FORMAT = "mlperf-pkg/review-{}/1"


class Listing(Struct, frozen=True):
    """Results across rounds. ``fields`` are the values of all rows by name.

    Text shows ``columns``: in ``groups`` the rows that a reviewer has to look at, in ``others``
    the rows that only verbose text shows. ``counts`` are the numbers of rows by outcome. A section
    shows the fields ``brief``, with the rows of ``groups`` ``marked``.
    """

    name: str
    title: str
    summary: tuple[str, ...]
    counts: Mapping[str, int]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    others: tuple[Group, ...]
    names: tuple[str, ...]
    fields: tuple[Mapping[str, Any], ...]
    brief: tuple[str, ...]
    marked: tuple[int, ...] = ()
    legend: str = ""

    @property
    def hidden(self) -> str:
        """The number of rows that the text leaves out, in words."""
        number = sum(len(group.rows) for group in self.others)
        return f"{wording.counted(number, 'row')} more: --verbose shows them" if number else ""


def text(listing: Listing, view: View) -> str:
    """Return the list for a terminal or a pipe, its summary first."""
    terminal = Terminal(view)
    terminal.paragraph((listing.title, HEADING))
    for line in listing.summary:
        terminal.paragraph((line, PLAIN))
    terminal.line()
    if shown := [*listing.groups, *(listing.others if view.verbose else ())]:
        terminal.table(TextTable(listing.columns, shown), apart=True)
        if listing.legend:
            terminal.paragraph((listing.legend, PLAIN))
    if listing.hidden and not view.verbose:
        terminal.paragraph((listing.hidden, PLAIN))
    return terminal.text()


def json(listing: Listing, _: View) -> str:
    """Return all rows as JSON."""
    return tables.json_text(
        {
            "format": _FORMAT.format(listing.name),
            "title": listing.title,
            "counts": listing.counts,
            listing.name: listing.fields,
        }
    )


def csv(listing: Listing, _: View) -> str:
    """Return all rows as CSV."""
    return csv_text(listing.names, _rows(listing))


def markdown(listing: Listing, _: View) -> str:
    """Return all rows as Markdown, the summary as a list."""
    groups = [*listing.groups, *listing.others]
    parts = [
        f"## {escape_markdown(listing.title)}",
        "\n".join(f"- {escape_markdown(line)}" for line in listing.summary),
        *(markdown_table(TextTable(listing.columns, [group])) for group in groups),
        escape_markdown(listing.legend) if groups else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def listed_section(listing: Listing, title: str) -> Section:
    """Return the list as a section of a review, with the ``brief`` columns that are not empty."""
    names = [n for n in listing.brief if any(f[n] is not None for f in listing.fields)]
    table = Table(
        name="table",
        title=listing.title,
        columns=tuple(name.replace("_", " ").capitalize() for name in names),
        rows=tuple(tuple(_rounded(fields[name]) for name in names) for fields in listing.fields),
        marked=frozenset((row, 0) for row in listing.marked),
        note=_MARKED if listing.marked else "",
    )
    parts = (table,) if listing.fields else ()
    return Section(listing.name, title, listing.summary, parts, listing.summary)


def _rounded(value: Cell) -> Cell:
    return round(value, _DECIMALS) if isinstance(value, float) else value


def _rows(listing: Listing) -> Iterator[Sequence[Any]]:
    for fields in listing.fields:
        yield [fields[name] for name in listing.names]


LISTING_FORMATS: Mapping[str, Callable[[Listing, View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
