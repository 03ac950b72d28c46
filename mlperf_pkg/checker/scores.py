"""The result sets of a check, each with its runs."""

from __future__ import annotations

from msgspec import Struct

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, folder


class ScoredSet(Struct, frozen=True):
    """A result set and its runs."""

    row: ResultSetRow
    runs: tuple[RunRow, ...]


class Scores(Struct, frozen=True):
    """All result sets of a report, each with its runs."""

    report: Report
    sets: tuple[ScoredSet, ...]


def scores(checked: Checked) -> Scores:
    """Return the result sets of a check with their runs.

    A set of a submission has a folder of its own. One folder may hold loose logs of several sets;
    the contents of the logs then tell them apart.
    """
    platforms = {run.path: run.text("platform") or None for run in checked.runs}
    by_folder: dict[str, list[RunRow]] = {}
    for run in checked.report.runs:
        by_folder.setdefault(folder(run.path) or ".", []).append(run)

    def belongs(run: RunRow, row: ResultSetRow) -> bool:
        of_run = (platforms[run.path], run.benchmark, run.division, run.round)
        is_loose = row.submitter is None
        return not is_loose or of_run == (row.system, row.benchmark, row.division, row.round)

    sets = (
        ScoredSet(row, tuple(run for run in by_folder.get(row.path, ()) if belongs(run, row)))
        for row in checked.report.result_sets
    )
    return Scores(checked.report, tuple(sets))
