"""The packages of a review: for each submitter, a review with nothing but what concerns it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.commands.review.files import Review, files_of
from mlperf_pkg.commands.review.section import Section, table_of_cells
from mlperf_pkg.infra.text import unused
from mlperf_pkg.render.table import Table, records

_WHOLE = ("calendar",)  # sections that concern all
_LEFT_OUT = ("findings",)  # these count those of all submitters; the checklists have them, too
_TABLES = {"hyperparameters": ("outliers", "differing-runs")}  # the others compare all submitters


def packages_of(review: Review) -> dict[str, str]:
    """Return the files of all packages, each in a folder that is named after its submitter."""
    files: dict[str, str] = {}
    folders: list[str] = []
    for submitter in review.submitters:
        stem = re.sub(r"[^\w+-]+", "-", submitter).strip("-") or "submitter"
        folder = unused(stem, folders)
        folders.append(folder)
        package = _Names.of(review, submitter).package(review)
        files |= {f"{folder}/{name}": text for name, text in files_of(package).items()}
    return files


class _Names(Struct, frozen=True):
    """The names that concern a submitter: its ``own``, and submissions that it ``reviews``."""

    submitter: str
    own: frozenset[str]
    others: tuple[str, ...]
    reviews: frozenset[str]

    @classmethod
    def of(cls, review: Review, submitter: str) -> _Names:
        own = {submitter, *review.submitters[submitter]}
        every = {n for name, folders in review.submitters.items() for n in (name, *folders)}
        pairs = _rows(review, "assignments", "pairs")
        reviews = {
            folder
            for row in pairs
            if row["Reviewer"] == submitter
            for folder in str(row["Folders"]).split(", ")
        }
        return cls(submitter, frozenset(own), tuple(every - own), frozenset(reviews))

    def package(self, review: Review) -> Review:
        """Return the review without what concerns others alone."""
        sections = [self._section(s) for s in review.sections if s.name not in _LEFT_OUT]
        package = replace(
            review,
            title=f"{review.title}: {self.submitter}",
            problems=[text for text in review.problems if _names(text, self.own)],
            submitters={self.submitter: review.submitters[self.submitter]},
            sections=[section for section in sections if section.tables],
        )
        row = next(iter(_rows(package, "submitters", "table")), {})
        counts = {
            "submitters": 1,
            "result_sets": row.get("Results", 0),
            "with_errors": row.get("With errors", 0),
            "objections": sum(len(_rows(package, "objections", n)) for n in ("states", "errors")),
        }
        return replace(package, head={**review.head, "counts": counts})

    def _section(self, section: Section) -> Section:
        if section.name in _WHOLE:
            return section
        names = _TABLES.get(section.name, tuple(section.tables))
        made = {name: self._table(section, name) for name in names if name in section.tables}
        text = tuple(text for text in section.text if not _names(text, self.others))
        tables = {name: table for name, table in made.items() if table.rows}
        return replace(section, text=text, tables=tables, summary=())

    def _table(self, section: Section, name: str) -> Table:
        table = section.tables[name]
        if section.checks:  # the checklist of a submission
            return table if name in self.own | self.reviews else replace(table, groups=[])
        cells = [list(table.values(row)) for row in table.rows]
        kept = [number for number, row in enumerate(cells) if any(map(self._concerns, row))]
        marked = {(kept.index(row), place) for row, place in table.marked if row in kept}
        return table_of_cells(
            [column.heading for _, column in table.keyed],
            [[self._own_part(cell) for cell in cells[number]] for number in kept],
            title=table.title,
            marked=frozenset(marked),
            note="" if _names(table.note, self.others) else table.note,
        )

    def _concerns(self, cell: Any) -> bool:
        """Return whether a cell is a name of the submitter, a list with one, or a path below it."""
        parts = cell.split(", ") if isinstance(cell, str) else []
        return any(part in self.own or part.split("/")[0] in self.own for part in parts)

    def _own_part(self, cell: Any) -> Any:
        """Return a cell without the other names of a list."""
        parts = cell.split(", ") if isinstance(cell, str) else []
        return ", ".join(filter(self.own.__contains__, parts)) or cell


def _names(text: str, names: Iterable[str]) -> bool:
    """Return whether one of these names is in the text."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def _rows(review: Review, section: str, table: str) -> Sequence[dict[str, Any]]:
    tables = (s.tables.get(table) for s in review.sections if s.name == section)
    return next((records(rows) for rows in tables if rows), [])
