"""The tables of a publication, by division and category, and the files that have them.

They are CSV, JSON, a workbook and a page, in a folder with the private ids and the official tables.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, product
from operator import attrgetter
from pathlib import Path
from textwrap import shorten, wrap
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import CATEGORIES
from mlperf_pkg.commands.page.template import file as template_file
from mlperf_pkg.commands.page.template import filled
from mlperf_pkg.commands.results import official as summarizer
from mlperf_pkg.commands.results.publication import (
    UNDIVIDED,
    UNKNOWN,
    WEAK,
    Publication,
    Row,
    Score,
    anonymous,
    publication,
    rounded,
)
from mlperf_pkg.commands.results.systems import Cell, PrivateIds, read_ids, systems_with_results
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Verdict
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.resources import MissingPackageError
from mlperf_pkg.infra.text import letters, visible
from mlperf_pkg.render import table as render
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import PLAIN, Column, RowGroup, Table, by_key, records, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json
from mlperf_pkg.rulebook.model import DIVISIONS

FORMAT = "mlperf-pkg/publication/1"
IDS = "privateid.json"
OFFICIAL = "official"

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
    *map(_field, ("benchmark", "scaling")),
    _field("minutes", "published_minutes"),
    *map(_field, ("rank", "of")),
    _field("exact_minutes", "minutes"),
    *map(_field, ("energy_joules", "number_of_models", "instance_scale")),
    *map(_field, ("reason", "path", "official")),
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
    def sheet(self) -> str:
        """The name of its sheet in a workbook, which has a section for each category."""
        return self.division if self.kind is _TIME else f"{self.division} {self.kind.name}"

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
    rows_of_kind = (row for row in sorted(publication.rows, key=_order) if row.key in keys)
    groups = by_key(((row.division, row.category), row) for row in rows_of_kind)
    columns = tuple(
        _score_column(kind, benchmark, suffix, scores)
        for benchmark in publication.benchmarks
        for suffix in kind.values
    )
    for division, category in product((*DIVISIONS, UNDIVIDED), (*CATEGORIES.values(), UNKNOWN)):
        rows = groups.get((division, category))
        if rows:
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
    groups = [RowGroup("", section.rows) for section in sections]
    return render.csv(Table((*_TABLE, *_HEAD, *scores, *_TAIL), groups))


def scores_csv(publication: Publication) -> str:
    """Return a line for each result set, with its rank or the reason why it has no score."""
    rows = {row.key: row for row in publication.rows}

    def of_row(name: str) -> Column:
        return Column(key=name, of=lambda score: getattr(rows[score.row], name))

    columns = (_field("id"), *map(of_row, _OF_ROW), *_OF_SCORE)
    return render.csv(table_of(columns, publication.scores))


def results_json(publication: Publication) -> str:
    """Return all values as JSON, in which the tables are rows of cells by column."""
    fields: dict[str, Any] = as_json(publication)
    shown = [
        {"kind": section.kind.name, "division": section.division, "category": section.category}
        | {"rows": records(section.table)}
        for section in tables(publication)
    ]
    return render.json_text({"format": FORMAT, **fields, "tables": as_json(shown)})


# ---- workbook and page ----------------------------------------------------------------------


def workbook(publication: Publication) -> bytes:
    """Return the tables as XLSX, a sheet for each division; the bytes are reproducible.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    with summarizer.book(publication.usage, publication.round) as file:
        for title, group in groupby(tables(publication), attrgetter("sheet")):
            sections = list(group)
            first = sections[0]
            columns = sections[0].table.columns
            sheet = file.contents.add_worksheet(title)
            sheet.freeze_panes(1, _FROZEN)
            for index, column in enumerate(columns):
                sheet.set_column(index, index, column.width)
            names = [column.key or "" for column in columns]
            rows = [(s.category, [[*r.values()] for r in records(s.table)]) for s in sections]
            of_scores = file.contents.add_format({"num_format": first.kind.number_format})
            formats = {column.key or "": of_scores for column in first.scores}
            summarizer.write_sections(file, sheet, names, rows, formats)
        sheet = file.contents.add_worksheet("without a score")
        sheet.set_column(0, 2, 40)
        sheet.write_row(0, 0, ("id", "result set", "reason"), file.head)
        for line, score in enumerate(publication.without_score, 1):
            sheet.write_row(line, 0, map(summarizer.fitting, (score.id, score.path, score.reason)))
    return file.stream.getvalue()


def page(publication: Publication) -> str:
    """Return the tables as one page of HTML, in the style of ``report``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    of_page = tables(publication)
    verdicts = {row.key: _verdict(row, publication.scores) for row in publication.rows}
    rows = [row for table in of_page for row in table.rows]
    choices = {
        "Submitter": {row.submitter for row in rows},
        "Accelerator": {row.accelerator for row in rows},
        "Verdict": {verdicts[row.key] for row in rows},
    }
    values = {
        "page": publication,
        "tables": of_page,
        "verdicts": verdicts,
        "choices": {name: sorted(texts) for name, texts in choices.items() if len(texts) > 1},
    }
    return filled(
        "summary.html",
        values,
        title=publication.title,
        style=template_file("page.css") + template_file("summary.css"),
        scripts=("charts.js", "table.js", "summary.js"),
    )


def _verdict(row: Row, scores: Sequence[Score]) -> str:
    """Return the verdicts of the scores of a row that are in the tables: ``official FAIL``."""
    shown = [score for score in scores if score.row == row.key and not score.reason]
    failing = ["official"] if any(s.official is Verdict.FAIL for s in shown) else []
    failing += ["rules"] if any("rules:" in s.remarks for s in shown) else []
    return ", ".join(f"{basis} FAIL" for basis in failing) or "pass"


# ---- files ----------------------------------------------------------------------------------


_MADE: Mapping[str, Callable[[Publication], str | bytes]] = {
    "scores.csv": scores_csv,
    "results.json": results_json,
    "results.xlsx": workbook,
    "results.html": page,
}
_FILES = (*(kind.file for kind in KINDS), *_MADE)


class ResultsFolder(Struct, frozen=True):
    """The folder of a publication, and its file of private ids.

    Existing files are overwritten only with ``force``; the file of ids is always extended. An
    ``anonymous`` folder has nothing that names a system: no ids by name, and no official tables.
    """

    path: Path
    ids: Path
    force: bool
    anonymous: bool = False

    def refuse_early(self, inputs: Sequence[str]) -> PrivateIds:
        """Check before the work starts that the files can be written; return the ids so far.

        Raises:
            UserError: a file exists already, a path is inside an input, or the file of ids is not
                one.
        """
        for path in (self.path, self.ids):
            refuse_within(path, inputs)
        if not self.ids.absolute().parent.is_dir() and self.ids.parent != self.path:
            raise UserError(f"{self.ids}: the folder {self.ids.parent} does not exist")
        named = [path for path in (self.path / OFFICIAL, self.path / IDS) if path.exists()]
        if self.anonymous and self.ids.absolute().is_relative_to(self.path.absolute()):
            raise UserError(f"{self.ids}: names systems; choose a file outside {self.path}")
        if self.anonymous and named:
            raise UserError(f"{named[0]}: names systems; choose another --output")
        files = [self.path / name for name in _FILES]
        if self.ids in files:
            raise UserError(f"{self.ids}: a file of the summary; expected another file for the ids")
        existing = [file for file in files if file.exists()]
        if existing and not self.force:
            raise UserError(f"{existing[0]}: exists already; --force overwrites it")
        summarizer.refuse_tables(self.path / OFFICIAL, inputs, force=self.force)
        return read_ids(self.ids)

    def write(
        self, argument: str, checked: Checked, ids: PrivateIds, verdict: Basis
    ) -> tuple[Publication, list[str]]:
        """Write the private ids and the summary of ``argument``: all files of the folder or none.

        A new folder, or with ``force`` one that holds only a summary, appears as a whole, with the
        file of ids if that is in it.

        ``verdict`` is as for ``publication``. Return the summary, and what was written in words.

        Raises:
            UserError: the check has no submission or several rounds, or a file cannot be written.
        """
        systems = systems_with_results(argument, checked)
        extended = ids.extended(systems)
        result = publication(checked, systems, extended, verdict)
        official: dict[str, str | bytes] = {}
        if self.anonymous:
            for row in result.rows:
                if letters(row.submitter) and letters(row.submitter) in letters(row.id):
                    subject = f"the private id of {row.key}, {row.id}"
                    raise UserError(f"{subject}, contains the name of the submitter")
            result = anonymous(result)
        else:
            try:
                made, gaps = summarizer.official_files(checked)
                official = {f"{OFFICIAL}/{name}": made[name] for name in sorted(made)}
                result = replace(result, official_gaps=tuple(gaps))
            except UserError as error:
                result = replace(result, missing=(*result.missing, f"{OFFICIAL}: {error}"))
        files, notes = file_contents(result)
        files |= official
        own = {}
        if self.ids.parent == self.path and (self.force or not self.path.exists()):
            own = {self.ids.name: extended.text()}
        elif extended.entries != ids.entries or not ids.exists:
            extended.write()
        former = (*_FILES, *(f"{OFFICIAL}/{name}" for name in summarizer.OFFICIAL_FILES))
        write_together(self.path, {**files, **own}, replace=self.force, former=former)
        numbers = {
            "new": len(extended.entries) - len(ids.entries),
            "of withdrawn systems": len(extended.entries.keys() - {s.key for s in systems}),
        }
        more = ", ".join(f"{number} {of}" for of, number in numbers.items() if number)
        of_ids = f"{wording.counted(len(systems), 'system')} in {self.ids}"
        written = [f"In {self.path}: {', '.join(files)}", f"Private ids of {of_ids}"]
        written[1] += f" ({more})" if more else ""
        return replace(result, notes=(*result.notes, *notes)), written


def file_contents(result: Publication) -> tuple[dict[str, str | bytes], list[str]]:
    """Return the files by name, and notes on those that need a package that is not installed."""
    sections = tables(result)
    files: dict[str, str | bytes] = {}
    for number, kind in enumerate(KINDS):
        of_kind = [section for section in sections if section.kind is kind]
        if of_kind or not number:
            files[kind.file] = tables_csv(of_kind)
    notes = []
    for name, make in _MADE.items():
        try:
            files[name] = make(result)
        except MissingPackageError as error:
            notes.append(f"no {name}: {error}")
    return files, notes


# ---- what is printed ------------------------------------------------------------------------

_WIDTH = 80
_SHOWN_MISSING, _SHOWN_NOTES = 5, 2  # of two lines at most
_COLUMNS = (
    Column("Table", of=attrgetter("title")),
    Column("Systems", 7, numbers=True, of=lambda section: len(section.rows)),
    Column("Scores", 6, numbers=True, of=attrgetter("number")),
)


def summary(result: Publication, written: Sequence[str], folder: Path, view: View) -> str:
    """Return the tables and files that were written, and the missing parts: about 30 lines."""
    terminal = Terminal(view)
    numbers = (
        *([wording.counted(len(result.submitters), "submitter")] if result.submitters else []),
        wording.counted(len({score.row for score in result.scores}), "system"),
        wording.counted(len(result.scores), "result set"),
        f"{len(result.scores) - len(result.without_score)} with a score",
    )
    terminal.paragraph((f"{result.title}: {', '.join(numbers)}", PLAIN))
    terminal.line()
    sections = tables(result)
    if sections:
        terminal.table(table_of(_COLUMNS, sections))
    for text in (*written, *_remarks(result, folder / "results.json")):
        lines = wrap(visible(text), _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        for line in lines or [""]:
            terminal.line((line, PLAIN))
    return terminal.text()


def _remarks(result: Publication, file: Path) -> Iterator[str]:
    notes = list(result.notes)
    if result.official_gaps:
        gaps = wording.counted(len(result.official_gaps), "gap")
        notes.append(f"{OFFICIAL}: {gaps} in the official tables: see {file}")
    for title, remarks, limit in (
        ("Missing", result.missing, _SHOWN_MISSING),
        ("Notes", notes, _SHOWN_NOTES),
    ):
        if remarks:
            yield from ("", f"{title} ({len(remarks)}):")
        for remark in remarks[:limit]:
            yield f"  {shorten(visible(remark), 2 * _WIDTH - 8, placeholder='...')}"
        if len(remarks) > limit:
            yield f"  and {len(remarks) - limit} more: see {file}"
