"""The tables of a publication, by division and category: as CSV, JSON, a workbook and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, product
from operator import attrgetter
from typing import Any

from msgspec import Struct

from mlperf_pkg.checks.described import CATEGORIES
from mlperf_pkg.commands.page.template import environment, page_head, raw
from mlperf_pkg.commands.page.template import file as template_file
from mlperf_pkg.commands.results.official import book, fitting, write_sections
from mlperf_pkg.commands.results.publication import (
    FORMAT,
    UNDIVIDED,
    UNKNOWN,
    WEAK,
    Publication,
    Row,
    Score,
    rounded,
)
from mlperf_pkg.commands.results.systems import Cell
from mlperf_pkg.render.table import Column, Group, Table, csv, records, table_of
from mlperf_pkg.render.tables import json_text
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json
from mlperf_pkg.rulebook.model import DIVISIONS

_PACKAGE = "mlperf_pkg.commands.results"
_COLUMN_WIDTH = 14
_FROZEN = 3  # columns of a sheet: id, submitter and system


def _field(key: str, name: str = "", width: int = _COLUMN_WIDTH) -> Column:
    """Return the column of a field, ``key`` if it has no other name; in a workbook ``width``."""
    return Column(key=key, of=attrgetter(name or key), width=width)


_TABLE = (_field("division"), _field("category"))
_HEAD = (
    _field("id", width=34),
    _field("submitter", width=24),
    _field("system", width=36),
    _field("processor", width=34),
    _field("processors"),
    _field("accelerator", width=34),
    _field("accelerators"),
    _field("software", width=30),
)
_TAIL = (
    _field("details", "details_url"),
    _field("code", "code_url"),
    _field("notes", width=60),
    _field("remarks", width=40),
)
_OF_ROW = ("submitter", "system", "division", "category")
_OF_SCORE = (
    _field("benchmark"),
    _field("scaling"),
    _field("minutes", "published_minutes"),
    _field("rank"),
    _field("of"),
    _field("exact_minutes", "minutes"),
    _field("energy_joules"),
    _field("number_of_models"),
    _field("instance_scale"),
    _field("reason"),
    _field("path"),
    _field("official"),
    Column(key="waived", of=lambda score: " ".join(score.waived)),
    _field("remarks"),
)


class Kind(Struct, frozen=True):
    """What a table has: the names of its values and of its CSV file, and their format in a sheet.

    ``values`` are the values of a score, by the ends of the names of their columns.
    """

    name: str
    unit: str
    file: str
    values: Mapping[str, Callable[[Score], Cell]]
    number_format: str
    show: Callable[[Cell], str]


def _minutes(cell: Cell) -> str:
    """Return minutes with all decimals, and counts as they are."""
    if cell is None:
        return ""
    return wording.minutes(cell) if isinstance(cell, float) else str(cell)


_TIME = Kind(
    name="time to train",
    unit="minutes",
    file="results.csv",
    values={"": attrgetter("published_minutes")},
    number_format="0.000",
    show=_minutes,
)
_THROUGHPUT = Kind(
    name="weak scaling",
    unit="models, accelerators per model, and minutes until all are trained",
    file="weak_scaling.csv",
    values={
        ": models": attrgetter("number_of_models"),
        ": accelerators": attrgetter("instance_scale"),
        ": minutes": attrgetter("published_minutes"),
    },
    number_format="General",
    show=_minutes,
)
_ENERGY = Kind(
    name="energy",
    unit="joules",
    file="energy.csv",
    values={"": lambda score: rounded(score.energy_joules)},
    number_format="0",
    show=lambda cell: "" if cell is None else f"{cell:,.0f}",
)
KINDS = (_TIME, _THROUGHPUT, _ENERGY)


class Section(Struct, frozen=True):
    """The table of a kind, division and category; ``scores`` are its columns with scores."""

    kind: Kind
    division: str
    category: str
    rows: tuple[Row, ...]
    scores: tuple[Column, ...]

    @property
    def title(self) -> str:
        """The heading: division and category, and kinds other than time."""
        kind = "" if self.kind is _TIME else f", {self.kind.name}"
        return f"{self.division.capitalize()}: {self.category}{kind}"

    @property
    def table(self) -> Table:
        """The columns of the system, the scores, links and notes."""
        return table_of((*_HEAD, *self.scores, *_TAIL), self.rows)

    @property
    def number(self) -> int:
        """The number of its scores."""
        cells = [c for r in records(table_of(self.scores, self.rows)) for c in r.values()]
        return sum(cell is not None for cell in cells) // len(self.kind.values)

    @property
    def used(self) -> list[Column]:
        """The columns with a score in this table: most tables lack most benchmarks."""
        cells = records(self.table)
        return [c for c in self.scores if any(row[c.key or ""] is not None for row in cells)]


def tables(publication: Publication) -> list[Section]:
    """Return the tables in the order of publication, without rows that have no score.

    All tables of a kind have the same columns: the benchmarks of the round. The cell of a result
    set without a valid score is empty, as in published tables.
    """
    return [section for kind in KINDS for section in _sections(kind, publication)]


def _sections(kind: Kind, publication: Publication) -> Iterator[Section]:
    scores = {
        (score.row, score.benchmark): score
        for score in publication.scores
        if not score.reason
        and (score.scaling == WEAK) == (kind is _THROUGHPUT)
        and (kind is not _ENERGY or score.energy_joules is not None)
    }
    keys = {key for key, _ in scores}
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(publication.rows, key=_order):
        if row.key in keys:
            groups.setdefault((row.division, row.category), []).append(row)
    columns = tuple(
        _score_column(kind, benchmark, suffix, scores)
        for benchmark in publication.benchmarks
        for suffix in kind.values
    )
    for division, category in product((*DIVISIONS, UNDIVIDED), (*CATEGORIES.values(), UNKNOWN)):
        if rows := groups.get((division, category)):
            yield Section(kind, division, category, tuple(rows), columns)


def _order(row: Row) -> tuple[str, str, int, str]:
    return (row.submitter.lower(), row.system.lower(), row.accelerators or 0, row.key)


def _score_column(
    kind: Kind, benchmark: str, suffix: str, scores: Mapping[tuple[str, str], Score]
) -> Column:
    def value(row: Row) -> Cell:
        score = scores.get((row.key, benchmark))
        return kind.values[suffix](score) if score else None

    return Column(key=f"{benchmark}{suffix}", of=value, width=_COLUMN_WIDTH, show=kind.show)


# ---- CSV and JSON ---------------------------------------------------------------------------


def tables_csv(sections: Sequence[Section]) -> str:
    """Return tables of one kind as one; its first columns are division and category."""
    scores = sections[0].scores if sections else ()
    groups = [Group("", section.rows) for section in sections]
    return csv(Table((*_TABLE, *_HEAD, *scores, *_TAIL), groups))


def scores_csv(publication: Publication) -> str:
    """Return a line for each result set, with its rank or the reason why it has no score."""
    rows = {row.key: row for row in publication.rows}

    def of_row(name: str) -> Column:
        return Column(key=name, of=lambda score: getattr(rows[score.row], name))

    columns = (_field("id"), *map(of_row, _OF_ROW), *_OF_SCORE)
    return csv(table_of(columns, publication.scores))


def results_json(publication: Publication) -> str:
    """Return all values as JSON, in which the tables are rows of cells by column."""
    fields: dict[str, Any] = as_json(publication)
    shown = [
        {
            "kind": section.kind.name,
            "division": section.division,
            "category": section.category,
            "rows": records(section.table),
        }
        for section in tables(publication)
    ]
    return json_text({"format": FORMAT, **fields, "tables": as_json(shown)})


# ---- workbook and page ----------------------------------------------------------------------


def workbook(publication: Publication) -> bytes:
    """Return the tables as XLSX, a sheet for each division; the bytes are reproducible.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    with book(publication.usage, publication.round) as file:
        for title, group in groupby(tables(publication), _sheet_name):
            sections = list(group)
            kind, columns = sections[0].kind, sections[0].table.columns
            sheet = file.contents.add_worksheet(title)
            sheet.freeze_panes(1, _FROZEN)
            for index, column in enumerate(columns):
                sheet.set_column(index, index, column.width)
            of_scores = file.contents.add_format({"num_format": kind.number_format})
            write_sections(
                file,
                sheet,
                [column.key or "" for column in columns],
                [
                    (section.category, [[*r.values()] for r in records(section.table)])
                    for section in sections
                ],
                {column.key or "": of_scores for column in sections[0].scores},
            )
        sheet = file.contents.add_worksheet("without a score")
        sheet.set_column(0, 2, 40)
        sheet.write_row(0, 0, ("id", "result set", "reason"), file.head)
        for line, score in enumerate(publication.without_score, 1):
            sheet.write_row(line, 0, map(fitting, (score.id, score.path, score.reason)))
    return file.stream.getvalue()


def _sheet_name(section: Section) -> str:
    kind = "" if section.kind is _TIME else f" {section.kind.name}"
    return f"{section.division}{kind}"


def page(publication: Publication) -> str:
    """Return the tables as one page of HTML without scripts, in the style of ``report``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    template = environment(_PACKAGE).get_template("results.html")
    style = template_file("page.css") + template_file("results.css", _PACKAGE)
    return template.render(
        page=publication,
        tables=tables(publication),
        head=raw(page_head(publication.title, style)),
        wording=wording,
    )
