"""The result sets of a check, each with its runs."""

from __future__ import annotations

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow


class Rank(Struct, frozen=True):
    """The rank of a score, 1 for the fastest, among ``of`` that include it."""

    rank: int
    of: int


class Standing(Struct, frozen=True):
    """The rank of a score among the published ones of a round, by their normalised scores.

    They are of the same benchmark and division, on as many accelerators; ``of_model`` is the rank
    among those on accelerators of the same model, None if there is no other.
    """

    round: str
    accelerators: int
    overall: Rank
    accelerator_model: str
    of_model: Rank | None


class ScoredSet(Struct, frozen=True):
    """A result set, its runs, and its standing among published results, None if unknown."""

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
