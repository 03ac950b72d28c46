"""The result sets of a check, each with its runs."""

from __future__ import annotations

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow


class Rank(Struct, frozen=True):
    """The rank of a score, 1 for the fastest, among ``of`` scores including it."""

    rank: int
    of: int


class Standing(Struct, frozen=True):
    """The rank of a score among the normalised scores of a published round.

    They have the same benchmark, division and number of accelerators; ``of_model`` is the rank
    among those on the same model of accelerator, None if there is no other.
    """

    round: str
    accelerators: int
    overall: Rank
    accelerator_model: str
    of_model: Rank | None


class ScoredSet(Struct, frozen=True):
    """A result set, its runs, and its standing among published results (None if unknown)."""

    row: ResultSetRow
    runs: tuple[RunRow, ...]
    published: Standing | None = None


class Scores(Struct, frozen=True):
    """All result sets of a report, each with its runs."""

    report: Report
    sets: tuple[ScoredSet, ...]


def scores(checked: Checked) -> Scores:
    """Return the result sets of a check with their runs."""
    runs = {run.path: run for run in checked.report.runs}
    sets = (
        ScoredSet(row, tuple(runs[path] for path in result.runs))
        for row, result in zip(checked.report.result_sets, checked.sets, strict=True)
    )
    return Scores(checked.report, tuple(sets))
