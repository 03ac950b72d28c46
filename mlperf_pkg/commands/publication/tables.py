"""The tables of a publication: by division and category, and energy in tables of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import product

from msgspec import Struct

from mlperf_pkg.checks.descriptions import CATEGORIES
from mlperf_pkg.commands.publication.model import (
    UNDIVIDED,
    UNKNOWN,
    Publication,
    Row,
    Score,
)
from mlperf_pkg.commands.publication.ranks import rounded
from mlperf_pkg.rulebook.model import DIVISIONS

Cell = str | int | float | None

HEAD = {  # column: the field of the row
    "id": "id",
    "submitter": "submitter",
    "system": "system",
    "processor": "processor",
    "processors": "processors",
    "accelerator": "accelerator",
    "accelerators": "accelerators",
    "software": "software",
}
TAIL = {"details": "details_url", "code": "code_url", "notes": "notes", "remarks": "remarks"}
COUNTS = ("processors", "accelerators")


class Kind(StrEnum):
    """The contents of a table: minutes, energy, or the throughput of weak scaling (HPC)."""

    TIME = "time to train"
    WEAK = "weak scaling"
    ENERGY = "energy"


UNITS = {
    Kind.TIME: "minutes",
    Kind.WEAK: "models, accelerators per model, and minutes until all are trained",
    Kind.ENERGY: "joules",
}


class Table(Struct, frozen=True):
    """One table: ``scores`` are its columns with scores, each with the cells of its rows."""

    kind: Kind
    division: str
    category: str
    rows: tuple[Row, ...]
    scores: Mapping[str, tuple[Cell, ...]]

    @property
    def title(self) -> str:
        """The heading: division and category, and kinds other than time."""
        kind = "" if self.kind is Kind.TIME else f", {self.kind.value}"
        return f"{self.division.capitalize()}: {self.category}{kind}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns: those of the system, the scores, and links and notes."""
        return (*HEAD, *self.scores, *TAIL)

    def cells(self) -> Iterator[list[Cell]]:
        """Yield the cells of each row; None is an empty cell."""
        for index, row in enumerate(self.rows):
            head, tail = ([getattr(row, field) for field in part.values()] for part in (HEAD, TAIL))
            yield [*head, *(column[index] for column in self.scores.values()), *tail]


def tables(publication: Publication) -> list[Table]:
    """Return the tables in the order of publication, without rows that have no score.

    All tables of a kind have the same columns: the benchmarks of the round. The cell of a result
    set without a valid score is empty, as in published tables.
    """
    return [table for kind in Kind for table in _tables(kind, publication)]


def _tables(kind: Kind, publication: Publication) -> Iterator[Table]:
    scores = {
        (score.row, score.benchmark): score for score in publication.scores if _is_in(kind, score)
    }
    keys = {key for key, _ in scores}
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(publication.rows, key=_order):
        if row.key in keys:
            groups.setdefault((row.division, row.category), []).append(row)
    for division, category in product((*DIVISIONS, UNDIVIDED), (*CATEGORIES.values(), UNKNOWN)):
        if rows := groups.get((division, category)):
            columns = _scores(kind, publication.benchmarks, rows, scores)
            yield Table(kind, division, category, tuple(rows), columns)


def _is_in(kind: Kind, score: Score) -> bool:
    if kind is Kind.ENERGY and score.energy_joules is None:
        return False
    return not score.reason and (score.scaling == "weak") == (kind is Kind.WEAK)


def _order(row: Row) -> tuple[str, str, int, str]:
    return (row.submitter.lower(), row.system.lower(), row.accelerators or 0, row.key)


def _scores(
    kind: Kind,
    benchmarks: Sequence[str],
    rows: Sequence[Row],
    scores: Mapping[tuple[str, str], Score],
) -> dict[str, tuple[Cell, ...]]:
    return {
        f"{benchmark}{suffix}": tuple(
            value_of(score) if (score := scores.get((row.key, benchmark))) else None for row in rows
        )
        for benchmark in benchmarks
        for suffix, value_of in _VALUES[kind].items()
    }


_VALUES: Mapping[Kind, Mapping[str, Callable[[Score], Cell]]] = {
    Kind.TIME: {"": lambda score: score.published_minutes},
    Kind.WEAK: {
        ": models": lambda score: score.number_of_models,
        ": accelerators": lambda score: score.instance_scale,
        ": minutes": lambda score: score.published_minutes,
    },
    Kind.ENERGY: {"": lambda score: rounded(score.energy_joules)},
}
