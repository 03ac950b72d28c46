"""The result sets of a check, each with its runs."""

from __future__ import annotations

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow


class ScoredSet(Struct, frozen=True):
    """A result set and its runs."""

    row: ResultSetRow
    runs: tuple[RunRow, ...]


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
