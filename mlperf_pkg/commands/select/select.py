"""The runs to submit of each result set, as text, JSON, Markdown and CSV.

All formats have the runs by start; all but CSV have the windows, and their median.
"""

import math
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Literal

from msgspec import Struct

from mlperf_pkg.checker.values import Checked, scores
from mlperf_pkg.infra.source import words_of_lines
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import findings
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import (
    HEAD,
    HEADING,
    PLAIN,
    Column,
    RowGroup,
    Table,
    json_text,
    table_of,
)
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import NOT_COUNTED, Report, ResultSetRow, names
from mlperf_pkg.results.scoring import RunChoice, Window, select
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.run.model import Run

FORMAT = "mlperf-pkg/selection/1"

_COLUMNS = (
    Column("Runs in order of start"),
    Column("Minutes", 9, numbers=True),
    Column("Status", 46),
)
_SET_NAMES = ("id", "submitter", "system", "benchmark", "division", "round")
_RUNS = ("runs_found", "runs_required")
_RUN_FIELDS = ("number", "path", "status", "minutes", "chosen")
_SET_FIELDS = ("state", "selected_minutes", "median_minutes", "reason")
_CSV_FIELDS = (*_SET_NAMES, *_RUN_FIELDS, *_SET_FIELDS)
_CSV = [Column(key=field, of=itemgetter(field)) for field in _CSV_FIELDS]


State = Literal["selected", "nothing_to_select", "invalid", "not_checked"]
"""The outcome for a result set."""


class SelectedSet(Struct, frozen=True):
    """A result set and the selection of its runs, with a ``reason`` for its state, or a remark.

    ``runs`` are by start, and ``chosen`` those to submit. ``choice`` is None where there is none:
    the rulebook does not cover the benchmark, or all models of weak scaling count; ``runs`` are
    then in the order of the report.
    """

    row: ResultSetRow
    runs: tuple[Run, ...]
    state: State
    reason: str
    chosen: tuple[Run, ...] = ()
    choice: RunChoice | None = None


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
    left_out = dict.fromkeys(by_path)
    sets = []
    for scored in scores(checked).sets:
        runs = tuple(by_path[run.label] for run in scored.runs)
        sets.append(_selected(scored.row, runs))
        for run in runs:
            left_out.pop(run.path, None)
    return Selections(checked.report, tuple(sets), tuple(left_out))


def _selected(row: ResultSetRow, runs: tuple[Run, ...]) -> SelectedSet:
    rules = load_benchmark(runs[0].usage, row.round, row.benchmark) if runs else None
    if row.runs_required is None:
        return SelectedSet(row, runs, "not_checked", f"not checked: {row.score_note}")
    if rules is None or row.scaling == "weak":
        reason = row.score_note or "nothing to select, as all models of weak scaling count"
        if row.score_minutes is None:
            return SelectedSet(row, runs, "invalid", reason)
        return SelectedSet(row, runs, "nothing_to_select", reason, runs)
    selection = select(runs, rules.runs)
    choice = selection.choice
    state: State = "selected" if selection.chosen else "invalid"
    reason = choice.reason
    if selection.chosen and len(choice.windows) == 1:
        state = "nothing_to_select"
        reason = f"nothing to select, as the set has only the {len(runs)} runs that are required"
    return SelectedSet(row, selection.runs, state, reason, selection.chosen, choice)


# ---- formats ------------------------------------------------------------------------------


def text(selections: Selections, view: View) -> str:
    """Render for a terminal or a pipe."""
    terminal = Terminal(view)
    if selections.sets:
        terminal.table(_table(selections), apart=True)
    else:
        terminal.line((findings.NO_RESULT_SET, PLAIN))
    for line in _ending(selections):
        terminal.paragraph((line, PLAIN))
    return terminal.text()


def markdown(selections: Selections, _: View) -> str:
    """Render for the summary of a CI job, a section per result set."""
    sections = tables.markdown(_table(selections))
    ending = map(escape_markdown, _ending(selections))
    return tables.document("## MLPerf selection of runs", sections, *ending)


def json(selections: Selections, _: View) -> str:
    """Render each result set with its runs by start, its windows and the chosen runs."""
    content: dict[str, Any] = {"format": FORMAT}
    for field in HEAD:
        content[field] = getattr(selections.report, field)
    content["result_sets"] = list(map(_as_json, selections.sets))
    content["left_out"] = selections.left_out
    content["not_counted"] = list(_not_counted(selections))
    return json_text(content)


def csv(selections: Selections, _: View) -> str:
    """Render one row per run by start, with the outcome of its set beside it."""
    rows = []
    for fields in map(_as_json, selections.sets):
        fields["selected_minutes"] = fields["minutes"]
        for number, run in enumerate(fields["runs"], 1):
            path = f"{run['path']}{words_of_lines(run['lines'])}"
            rows.append({**fields, **run, "path": path, "number": number})
    return tables.csv(table_of(_CSV, rows))


SELECT_FORMATS = {"text": text, "json": json, "markdown": markdown, "csv": csv}


def _as_json(selected: SelectedSet) -> dict[str, Any]:
    choice = selected.choice or RunChoice((), None, None)
    content: dict[str, Any] = {}
    for field in ("path", *_SET_NAMES, *_RUNS):
        content[field] = getattr(selected.row, field)
    content["state"] = selected.state
    content["reason"] = selected.reason
    content["median_minutes"] = choice.median
    content["minutes"] = choice.chosen and choice.chosen.minutes
    chosen = {run.path for run in selected.chosen}
    content["runs"] = [_run_json(run, chosen=run.path in chosen) for run in selected.runs]
    content["windows"] = [
        _window_json(window, chosen=window is choice.chosen) for window in choice.windows
    ]
    return content


def _run_json(run: Run, *, chosen: bool) -> dict[str, Any]:
    return {
        "path": run.file,
        "lines": run.lines,
        "start_ms": run.start_ms,
        "minutes": run.minutes,
        "status": run.status,
        "converged": run.converged,
        "chosen": chosen,
    }


def _window_json(window: Window, *, chosen: bool) -> dict[str, Any]:
    return {
        "first": window.first + 1,
        "last": window.last + 1,
        "minutes": window.minutes,
        "reason": window.reason,
        "chosen": chosen,
    }


def _table(selections: Selections) -> Table:
    title = findings.system_titles(selections.report)
    groups = []
    for selected in selections.sets:
        row = selected.row
        rows = [*_run_rows(selected), *_window_rows(selected)]
        heading = f"{wording.benchmark(row)}: {title(row)}"
        groups.append(RowGroup(heading, rows, list(_remarks(selected))))
    return Table(_COLUMNS, groups)


def _run_rows(selected: SelectedSet) -> Iterator[tuple[str, ...]]:
    run_names = names([run.path for run in selected.runs])
    for number, run in enumerate(selected.runs, 1):
        status = run.status or "no run_stop"
        if not run.converged or run.minutes is None:
            status += ", its time counts as infinite"
        yield f"{number}  {run_names[number - 1]}", wording.minutes(run.minutes), status


def _window_rows(selected: SelectedSet) -> Iterator[Any]:
    choice = selected.choice
    if choice is None or selected.state == "nothing_to_select":
        return
    for window in choice.windows:
        runs = f"runs {window.first + 1} to {window.last + 1}"
        minutes = _minutes(window.minutes)
        if window is choice.chosen:
            yield [(runs, HEADING), (minutes, HEADING), ("chosen", HEADING)]
        else:
            yield runs, minutes, window.reason
    if choice.median is not None:
        yield "median", _minutes(choice.median), ""


def _minutes(value: float) -> str:
    return wording.minutes(value) if math.isfinite(value) else "infinite"


def _remarks(selected: SelectedSet) -> Iterator[str]:
    if selected.state == "invalid":
        yield f"no valid result: {selected.reason}"
    elif selected.reason:
        yield selected.reason
    if selected.state == "selected":
        chosen = names([run.path for run in selected.chosen])
        yield f"submit {', '.join(chosen)}"
    without_start = sum(run.start_ms is None for run in selected.runs)
    if selected.choice and without_start:
        yield f"{wording.counted(without_start, 'run')} without run_start, sorted last"


def _ending(selections: Selections) -> Iterator[str]:
    if selections.left_out:
        number = wording.counted(len(selections.left_out), "log")
        paths = ", ".join(selections.left_out)
        yield f"{number} without a benchmark name, in no window: {paths}"
    yield from _not_counted(selections)
    yield findings.round_in_words(selections.report)


def _not_counted(selections: Selections) -> Iterator[str]:
    """Yield which logs are not read, not of a run, or of a run that another log counts for."""
    for finding in selections.report.findings:
        if finding.code in NOT_COUNTED:
            yield f"{findings.location(finding)}: {findings.sentence(finding)}"
