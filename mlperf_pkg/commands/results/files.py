"""The files of a publication: tables, ids, and the official tables; and what is printed of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from textwrap import shorten, wrap

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.commands.results.ids import FIELD, PrivateIds, read_ids
from mlperf_pkg.commands.results.official import TableFolder
from mlperf_pkg.commands.results.publication import (
    Publication,
    publication,
    systems_with_results,
)
from mlperf_pkg.commands.results.tables import (
    KINDS,
    Section,
    page,
    results_json,
    scores_csv,
    tables,
    tables_csv,
    workbook,
)
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis
from mlperf_pkg.infra.files import refuse_within, write_together
from mlperf_pkg.infra.resources import MissingPackageError
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render.table import PLAIN, Column, table_of
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.results.wording import counted
from mlperf_pkg.submission.model import Submission

IDS = "privateid.json"
OFFICIAL = "official"

_MADE: Mapping[str, Callable[[Publication], str | bytes]] = {
    "scores.csv": scores_csv,
    "results.json": results_json,
    "results.xlsx": workbook,
    "results.html": page,
}
_FILES = (*(kind.file for kind in KINDS), *_MADE)

_WIDTH = 80
_SHOWN_MISSING, _SHOWN_NOTES = 5, 2  # of two lines at most
_COLUMNS = (
    Column("Table", whole=True, of=attrgetter("title")),
    Column("Systems", 7, numbers=True, of=lambda section: len(section.rows)),
    Column("Scores", 6, numbers=True, of=attrgetter("number")),
)


class Written(Struct, frozen=True):
    """A publication that was written: its files, and the numbers of its private ids.

    ``withdrawn`` is the number of ids in the file whose rows are not in the round.
    """

    publication: Publication
    tables: tuple[Section, ...]
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


def summary(written: Written, folder: Path, view: View) -> str:
    """Return the tables and files that were written, and the missing parts: about 30 lines."""
    result = written.publication
    terminal = Terminal(view)
    numbers = (
        counted(len(result.submitters), "submitter"),
        counted(len({score.row for score in result.scores}), "system"),
        counted(len(result.scores), "result set"),
        f"{len(result.scores) - len(result.without_score)} with a score",
    )
    terminal.paragraph((f"{result.title}: {', '.join(numbers)}", PLAIN))
    terminal.line()
    if written.tables:
        terminal.table(table_of(_COLUMNS, written.tables))
    for line in (*_written(written, folder), *_remarks(written, folder)):
        terminal.line((line, PLAIN))
    return terminal.text()


def _written(written: Written, folder: Path) -> Iterator[str]:
    yield from _folded(f"In {folder}: {', '.join(written.files)}")
    more = [f"{written.new} new"] if written.new else []
    more += [f"{written.withdrawn} of withdrawn systems"] if written.withdrawn else []
    in_brackets = f" ({', '.join(more)})" if more else ""
    rows = counted(len(written.publication.rows), "system")
    yield from _folded(f"Private ids of {rows} in {written.ids}{in_brackets}")


def _remarks(written: Written, folder: Path) -> Iterator[str]:
    result = written.publication
    file = folder / "results.json"
    notes = list(result.notes)
    if gaps := len(result.official_gaps):
        notes.append(f"{OFFICIAL}: {counted(gaps, 'gap')} in the official tables: see {file}")
    yield from _listed("Missing", result.missing, _SHOWN_MISSING, file)
    yield from _listed("Notes", notes, _SHOWN_NOTES, file)


def _listed(title: str, remarks: Sequence[str], limit: int, file: Path) -> Iterator[str]:
    if remarks:
        yield from ("", f"{title} ({len(remarks)}):")
    for remark in remarks[:limit]:
        yield from _folded(f"  {shorten(visible(remark), 2 * _WIDTH - 8, placeholder='...')}")
    if len(remarks) > limit:
        yield from _folded(f"  and {len(remarks) - limit} more: see {file}")


def _folded(text: str) -> list[str]:
    return wrap(visible(text), _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
