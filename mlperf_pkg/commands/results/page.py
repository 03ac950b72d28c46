"""A publication as one page of HTML without scripts, in the style of ``report``."""

from __future__ import annotations

from mlperf_pkg.commands.page.template import environment, file, page_head, raw
from mlperf_pkg.commands.results.publication import Publication
from mlperf_pkg.commands.results.tables import COUNTS, UNITS, Cell, Kind, Table, tables
from mlperf_pkg.results import wording

_PACKAGE = "mlperf_pkg.commands.results"


def page(publication: Publication) -> str:
    """Return the page.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    template = environment(_PACKAGE).get_template("results.html")
    style = file("page.css") + file("results.css", _PACKAGE)
    return template.render(
        page=publication,
        tables=[(table, _used(table)) for table in tables(publication)],
        head=raw(page_head(publication.title, style)),
        units=UNITS,
        counts=COUNTS,
        shown=_shown,
        wording=wording,
    )


def _used(table: Table) -> dict[str, tuple[Cell, ...]]:
    """Return the columns with a score in this table: most tables lack most benchmarks."""
    return {
        name: cells
        for name, cells in table.scores.items()
        if any(cell is not None for cell in cells)
    }


def _shown(kind: Kind, cell: Cell) -> str:
    """Return a number for publication: minutes with all decimals, counts and joules whole."""
    if cell is None:
        return ""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if kind is Kind.ENERGY else wording.minutes(cell)
