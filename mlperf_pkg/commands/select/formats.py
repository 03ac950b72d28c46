"""Selections of runs as text, JSON, Markdown and CSV: windows, median, and the runs to submit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mlperf_pkg.commands.select.selections import SelectedSet, Selections, State
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import findings, tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Span, Table, csv_text
from mlperf_pkg.render.table import markdown as markdown_table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import as_json, name
from mlperf_pkg.results.selection import Window
from mlperf_pkg.run.model import Run

FORMAT = "mlperf-pkg/selection/1"

_COLUMNS = (
    Column("Runs by start, windows"),
    Column("Minutes", 9, numbers=True),
    Column("Status", 46),
)
_SET_NAMES = ("id", "submitter", "system", "benchmark", "division", "round")
_RUN_FIELDS = ("number", "path", "status", "minutes", "chosen")
_SET_FIELDS = ("state", "selected_minutes", "median_minutes", "reason")
_INFINITE = "infinite"


def text(selections: Selections, view: View) -> str:
    """Render for a terminal or a pipe."""
    terminal = Terminal(view)
    if selections.sets:
        terminal.table(Table(_COLUMNS, _groups(selections)), apart=True)
    else:
        terminal.line((findings.NO_RESULT_SET, PLAIN))
    for line in _ending(selections):
        terminal.paragraph((line, PLAIN))
    return terminal.text()


def _ending(selections: Selections) -> Iterator[str]:
    if selections.left_out:
        number = wording.counted(len(selections.left_out), "log")
        paths = ", ".join(selections.left_out)
        yield f"{number} without a benchmark name, in no window: {paths}"
    yield findings.round_in_words(selections.report)


def _groups(selections: Selections) -> list[Group]:
    title = findings.system_titles(selections.report)
    return [_group(selected, title(selected.row)) for selected in selections.sets]


def _group(selected: SelectedSet, system: str) -> Group:
    title = f"{wording.benchmark(selected.row)}: {system}"
    rows = [*_run_rows(selected), *_window_rows(selected)]
    return Group(title, rows, list(_remarks(selected)))


def _run_rows(selected: SelectedSet) -> Iterator[list[Span]]:
    for number, run in enumerate(selected.ordered_runs, 1):
        cells = (f"{number}  {name(run.path)}", wording.minutes(run.minutes), _outcome(run))
        yield [(cell, PLAIN) for cell in cells]


def _outcome(run: Run) -> str:
    status = run.status or "no run_stop"
    failed = not run.converged or run.minutes is None
    return f"{status}, counts as infinite" if failed else status


def _window_rows(selected: SelectedSet) -> Iterator[list[Span]]:
    choice = selected.selection.choice if selected.selection else None
    if choice is None or selected.state is State.NOTHING_TO_SELECT:
        return
    for window in choice.windows:
        is_chosen = window is choice.chosen
        cells = (
            _numbers(window),
            _minutes(window.minutes),
            "chosen" if is_chosen else window.reason,
        )
        yield [(cell, HEADING if is_chosen else PLAIN) for cell in cells]
    if choice.median is not None:
        yield [("median", PLAIN), (_minutes(choice.median), PLAIN), ("", PLAIN)]


def _numbers(window: Window) -> str:
    return f"runs {window.first + 1} to {window.last + 1}"


def _minutes(value: float) -> str:
    return wording.minutes(value) if math.isfinite(value) else _INFINITE


def _remarks(selected: SelectedSet) -> Iterator[str]:
    if selected.state is State.INVALID:
        yield f"no valid result: {selected.reason}"
    elif selected.reason:
        yield selected.reason
    if selected.state is State.SELECTED:
        yield f"submit {', '.join(name(run.path) for run in selected.chosen)}"
    without_start = sum(run.start_ms is None for run in selected.runs)
    if selected.selection and without_start:
        yield f"{wording.counted(without_start, 'run')} without run_start, sorted last"


def json(selections: Selections, _: View) -> str:
    """Render each result set with its runs by start, its windows and the chosen runs."""
    report: dict[str, Any] = as_json(selections.report)
    head = {name: report[name] for name in ("tool", "usage", "round", "round_reason")}
    sets = [_as_json(selected) for selected in selections.sets]
    left_out = {"left_out": selections.left_out}
    return tables.json_text({"format": FORMAT, **head, "result_sets": sets, **left_out})


def _as_json(selected: SelectedSet) -> dict[str, Any]:
    choice = selected.selection.choice if selected.selection else None
    chosen = choice.chosen if choice else None
    is_chosen = {run.path for run in selected.chosen}
    return {
        **{name: getattr(selected.row, name) for name in ("path", *_SET_NAMES)},
        "runs_found": selected.row.runs_found,
        "runs_required": selected.row.runs_required,
        "state": selected.state,
        "reason": selected.reason,
        "median_minutes": choice.median if choice else None,
        "minutes": chosen.minutes if chosen else None,
        "runs": [
            {"path": run.path, "start_ms": run.start_ms, "minutes": run.minutes}
            | {"status": run.status, "converged": run.converged, "chosen": run.path in is_chosen}
            for run in selected.ordered_runs
        ],
        "windows": [
            {"first": window.first + 1, "last": window.last + 1, "minutes": window.minutes}
            | {"reason": window.reason, "chosen": window is chosen}
            for window in (choice.windows if choice else ())
        ],
    }


def csv(selections: Selections, _: View) -> str:
    """Render one row per run by start, with the outcome of its set beside it."""
    rows = (row for selected in selections.sets for row in _csv_rows(selected))
    return csv_text((*_SET_NAMES, *_RUN_FIELDS, *_SET_FIELDS), rows)


def _csv_rows(selected: SelectedSet) -> Iterator[list[Any]]:
    fields = _as_json(selected)
    of_set = [fields["state"], fields["minutes"], fields["median_minutes"], fields["reason"]]
    for number, run in enumerate(fields["runs"], 1):
        of_run = [run[name] for name in ("path", "status", "minutes", "chosen")]
        yield [*(fields[name] for name in _SET_NAMES), number, *of_run, *of_set]


def markdown(selections: Selections, _: View) -> str:
    """Render for the summary of a CI job, a section per result set."""
    sections = [markdown_table(Table(_COLUMNS, [group])) for group in _groups(selections)]
    ending = map(escape_markdown, _ending(selections))
    return "\n\n".join(["## MLPerf selection of runs", *sections, *ending]) + "\n"


SELECT_FORMATS: Mapping[str, Callable[[Selections, View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
