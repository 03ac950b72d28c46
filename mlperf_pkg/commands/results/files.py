"""The files of a publication: CSV, JSON, a workbook, a page, and the official tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.results.ids import FIELD, PrivateIds, read_ids
from mlperf_pkg.commands.results.official import TableFolder
from mlperf_pkg.commands.results.page import page
from mlperf_pkg.commands.results.publication import (
    FORMAT,
    Publication,
    publication,
    systems_with_results,
)
from mlperf_pkg.commands.results.tables import Kind, Table, tables
from mlperf_pkg.commands.results.workbook import workbook
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.resources import MissingPackageError
from mlperf_pkg.render.table import csv_text
from mlperf_pkg.render.tables import json_text
from mlperf_pkg.results.report import as_json
from mlperf_pkg.submission.model import Submission

IDS = "privateid.json"
OFFICIAL = "official"

_CSV = {Kind.TIME: "results.csv", Kind.WEAK: "weak_scaling.csv", Kind.ENERGY: "energy.csv"}
_FILES = (*_CSV.values(), "scores.csv", "results.json", "results.xlsx", "results.html")
_OF_SCORE = {  # column of scores.csv: the field of the score
    "benchmark": "benchmark",
    "scaling": "scaling",
    "minutes": "published_minutes",
    "rank": "rank",
    "of": "of",
    "exact_minutes": "minutes",
    "energy_joules": "energy_joules",
    "number_of_models": "number_of_models",
    "instance_scale": "instance_scale",
    "reason": "reason",
    "path": "path",
    "official": "official",
}


class Written(Struct, frozen=True):
    """A publication that was written: its files, and the numbers of its private ids.

    ``withdrawn`` is the number of ids in the file whose rows are not in the round.
    """

    publication: Publication
    tables: tuple[Table, ...]
    files: tuple[str, ...]
    ids: Path
    new: int
    withdrawn: int


class ResultsFolder(Struct, frozen=True):
    """The folder of a publication, and its file of private ids.

    Existing files are overwritten only with ``force``; the file of ids is always extended.
    """

    path: Path
    ids: Path
    force: bool

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
        files = [self.path / name for name in _FILES]
        if self.ids in files:
            raise UserError(f"{self.ids}: a file of the summary; expected another file for the ids")
        existing = [file for file in files if file.exists()]
        if existing and not self.force:
            raise UserError(f"{existing[0]}: exists already; --force overwrites it")
        self._official.refuse_early(inputs)
        return read_ids(self.ids)

    @property
    def _official(self) -> TableFolder:
        return TableFolder(self.path / OFFICIAL, self.force)

    def write(
        self, argument: str, checked: Checked, ids: PrivateIds, verdict: Basis = Basis.OFFICIAL
    ) -> Written:
        """Write the private ids, then the summary of ``argument``: all files of the folder or none.

        ``verdict`` is as for ``publication``.

        Raises:
            UserError: the check has no submission or several rounds, or a file cannot be written.
        """
        systems = systems_with_results(argument, checked)
        extended = ids.extended(system.candidate for system in systems)
        result = publication(checked, systems, extended, verdict)
        write_together(self.path, {}, replace=self.force)  # the folder, which may receive the ids
        if extended.entries != ids.entries or not ids.exists:
            extended.write()
        result = self._with_official(result, checked)
        files, notes = file_contents(result)
        write_together(self.path, files, replace=self.force)
        for name in set(_FILES) - files.keys():
            (self.path / name).unlink(missing_ok=True)  # of an earlier summary
        official = sorted(path.name for path in (self.path / OFFICIAL).glob("summary*"))
        keys = {row.key for row in result.rows}
        return Written(
            publication=replace(result, notes=(*result.notes, *notes)),
            tables=tuple(tables(result)),
            files=(*files, *(f"{OFFICIAL}/{name}" for name in official)),
            ids=self.ids,
            new=len(extended.entries) - len(ids.entries),
            withdrawn=len(extended.entries.keys() - keys),
        )

    def _with_official(self, result: Publication, checked: Checked) -> Publication:
        """Write the tables of the official summarizer; return the publication with their gaps."""
        try:
            return replace(result, official_gaps=tuple(self._official.write(checked)))
        except UserError as error:
            return replace(result, missing=(*result.missing, f"{OFFICIAL}: {error}"))


def with_private_ids(argument: str, checked: Checked, ids: PrivateIds) -> Checked:
    """Add the systems of a check to a file of ids; return the check with these ids in its folders.

    Raises:
        UserError: the check has no submission or several rounds, or the file cannot be written.
    """
    systems = systems_with_results(argument, checked)
    extended = ids.extended(system.candidate for system in systems)
    if extended.entries != ids.entries or not ids.exists:
        extended.write()
    texts = {item.folder.place.label: json.dumps({FIELD: extended[item.key]}) for item in systems}

    def named(submission: Submission) -> Submission:
        folders = (replace(f, private_id=texts[f.place.label]) for f in submission.tested)
        return replace(submission, tested=tuple(folders))

    inputs = (replace(i, submissions=tuple(map(named, i.submissions))) for i in checked.inputs)
    return replace(checked, inputs=tuple(inputs))


def file_contents(result: Publication) -> tuple[dict[str, str | bytes], list[str]]:
    """Return the files by name, and notes on those that need a package that is not installed."""
    of_kind: dict[Kind, list[Table]] = {Kind.TIME: []}
    for table in tables(result):
        of_kind.setdefault(table.kind, []).append(table)
    files: dict[str, str | bytes] = {
        _CSV[kind]: _tables_csv(kind, group) for kind, group in of_kind.items()
    }
    files["scores.csv"] = _scores_csv(result)
    files["results.json"] = results_json(result)
    makers: dict[str, Callable[[Publication], str | bytes]] = {
        "results.xlsx": workbook,
        "results.html": page,
    }
    notes = []
    for name, make in makers.items():
        try:
            files[name] = make(result)
        except MissingPackageError as error:
            notes.append(f"no {name}: {error}")
    return files, notes


def _tables_csv(kind: Kind, group: Sequence[Table]) -> str:
    """Return the tables of a kind as one table; its first columns are division and category."""
    columns = group[0].columns if group else Table(kind, "", "", (), {}).columns
    rows = ((table.division, table.category, *cells) for table in group for cells in table.cells())
    return csv_text(("division", "category", *columns), rows)


def _scores_csv(result: Publication) -> str:
    rows = {row.key: row for row in result.rows}
    of_row = ("id", "submitter", "system", "division", "category")
    cells = (
        [
            *(getattr(rows[score.row], field) for field in of_row),
            *(getattr(score, field) for field in _OF_SCORE.values()),
            " ".join(score.waived),
            score.remarks,
        ]
        for score in result.scores
    )
    return csv_text((*of_row, *_OF_SCORE, "waived", "remarks"), cells)


def results_json(result: Publication) -> str:
    """Return all values as JSON, in which the tables are rows of cells by column."""
    fields: dict[str, Any] = as_json(result)
    shown = [
        {
            "kind": table.kind.value,
            "division": table.division,
            "category": table.category,
            "rows": [dict(zip(table.columns, cells, strict=True)) for cells in table.cells()],
        }
        for table in tables(result)
    ]
    return json_text({"format": FORMAT, **fields, "tables": as_json(shown)})
