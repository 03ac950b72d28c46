"""The selection of each result set of a check."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from mlperf_pkg.checker.values import Checked, scores
from mlperf_pkg.results.report import Report, ResultSetRow
from mlperf_pkg.results.scoring import Selection, select
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.run.model import Run


class State(StrEnum):
    """The outcome for a result set."""

    SELECTED = "selected"
    NOTHING_TO_SELECT = "nothing_to_select"
    INVALID = "invalid"
    NOT_CHECKED = "not_checked"


class SelectedSet(Struct, frozen=True):
    """A result set and the selection of its runs.

    ``selection`` is None where there is nothing to choose: the rulebook does not cover the
    benchmark, or all models of weak scaling count.
    """

    row: ResultSetRow
    runs: tuple[Run, ...]
    selection: Selection | None

    @property
    def state(self) -> State:
        """The outcome."""
        if self.row.runs_required is None:
            return State.NOT_CHECKED
        if self.selection is None:
            valid = self.row.score_minutes is not None
        else:
            valid = bool(self.selection.chosen)
        if not valid:
            return State.INVALID
        more = self.selection is not None and len(self.selection.choice.windows) > 1
        return State.SELECTED if more else State.NOTHING_TO_SELECT

    @property
    def reason(self) -> str:
        """Why there is no selection, or a remark on it."""
        if self.row.runs_required is None:
            return f"not checked: {self.row.score_note}"
        if self.selection is None:
            return self.row.score_note or "nothing to select: all models of weak scaling count"
        if self.state is State.NOTHING_TO_SELECT:
            return f"nothing to select: {len(self.runs)} of {self.row.runs_required} runs"
        return self.selection.choice.reason

    @property
    def ordered_runs(self) -> tuple[Run, ...]:
        """All runs, by start where there is a selection."""
        return self.selection.runs if self.selection else self.runs

    @property
    def chosen(self) -> tuple[Run, ...]:
        """The runs to submit."""
        if self.selection is not None:
            return self.selection.chosen
        return self.runs if self.state is State.NOTHING_TO_SELECT else ()


class Selections(Struct, frozen=True):
    """All result sets of a report, each with its selection.

    ``left_out`` are the paths of logs that name no benchmark and so belong to no result set. A run
    that failed so early is in no window, although by the rules it counts.
    """

    report: Report
    sets: tuple[SelectedSet, ...]
    left_out: tuple[str, ...]


def selections(checked: Checked) -> Selections:
    """Return the selection of each result set of a check."""
    by_path = {run.path: run for run in checked.runs}
    sets = tuple(
        _selected(scored.row, tuple(by_path[run.path] for run in scored.runs))
        for scored in scores(checked).sets
    )
    considered = {run.path for selected in sets for run in selected.runs}
    left_out = tuple(path for path in by_path if path not in considered)
    return Selections(checked.report, sets, left_out)


def _selected(row: ResultSetRow, runs: tuple[Run, ...]) -> SelectedSet:
    rules = load_benchmark(runs[0].usage, row.round, row.benchmark) if runs else None
    if rules is None or row.scaling == "weak":
        return SelectedSet(row, runs, None)
    return SelectedSet(row, runs, select(runs, rules.runs))
