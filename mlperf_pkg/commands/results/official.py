"""The tables of the official summarizer, cell by cell: plain, detailed and weak scaling (HPC).

Their CSV and JSON are those of pandas. The workbook has a sheet for each division, in it a section
for each availability; it is not compared with the official summarizer's own export, whose
configuration is not part of the installed package and which calls functions that pandas no longer
has.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, time
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.descriptions import CATEGORIES, category
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.commands.results import systems
from mlperf_pkg.commands.results.systems import FIELD, PrivateIds
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.files import refuse_within
from mlperf_pkg.infra.json_values import to_finite
from mlperf_pkg.infra.resources import MissingPackageError, require
from mlperf_pkg.infra.text import escape_cell, visible
from mlperf_pkg.rulebook.load import load_round
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.rulebook.rounds import has_ruleset
from mlperf_pkg.submission.model import SCALINGS

STRONG, WEAK = SCALINGS
STRONG_METRICS = (
    "time_to_train",
    "Energy",
    "GBS",
    "samples_to_converge",
    "RCP",
    "rcp_scaling_factor",
)
WEAK_METRICS = ("number_of_models", "instance_scale", "time_to_train_all")
TableRow = dict[str, systems.Cell]

_USAGES = ("training", "hpc")
_ALIASES = {"mask": "maskrcnn"}

_DECIMALS = 10  # that pandas keeps in JSON
# Outside this range pandas writes 10 significant digits.
_LARGEST = 1e16 - 1
_SMALLEST = 1e-15

_SECTIONS = ("onprem", "cloud", "preview", "research")
_OTHER = "other"
_WIDTH = 18
_LONGEST = 32767  # characters of a cell
_OPTIONS = {
    "in_memory": True,
    "nan_inf_to_errors": True,
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
}


class OfficialTable(Struct, frozen=True):
    """Rows of cells, one per column; None is an empty cell."""

    columns: tuple[str, ...]
    rows: tuple[tuple[systems.Cell, ...], ...]

    def csv(self) -> str:
        """Write as ``DataFrame.to_csv`` does, except that no text is a formula to a spreadsheet."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow(map(_written, row))
        return stream.getvalue()

    def json(self) -> str:
        """Write as ``DataFrame.to_json(orient="records")`` does: numbers have 10 decimals."""
        records = [dict(zip(self.columns, map(_rounded, row), strict=True)) for row in self.rows]
        return json.dumps(records, indent=2, allow_nan=False)


def _written(cell: systems.Cell) -> systems.Cell:
    """Return a cell as CSV has it: no text is a formula."""
    if isinstance(cell, str):
        return escape_cell(cell)
    if _is_absent(cell):
        return None
    return cell


def _sort_key(row: Sequence[systems.Cell]) -> list[tuple[bool, Any]]:
    """Return what sorts rows: absent cells come last."""
    key: list[tuple[bool, Any]] = []
    for cell in row:
        if _is_absent(cell):
            key.append((True, 0))
        else:
            key.append((False, cell))
    return key


def _is_absent(cell: systems.Cell) -> bool:
    return cell is None or cell != cell  # noqa: PLR0124 - NaN


def _rounded(cell: systems.Cell) -> systems.Cell:
    """Return a number as the JSON writer of pandas rounds it."""
    if not isinstance(cell, float):
        return cell
    if not math.isfinite(cell):
        return None
    size = abs(cell)
    if size > _LARGEST or 0 < size < _SMALLEST:
        return float(f"{cell:.{_DECIMALS}g}")
    whole = int(size)
    scaled = (size - whole) * 10.0**_DECIMALS
    fraction = int(scaled)
    over = scaled - fraction
    if over > 0.5 or (over == 0.5 and (fraction == 0 or fraction % 2)):  # noqa: PLR2004 - half
        fraction += 1
    carried, fraction = divmod(fraction, 10**_DECIMALS)
    return math.copysign(float(f"{whole + carried}.{fraction:0{_DECIMALS}}"), cell)


# ---- rows -----------------------------------------------------------------------------------


def summarize(checked: Checked, ids: PrivateIds | None = None) -> Summary:
    """Return the tables of the submissions of a check, with ``ids`` or those in its folders.

    They are what the official summarizer writes after the package checker has written
    ``scaling.json``.

    Raises:
        UserError: there is no submission, the submissions are of several rounds, or the installed
            mlperf-logging does not know the round.
    """
    usage = checked.report.usage
    round_ = checked.report.round
    if not checked.submissions or round_ is None or usage not in _USAGES:
        raise UserError("no official tables, as they need submissions of one round")
    if not has_ruleset(usage, round_):
        reference = checked.report.tool["reference"]
        raise UserError(f"no official tables, as {reference} does not know round {round_}")
    from mlperf_logging.benchmark_meta import get_allowed_benchmarks

    benchmarks = get_allowed_benchmarks(usage, load_round(usage, round_).ruleset)
    summary = Summary(usage, round_, tuple(dict.fromkeys(benchmarks)), ids)
    for system in systems.systems_of(checked):
        summary.add(system)
    return summary


class Summary(Struct):
    """The official tables of one round, with a row per system; ``benchmarks`` are their columns.

    ``left_out`` lists results that are not in the tables, and why: the official summarizer leaves
    out those without a description, and crashes on the others (``crashed``). ``tested`` lists the
    paths of the sets whose convergence it tests before it crashes.
    """

    usage: str
    round: str
    benchmarks: tuple[str, ...]
    ids: PrivateIds | None = None
    left_out: list[str] = []
    tested: list[str] = []
    crashed: bool = False
    _plain: list[TableRow] = []
    _detailed: list[TableRow] = []
    _weak: list[TableRow] = []

    @property
    def plain(self) -> OfficialTable:
        """The times to train in minutes, one column per benchmark."""
        return self._table(self._plain)

    @property
    def detailed(self) -> OfficialTable:
        """The same with batch size, samples to converge, RCP and energy (in joules)."""
        return self._table(self._detailed, STRONG_METRICS)

    @property
    def weak(self) -> OfficialTable | None:
        """The throughput of HPC, None for training."""
        if self.usage != "hpc":
            return None
        return self._table(self._weak, WEAK_METRICS)

    def add(self, system: systems.SubmittedSystem) -> None:
        """Add the row of a system, even without results; HPC has one for each kind of scaling."""
        label = system.folder.place.label
        if system.file is None:
            self.left_out.append(f"{label}: no {system.path}")
            return
        description = system.file.contents
        if description is None:
            self._leave_out(f"{label}: {system.path} is not readable")
            return
        try:
            row = systems.system_cells(description)
        except ValueError as error:
            self._leave_out(f"{label}: {system.path}: {error}")
            return
        row |= systems.url_cells(description["submitter"], system.name, self.usage, self.round)
        if self.ids:
            row[FIELD] = self.ids[system.key]
        else:
            row[FIELD] = str(systems.written_id(system))
        if self.usage != "hpc":
            self._add_strong(row, self._results(system, label))
            return
        if STRONG in system.folder.folders:
            self._add_strong(row, self._results(system, f"{label}/{STRONG}"))
        if WEAK in system.folder.folders:
            results = self._results(system, f"{label}/{WEAK}")
            self._weak.append(row | _cells(results, _throughput))

    def _add_strong(self, row: TableRow, results: Mapping[str, SetResult]) -> None:
        """Add the row of a system to the plain and the detailed table."""
        plain = row.copy()
        for name, result in results.items():
            plain[name] = result.row.official_minutes
        self._plain.append(plain)
        # Benchmarks without results keep empty strings in the RCP columns.
        blank: TableRow = {f"{name}:RCP": "" for name in self.benchmarks}
        self._detailed.append(blank | row | _cells(results, _details))

    def _results(self, system: systems.SubmittedSystem, parent: str) -> dict[str, SetResult]:
        """Return the result sets in a folder by the names of their columns."""
        by_column = {}
        others = []
        for files, result in system.sets:
            label = files.place.label
            if label.rpartition("/")[0] != parent:
                continue
            if result.summarized.scaling_factor is None:
                self._leave_out(f"{label}: scaling.json without a factor")
                continue
            if files.scaling_mode != WEAK and not self.crashed:
                self.tested.append(label)
            name = _ALIASES.get(files.benchmark, files.benchmark)
            if name in self.benchmarks:
                by_column[name] = result
            else:
                others.append(label)
        for label in others:
            self._leave_out(f"{label}: not a benchmark of round {self.round}")
        return by_column

    def _leave_out(self, reason: str) -> None:
        """Leave out what the official summarizer crashes on."""
        self.left_out.append(reason)
        self.crashed = True

    def _table(self, rows: list[TableRow], metrics: Sequence[str] = ()) -> OfficialTable:
        """Return rows sorted by all columns from the left, empty cells last.

        Absent cells are empty; without ``metrics``, there is a column for each benchmark.
        """
        results: list[str] = []
        for name in self.benchmarks:
            results += [f"{name}:{metric}" for metric in metrics]
        if not metrics:
            results += self.benchmarks
        columns = (*systems.COLUMNS, *results, *systems.URLS)
        cells = [tuple(map(row.get, columns)) for row in rows]
        cells.sort(key=_sort_key)
        return OfficialTable(columns, tuple(cells))


def _cells(results: Mapping[str, SetResult], cells_of: Callable[[SetResult], TableRow]) -> TableRow:
    cells = {}
    for name, result in results.items():
        for metric, cell in cells_of(result).items():
            cells[f"{name}:{metric}"] = cell
    return cells


def _details(result: SetResult) -> TableRow:
    row = result.row
    summarized = result.summarized
    return {
        "time_to_train": row.official_minutes,
        "Energy": row.energy_joules,
        "GBS": summarized.batch_size,
        "samples_to_converge": summarized.to_converge,
        "RCP": summarized.rcp,
        "rcp_scaling_factor": summarized.scaling_factor,
    }


def _throughput(result: SetResult) -> TableRow:
    weak = result.summarized.weak
    if weak is None:
        return {}
    scale = None
    if weak.instance_scale is not None:
        scale = float(weak.instance_scale)
    return {
        "number_of_models": float(weak.models),
        "instance_scale": scale,
        "time_to_train_all": weak.minutes,
    }


# ---- files ----------------------------------------------------------------------------------


_NAMES = ("summary", "summary_detailed", "summary_weak_scaling")
OFFICIAL_FILES = (*(f"{name}.{end}" for name in _NAMES for end in ("csv", "json")), "summary.xlsx")


def refuse_tables(folder: Path, inputs: Sequence[str], *, force: bool) -> None:
    """Check before the work starts that the tables can be written into ``folder``.

    Raises:
        UserError: tables exist already and ``force`` is not set, or it is inside an input.
    """
    refuse_within(folder, inputs)
    existing = sorted(folder.glob("summary*"))
    if existing and not force:
        raise UserError(f"{existing[0]} exists already; --force overwrites it")


def official_files(
    checked: Checked, ids: PrivateIds | None = None
) -> tuple[dict[str, str | bytes], list[str]]:
    """Return the files of the tables by their names, and notes on omitted results.

    Raises:
        UserError: this check has no such tables.
    """
    summary = summarize(checked, ids)
    files: dict[str, str | bytes] = {}
    for name, table in zip(_NAMES, (summary.plain, summary.detailed, summary.weak), strict=True):
        if table is not None:
            files[f"{name}.csv"] = table.csv()
            files[f"{name}.json"] = table.json()
    notes = []
    try:
        files["summary.xlsx"] = official_workbook(summary)
    except MissingPackageError as error:
        notes.append(f"summary.xlsx was not written: {error}")
    notes += [f"not in the tables: {reason}" for reason in summary.left_out]
    return files, notes


# ---- workbook -------------------------------------------------------------------------------


def official_workbook(summary: Summary) -> bytes:
    """Return the plain table and that of weak scaling as XLSX; the bytes are reproducible.

    Rows are numbered across all sheets, as ``2.0-0001``.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    numbers = count()
    with book(summary.usage, summary.round) as file:
        for title, table in _sheets(summary):
            sheet = file.contents.add_worksheet(title)
            sheet.freeze_panes(1, 1)
            sheet.set_column(0, len(table.columns), _WIDTH)
            sections = []
            for name, rows in _sections(table):
                numbered = [(f"{summary.round}-{next(numbers):04}", *row) for row in rows]
                sections.append((name, numbered))
            write_sections(file, sheet, ("ID", *table.columns), sections)
    return file.stream.getvalue()


class Book(NamedTuple):
    """A workbook of XlsxWriter, its formats, and the stream that has its bytes at the end."""

    contents: Any
    head: Any
    title: Any
    stream: io.BytesIO


@contextmanager
def book(usage: str, round_: str) -> Iterator[Book]:
    """Provide a workbook with reproducible bytes.

    Raises:
        MissingPackageError: XlsxWriter is not installed.
    """
    xlsxwriter = require("xlsxwriter", "xlsx", "a workbook")
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, _OPTIONS) as contents:
        # A fixed creation time, so that the bytes are reproducible.
        day = load_round(usage, round_).submission_date
        contents.set_properties({"created": datetime.combine(day, time(), UTC)})
        head = contents.add_format({"bold": True, "border": 1, "text_wrap": True})
        title = contents.add_format({"bold": True, "bg_color": "#C0C0C0"})
        yield Book(contents, head, title, stream)


def write_sections(
    book: Book,
    sheet: Any,
    columns: Sequence[str],
    sections: Iterable[tuple[str, Iterable[Sequence[systems.Cell]]]],
    formats: Mapping[str, Any] | None = None,
) -> None:
    """Write the columns, and rows below the titles of their sections; some in a format."""
    formats = formats or {}
    sheet.write_row(0, 0, columns, book.head)
    lines = count(1)
    for title, rows in sections:
        line = next(lines)
        sheet.merge_range(line, 0, line, len(columns) - 1, "", book.title)
        sheet.write_string(line, 0, fitting(title), book.title)
        for row in rows:
            line = next(lines)
            for place, (column, cell) in enumerate(zip(columns, row, strict=True)):
                sheet.write(line, place, fitting(cell), formats.get(column))


def fitting(cell: systems.Cell) -> systems.Cell:
    """Return a cell that the format can hold; its numbers are doubles."""
    if isinstance(cell, int) and to_finite(cell) is None:
        cell = str(cell)
    if isinstance(cell, str):
        return visible(cell)[:_LONGEST]
    return cell


def _sheets(summary: Summary) -> Iterator[tuple[str, OfficialTable]]:
    """Yield a sheet per division, even an empty one, and a sheet for unknown divisions."""
    for suffix, table in (("", summary.plain), (" weak scaling", summary.weak)):
        if table is None:
            continue
        by_division: dict[str, list[tuple[systems.Cell, ...]]] = {
            division: [] for division in (*DIVISIONS, _OTHER)
        }
        for row in table.rows:
            division = str(row[0])
            if division not in DIVISIONS:
                division = _OTHER
            by_division[division].append(row)
        for division, rows in by_division.items():
            if rows or (division != _OTHER and not suffix):
                yield division + suffix, OfficialTable(table.columns, tuple(rows))


def _sections(table: OfficialTable) -> Iterator[tuple[str, Sequence[tuple[systems.Cell, ...]]]]:
    column = table.columns.index("availability")
    sections: dict[str, list[tuple[systems.Cell, ...]]] = {
        CATEGORIES[name]: [] for name in _SECTIONS
    }
    for row in table.rows:
        availability = str(row[column] or "no availability")
        title = CATEGORIES.get(category(availability) or "", availability)
        sections.setdefault(title, []).append(row)
    for title, rows in sections.items():
        if rows:
            yield title, rows
