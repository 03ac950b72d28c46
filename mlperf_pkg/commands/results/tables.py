"""The tables of a publication, by division and category, and the files that have them.

They are CSV, JSON, a workbook and a page, in a folder with the private ids and the official tables.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from operator import attrgetter
from pathlib import Path
from textwrap import shorten, wrap
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import CATEGORIES
from mlperf_pkg.commands.notice import ShownResult, embargo, marked, notice, result_id
from mlperf_pkg.commands.page.template import file as template_file
from mlperf_pkg.commands.page.template import filled
from mlperf_pkg.commands.results import official as summarizer
from mlperf_pkg.commands.results.publication import (
    UNDIVIDED,
    UNKNOWN,
    WEAK,
    Publication,
    PublishedRow,
    PublishedScore,
    anonymous,
    identifying,
    publication,
    rounded,
)
from mlperf_pkg.commands.results.systems import (
    Cell,
    PrivateIds,
    SubmittedSystem,
    read_ids,
    systems_with_results,
)
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
_ROW_FIELDS = ("submitter", "system", "division", "category")
_SCORE_COLUMNS = (
    *map(_field, ("benchmark", "scaling")),
    _field("minutes", "published_minutes"),
    *map(_field, ("rank", "of")),
    _field("exact_minutes", "minutes"),
    *map(_field, ("energy_joules", "number_of_models", "instance_scale")),
    *map(_field, ("reason", "path", "official")),
    Column(key="waived", of=lambda score: " ".join(score.waived)),
    _field("remarks"),
)


class TableKind(Struct, frozen=True):
    """What a table has: the names of its values and of its CSV file, and their format in a sheet.

    ``values`` are the values of a score, by the ends of the names of their columns.
    """

    name: str
    unit: str
    file: str
    values: Mapping[str, Callable[[PublishedScore], Cell]]
    number_format: str
    show: Callable[[Cell], str]


def _minutes(cell: Cell) -> str:
    """Return minutes with all decimals, and counts as they are."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return wording.minutes(cell)
    return str(cell)


_TIME = TableKind(
    name="time to train",
    unit="minutes",
    file="results.csv",
    values={"": attrgetter("published_minutes")},
    number_format="0.000",
    show=_minutes,
)
_THROUGHPUT = TableKind(
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
_ENERGY = TableKind(
    name="energy",
    unit="joules",
    file="energy.csv",
    values={"": lambda score: rounded(score.energy_joules)},
    number_format="0",
    show=lambda cell: "" if cell is None else f"{cell:,.0f}",
)
KINDS = (_TIME, _THROUGHPUT, _ENERGY)


class ResultsTable(Struct, frozen=True):
    """The table of a kind, division and category; ``scores`` are its columns with scores."""

    kind: TableKind
    division: str
    category: str
    rows: tuple[PublishedRow, ...]
    scores: tuple[Column, ...]

    @property
    def title(self) -> str:
        """The heading: division and category, and kinds other than time."""
        title = f"{self.division.capitalize()}: {self.category}"
        if self.kind is not _TIME:
            title += f", {self.kind.name}"
        return title

    @property
    def sheet(self) -> str:
        """The name of its sheet in a workbook, which has a section for each category."""
        if self.kind is _TIME:
            return self.division
        return f"{self.division} {self.kind.name}"

    @property
    def table(self) -> Table:
        """The columns of the system, the scores, links and notes."""
        return table_of((*_HEAD, *self.scores, *_TAIL), self.rows)

    @property
    def number(self) -> int:
        """The number of its scores."""
        number = 0
        for record in records(table_of(self.scores, self.rows)):
            number += sum(cell is not None for cell in record.values())
        return number // len(self.kind.values)

    @property
    def used(self) -> list[Column]:
        """The columns with a score in this table: most tables lack most benchmarks."""
        cells = records(self.table)
        used = []
        for column in self.scores:
            key = column.key or ""
            if any(row[key] is not None for row in cells):
                used.append(column)
        return used

    @property
    def by_score(self) -> list[PublishedRow]:
        """The rows by score: those with a score in the first benchmark come first."""

        def order(row: PublishedRow) -> list[float]:
            values = [column.of(row) for column in self.used if column.of]
            return [math.inf if value is None else value for value in values]

        return sorted(self.rows, key=order)


def tables(publication: Publication) -> list[ResultsTable]:
    """Return the tables in the order of publication, without rows that have no score.

    All tables of a kind have the same columns: the benchmarks of the round. The cell of a result
    set without a valid score is empty, as in published tables.
    """
    of_all_kinds: list[ResultsTable] = []
    for kind in KINDS:
        of_all_kinds += _tables(kind, publication)
    return of_all_kinds


def _tables(kind: TableKind, publication: Publication) -> Iterator[ResultsTable]:
    scores = {}
    for score in publication.scores:
        if _has(kind, score):
            scores[score.row, score.benchmark] = score
    keys = {score.row for score in scores.values()}
    columns: list[Column] = []
    for benchmark in publication.benchmarks:
        columns += _score_columns(kind, benchmark, scores)
    rows = sorted((row for row in publication.rows if row.key in keys), key=_order)
    groups = by_key(((row.division, row.category), row) for row in rows)
    for division, category in product((*DIVISIONS, UNDIVIDED), (*CATEGORIES.values(), UNKNOWN)):
        members = groups.get((division, category))
        if members:
            yield ResultsTable(kind, division, category, tuple(members), tuple(columns))


def _has(kind: TableKind, score: PublishedScore) -> bool:
    """Return whether a score is in the tables of a kind."""
    if score.reason:
        return False
    if kind is _ENERGY and score.energy_joules is None:
        return False
    return (score.scaling == WEAK) == (kind is _THROUGHPUT)


def _order(row: PublishedRow) -> tuple[str, str, int, str]:
    return (row.submitter.lower(), row.system.lower(), row.accelerators or 0, row.key)


def _score_columns(
    kind: TableKind, benchmark: str, scores: Mapping[tuple[str, str], PublishedScore]
) -> Iterator[Column]:
    for suffix, value in kind.values.items():
        cell = partial(_cell, benchmark, value, scores)
        yield Column(key=f"{benchmark}{suffix}", of=cell, width=_COLUMN_WIDTH, show=kind.show)


def _cell(
    benchmark: str,
    value: Callable[[PublishedScore], Cell],
    scores: Mapping[tuple[str, str], PublishedScore],
    row: PublishedRow,
) -> Cell:
    """Return a value of the score of a row, None if it has no score in a benchmark."""
    score = scores.get((row.key, benchmark))
    if score is None:
        return None
    return value(score)


# ---- CSV and JSON ---------------------------------------------------------------------------


def tables_csv(sections: Sequence[ResultsTable]) -> str:
    """Return tables of one kind as one; its first columns are division and category."""
    scores: tuple[Column, ...] = ()
    if sections:
        scores = sections[0].scores
    groups = [RowGroup("", section.rows) for section in sections]
    return render.csv(Table((*_TABLE, *_HEAD, *scores, *_TAIL), groups))


def scores_csv(publication: Publication) -> str:
    """Return a line for each result set, with its rank or the reason why it has no score."""
    rows = {row.key: row for row in publication.rows}

    def row_column(name: str) -> Column:
        return Column(key=name, of=lambda score: getattr(rows[score.row], name))

    columns = (_field("id"), *map(row_column, _ROW_FIELDS), *_SCORE_COLUMNS)
    return render.csv(table_of(columns, publication.scores))


def results_json(publication: Publication) -> str:
    """Return all values as JSON, in which the tables are rows of cells by column."""
    fields: dict[str, Any] = as_json(publication)
    shown = []
    for table in tables(publication):
        shown.append(
            {
                "kind": table.kind.name,
                "division": table.division,
                "category": table.category,
                "rows": records(table.table),
            }
        )
    return render.json_text({"format": FORMAT, **fields, "tables": as_json(shown)})


# ---- workbook and page ----------------------------------------------------------------------


def workbook(publication: Publication) -> bytes:
    """Return the tables as XLSX, a sheet for each division; the bytes are reproducible.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    with summarizer.book(publication.usage, publication.round) as file:
        for title, group in groupby(tables(publication), attrgetter("sheet")):
            sheet = file.contents.add_worksheet(title)
            _write_sheet(file, sheet, list(group))
        sheet = file.contents.add_worksheet("without a score")
        sheet.set_column(0, 2, 40)
        sheet.write_row(0, 0, ("id", "result set", "reason"), file.head)
        for line, score in enumerate(publication.without_score, 1):
            cells = map(summarizer.fitting, (score.id, score.path, score.reason))
            sheet.write_row(line, 0, cells)
    return file.stream.getvalue()


def _write_sheet(file: summarizer.Book, sheet: Any, sections: Sequence[ResultsTable]) -> None:
    """Write tables with the same columns as the sections of a sheet."""
    first = sections[0]
    sheet.freeze_panes(1, _FROZEN)
    names = []
    for index, column in enumerate(first.table.columns):
        sheet.set_column(index, index, column.width)
        names.append(column.key or "")
    rows = []
    for section in sections:
        cells = [list(record.values()) for record in records(section.table)]
        rows.append((section.category, cells))
    number_format = file.contents.add_format({"num_format": first.kind.number_format})
    formats = {column.key or "": number_format for column in first.scores}
    summarizer.write_sections(file, sheet, names, rows, formats)


def page(publication: Publication) -> str:
    """Return the tables as one page of HTML, in the style of ``report``.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    shown = tables(publication)
    results = list(_shown_results(publication))
    verdicts = {row.key: _verdict(row, publication.scores) for row in publication.rows}
    values = {
        "page": publication,
        "tables": shown,
        "verdicts": verdicts,
        "choices": _page_choices(shown, verdicts),
        "score_of": {(score.row, score.benchmark): score for score in publication.scores},
        "title": marked(publication.title),
        "embargo": embargo(results),
        "notice": notice(results),
    }
    pieces = filled(
        "summary.html",
        values,
        title=publication.title,
        style=template_file("page.css") + template_file("summary.css"),
        scripts=("charts.js", "table.js", "summary.js"),
    )
    return "".join(pieces)


def _shown_results(publication: Publication) -> Iterator[ShownResult]:
    """Yield the scores of the tables with what must stand beside them."""
    rows = {row.key: row for row in publication.rows}
    for score in publication.scores:
        row = rows[score.row]
        if not score.reason:
            yield ShownResult(
                usage=publication.usage,
                round=publication.round,
                benchmark=score.benchmark,
                division=row.division,
                category=row.category,
                accelerators=row.accelerators,
                minutes=score.minutes,
                is_verified=score.is_verified,
                id=result_id(row.id),
            )


def _page_choices(
    shown: Sequence[ResultsTable], verdicts: Mapping[str, str]
) -> Mapping[str, Sequence[str]]:
    """Return the values by which the rows of a page can be filtered."""
    choices: dict[str, set[str]] = {"Submitter": set(), "Accelerator": set(), "Verdict": set()}
    for table in shown:
        for row in table.rows:
            choices["Submitter"].add(row.submitter)
            choices["Accelerator"].add(row.accelerator)
            choices["Verdict"].add(verdicts[row.key])
    return {name: sorted(texts) for name, texts in choices.items() if len(texts) > 1}


def _verdict(row: PublishedRow, scores: Sequence[PublishedScore]) -> str:
    """Return the verdicts of the scores of a row that are in the tables: ``official FAIL``."""
    official_fails = False
    rules_fail = False
    for score in scores:
        if score.row == row.key and not score.reason:
            official_fails = official_fails or score.official is Verdict.FAIL
            rules_fail = rules_fail or "rules:" in score.remarks
    failing = []
    if official_fails:
        failing.append("official FAIL")
    if rules_fail:
        failing.append("rules FAIL")
    return ", ".join(failing) or "pass"


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
        if self.anonymous:
            self._refuse_names()
        files = [self.path / name for name in _FILES]
        if self.ids in files:
            raise UserError(f"{self.ids}: a file of the summary; expected another file for the ids")
        existing = [file for file in files if file.exists()]
        if existing and not self.force:
            raise UserError(f"{existing[0]} exists already; --force overwrites it")
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
        remarks: list[str] = []
        if self.anonymous:
            _refuse_telling_ids(result)
            remarks = identifying(result)
            result = anonymous(result)
        else:
            result, official = _with_official_tables(result, checked)
        files, notes = file_contents(result)
        files |= official
        private: dict[str, str] = {}
        if self.ids.parent == self.path and (self.force or not self.path.exists()):
            private = {self.ids.name: extended.text()}
        elif extended.entries != ids.entries or not ids.exists:
            extended.write()
        former = (*_FILES, *(f"{OFFICIAL}/{name}" for name in summarizer.OFFICIAL_FILES))
        write_together(self.path, {**files, **private}, replace=self.force, former=former)
        written = [
            f"Written into {self.path}/: {', '.join(files)}",
            self._ids_in_words(ids, extended, systems),
            *remarks,
        ]
        return replace(result, notes=(*result.notes, *notes)), written

    def _refuse_names(self) -> None:
        """Check that nothing in an anonymous folder names a system."""
        if self.ids.absolute().is_relative_to(self.path.absolute()):
            raise UserError(f"{self.ids}: names systems; choose a file outside {self.path}")
        for path in (self.path / OFFICIAL, self.path / IDS):
            if path.exists():
                raise UserError(f"{path}: names systems; choose another --output")

    def _ids_in_words(
        self, ids: PrivateIds, extended: PrivateIds, systems: Sequence[SubmittedSystem]
    ) -> str:
        """Return how many systems have ids in the file, how many are new, how many unused."""
        text = f"The private ids of {wording.counted(len(systems), 'system')} are in {self.ids}"
        details = []
        new = len(extended.entries) - len(ids.entries)
        if new:
            details.append(f"{new} new")
        withdrawn = extended.entries.keys() - {system.key for system in systems}
        if withdrawn:
            details.append(f"{len(withdrawn)} more of withdrawn systems")
        if details:
            text += f" ({', '.join(details)})"
        return text


def _refuse_telling_ids(result: Publication) -> None:
    """Check that no private id has the name of a submitter in it."""
    for row in result.rows:
        if letters(row.submitter) and letters(row.submitter) in letters(row.id):
            subject = f"the private id {row.id} of {row.key}"
            raise UserError(f"{subject} contains the name of the submitter")


def _with_official_tables(
    result: Publication, checked: Checked
) -> tuple[Publication, dict[str, str | bytes]]:
    """Return a summary with the gaps of the official tables, and their files by name.

    Where the check has no such tables, the summary says that they are missing.
    """
    try:
        contents, gaps = summarizer.official_files(checked)
    except UserError as error:
        missing = (*result.missing, f"{OFFICIAL}: {error}")
        return replace(result, missing=missing), {}
    files = {f"{OFFICIAL}/{name}": contents[name] for name in sorted(contents)}
    return replace(result, official_gaps=tuple(gaps)), files


def file_contents(result: Publication) -> tuple[dict[str, str | bytes], list[str]]:
    """Return the files by name, and notes on those that need a package that is not installed."""
    sections = tables(result)
    files: dict[str, str | bytes] = {}
    for kind in KINDS:
        kind_sections = [section for section in sections if section.kind is kind]
        if kind_sections or kind is _TIME:
            files[kind.file] = tables_csv(kind_sections)
    notes = []
    for name, make in _MADE.items():
        try:
            files[name] = make(result)
        except MissingPackageError as error:
            notes.append(f"no {name}: {error}")
    return files, notes


# ---- what is printed ------------------------------------------------------------------------

_WIDTH = 80
_SHOWN_MISSING = 5  # remarks, each of two lines at most
_SHOWN_NOTES = 2
_COLUMNS = (
    Column("Table", of=attrgetter("title")),
    Column("Systems", 7, numbers=True, of=lambda section: len(section.rows)),
    Column("Scores", 6, numbers=True, of=attrgetter("number")),
)


def summary(result: Publication, written: Sequence[str], folder: Path, view: View) -> str:
    """Return the tables and files that were written, and the missing parts: about 30 lines."""
    terminal = Terminal(view)
    numbers = [
        wording.counted(len({score.row for score in result.scores}), "system"),
        wording.counted(len(result.scores), "result"),
        f"{len(result.scores) - len(result.without_score)} with a score",
    ]
    if result.submitters:
        numbers.insert(0, wording.counted(len(result.submitters), "submitter"))
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
        notes.append(f"{OFFICIAL}: {gaps} in the official tables; see {file}")
    yield from _listed("Missing", result.missing, _SHOWN_MISSING, file)
    yield from _listed("Notes", notes, _SHOWN_NOTES, file)


def _listed(title: str, remarks: Sequence[str], limit: int, file: Path) -> Iterator[str]:
    """Yield a heading and the first remarks, if any; ``file`` has all."""
    if not remarks:
        return
    yield ""
    yield f"{title} ({len(remarks)}):"
    for remark in remarks[:limit]:
        yield f"  {shorten(visible(remark), 2 * _WIDTH - 8, placeholder='...')}"
    if len(remarks) > limit:
        yield f"  and {len(remarks) - limit} more: see {file}"
