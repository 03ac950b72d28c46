"""Selections of runs: every window, the median, and what to submit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from mlperf_pkg.checker.scores import scores
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import headings, tables
from mlperf_pkg.render.markdown import section
from mlperf_pkg.render.terminal import HEADING, PLAIN, Column, Group, Span, Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, as_json, name
from mlperf_pkg.results.selection import Selection, Window, select
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.run.model import Run

FORMAT = "mlperf-pkg/selection/1"

_COLUMNS = (
    Column("Runs by start, windows"),
    Column("Minutes", 9, numbers=True),
    Column("Status", 46),
)
_TITLES = {"Runs by start, windows": False, "Minutes": True, "Status": False}
_NAMED = ("submitter", "system", "benchmark", "division", "round")
_INFINITE = "infinite"


class State(StrEnum):
    """What came of a result set."""

    SELECTED = "selected"
    NOTHING_TO_SELECT = "nothing_to_select"
    INVALID = "invalid"
    NOT_CHECKED = "not_checked"


class SelectedSet(Struct, frozen=True):
    """A result set and the selection of its runs.

    ``selection`` is None where none is to be made: the rulebook does not cover the benchmark, or
    all models of weak scaling count.
    """

    row: ResultSetRow
    runs: tuple[Run, ...]
    selection: Selection | None

    @property
    def state(self) -> State:
        """What came of it."""
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
        """Why there is no selection, or what else to know of it."""
        if self.row.runs_required is None:
            return f"not checked: no rules of {self.row.benchmark} in round {self.row.round}"
        if self.selection is None:
            return self.row.score_note or "nothing to select: all models of weak scaling count"
        if self.state is State.NOTHING_TO_SELECT:
            return f"nothing to select: {len(self.runs)} of {self.row.runs_required} runs"
        return self.selection.choice.reason

    @property
    def chosen(self) -> tuple[Run, ...]:
        """The runs to submit."""
        if self.selection is not None:
            return self.selection.chosen
        return self.runs if self.state is State.NOTHING_TO_SELECT else ()


class Selections(Struct, frozen=True):
    """All result sets of a report, each with its selection.

    ``left_out`` are the logs of no set, as they name no benchmark: a run that failed early is in
    no window, though by the rules it counts.
    """

    report: Report
    sets: tuple[SelectedSet, ...]
    left_out: tuple[str, ...]


def selections(checked: Checked) -> Selections:
    """The selection of each result set of a check."""
    by_path = {run.path: run for run in checked.runs}
    sets = tuple(
        _selected(each.row, tuple(by_path[run.path] for run in each.runs))
        for each in scores(checked).sets
    )
    considered = {run.path for each in sets for run in each.runs}
    left_out = tuple(path for path in by_path if path not in considered)
    return Selections(checked.report, sets, left_out)


def _selected(row: ResultSetRow, runs: tuple[Run, ...]) -> SelectedSet:
    rules = load_benchmark(runs[0].usage, row.round, row.benchmark) if runs else None
    if rules is None or row.scaling == "weak":
        return SelectedSet(row, runs, None)
    return SelectedSet(row, runs, select(runs, rules.runs))


def text(given: Selections, view: View) -> str:
    """For a terminal or a pipe."""
    terminal = Terminal(view)
    if given.sets:
        terminal.table(_COLUMNS, [_group(each, given.report) for each in given.sets], apart=True)
    else:
        terminal.line(("no result set: no log names its benchmark", PLAIN))
    for line in _ending(given):
        terminal.paragraph((line, PLAIN))
    return terminal.text()


def _ending(given: Selections) -> Iterator[str]:
    if given.left_out:
        number = wording.counted(len(given.left_out), "log")
        yield f"{number} in no window, for want of a benchmark's name: {', '.join(given.left_out)}"
    yield headings.round_in_words(given.report)


def _group(each: SelectedSet, report: Report) -> Group:
    title = f"{each.row.benchmark}: {headings.system_title(each.row, report)}"
    rows = [*_runs(each), *_windows(each)]
    return Group(title, rows, list(_remarks(each)))


def _runs(each: SelectedSet) -> Iterator[list[Span]]:
    for number, run in enumerate(each.selection.runs if each.selection else each.runs, 1):
        cells = (f"{number}  {name(run.path)}", wording.minutes(run.minutes), _outcome(run))
        yield [(cell, PLAIN) for cell in cells]


def _outcome(run: Run) -> str:
    status = run.status or "no run_stop"
    failed = not run.converged or run.minutes is None
    return f"{status}, counts as infinite" if failed else status


def _windows(each: SelectedSet) -> Iterator[list[Span]]:
    choice = each.selection.choice if each.selection else None
    if choice is None or each.state is State.NOTHING_TO_SELECT:
        return
    for window in choice.windows:
        taken = window is choice.chosen
        cells = (_numbers(window), _minutes(window.minutes), "chosen" if taken else window.reason)
        yield [(cell, HEADING if taken else PLAIN) for cell in cells]
    if choice.median is not None:
        yield [("median", PLAIN), (_minutes(choice.median), PLAIN), ("", PLAIN)]


def _numbers(window: Window) -> str:
    return f"runs {window.first + 1} to {window.last + 1}"


def _minutes(value: float) -> str:
    return wording.minutes(value) if math.isfinite(value) else _INFINITE


def _remarks(each: SelectedSet) -> Iterator[str]:
    if each.state is State.INVALID:
        yield f"no valid result: {each.reason}"
    elif each.reason:
        yield each.reason
    if each.state is State.SELECTED:
        yield f"submit {', '.join(name(run.path) for run in each.chosen)}"
    unknown = sum(run.start_ms is None for run in each.runs)
    if each.selection and unknown:
        yield f"{wording.counted(unknown, 'run')} without run_start, taken to be last"


def json(given: Selections, _: View) -> str:
    """For programs: each result set with its runs by start, its windows and the chosen files."""
    report: dict[str, Any] = as_json(given.report)
    head = {name: report[name] for name in ("tool", "usage", "round", "round_reason")}
    sets = [_as_json(each) for each in given.sets]
    left_out = {"left_out": given.left_out}
    return tables.json_text({"format": FORMAT, **head, "result_sets": sets, **left_out})


def _as_json(each: SelectedSet) -> dict[str, Any]:
    choice = each.selection.choice if each.selection else None
    chosen = choice.chosen if choice else None
    taken = {run.path for run in each.chosen}
    return {
        **{name: getattr(each.row, name) for name in ("path", *_NAMED)},
        "runs_found": each.row.runs_found,
        "runs_required": each.row.runs_required,
        "state": each.state,
        "reason": each.reason,
        "median_minutes": choice.median if choice else None,
        "minutes": chosen.minutes if chosen else None,
        "runs": [
            {"path": run.path, "start_ms": run.start_ms, "minutes": run.minutes}
            | {"status": run.status, "converged": run.converged, "chosen": run.path in taken}
            for run in (each.selection.runs if each.selection else each.runs)
        ],
        "windows": [
            {"first": window.first + 1, "last": window.last + 1, "minutes": window.minutes}
            | {"reason": window.reason, "chosen": window is chosen}
            for window in (choice.windows if choice else ())
        ],
    }


_RUN_FIELDS = ("number", "path", "status", "minutes", "chosen")
_SET_FIELDS = ("state", "selected_minutes", "median_minutes", "reason")


def csv(given: Selections, _: View) -> str:
    """One row per run by start, with what came of its set beside it."""
    rows = (row for each in given.sets for row in _csv_rows(each))
    return tables.csv_text((*_NAMED, *_RUN_FIELDS, *_SET_FIELDS), rows)


def _csv_rows(each: SelectedSet) -> Iterator[list[Any]]:
    found = _as_json(each)
    of_set = [found["state"], found["minutes"], found["median_minutes"], found["reason"]]
    for number, run in enumerate(found["runs"], 1):
        of_run = [run[name] for name in ("path", "status", "minutes", "chosen")]
        yield [*(found[name] for name in _NAMED), number, *of_run, *of_set]


def markdown(given: Selections, _: View) -> str:
    """For the summary of a CI job: a section per result set."""
    sections = [section(_TITLES, _group(each, given.report)) for each in given.sets]
    ending = map(escape_markdown, _ending(given))
    return "\n\n".join(["## MLPerf selection of runs", *sections, *ending]) + "\n"


SELECT_FORMATS: Mapping[str, Callable[[Selections, View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
