"""Scores in detail: the time of every run, what was dropped, and how the score came about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlperf_pkg.checker.scores import ScoredSet, Scores
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import headings, tables
from mlperf_pkg.render.markdown import section
from mlperf_pkg.render.terminal import HEADING, PLAIN, Column, Group, Span, Terminal
from mlperf_pkg.render.view import View
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import RcpRow, Report, ResultSetRow, RunRow, as_json, name

FORMAT = "mlperf-pkg/score/1"

_COLUMNS = (Column("Scores"), Column("Minutes", 9, numbers=True), Column("Status, dropped", 30))
_TITLES = {"Run": False, "Minutes": True, "Status, dropped": False}
_RUN_FIELDS = ("path", "status", "minutes", "dropped")
_SET_FIELDS = (
    "unscaled_minutes",
    "scaling_factor",
    "score_minutes",
    "official_minutes",
    "score_note",
)
_NAMED = ("submitter", "system", "benchmark", "division", "round")


def text(given: Scores, view: View) -> str:
    """For a terminal or a pipe."""
    terminal = Terminal(view)
    if given.sets:
        terminal.table(_COLUMNS, [_group(each, given.report) for each in given.sets], apart=True)
    else:
        terminal.line(("no result set: no log names its benchmark", PLAIN))
    terminal.paragraph((headings.round_in_words(given.report), PLAIN))
    return terminal.text()


def _group(each: ScoredSet, report: Report) -> Group:
    rows = [*map(_run, each.runs), *_sums(each.row)]
    return Group(_title(each.row, report), rows, list(_remarks(each.row)))


def _title(row: ResultSetRow, report: Report) -> str:
    return f"{row.benchmark}: {headings.system_title(row, report)}"


def _run(run: RunRow) -> list[Span]:
    cells = (name(run.path), wording.minutes(run.minutes), wording.outcome(run))
    return [(cell, PLAIN) for cell in cells]


def _sums(row: ResultSetRow) -> Iterator[list[Span]]:
    """The way from the mean to the score, and what the official summarizer makes of it."""
    yield [("olympic mean", PLAIN), (wording.minutes(row.unscaled_minutes), PLAIN), ("", PLAIN)]
    yield [("scaling factor", PLAIN), (f"{row.scaling_factor:.4f}", PLAIN), ("", PLAIN)]
    yield [("score", HEADING), (wording.minutes(row.score_minutes), HEADING), ("", PLAIN)]
    yield [
        ("official", PLAIN),
        (wording.minutes(row.official_minutes), PLAIN),
        (_no_score(row), PLAIN),
    ]


def _no_score(row: ResultSetRow) -> str:
    """Why there is no official score; without rules for the benchmark nobody knows."""
    if row.official_minutes is not None:
        return ""
    return "not checked" if row.runs_required is None else "mlperf-logging gives no score"


def _remarks(row: ResultSetRow) -> Iterator[str]:
    if row.score_note:
        yield row.score_note
    if row.rcp:
        yield f"RCP: {row.rcp.explanation}"
        yield from _with_and_without(row, row.rcp)


def _with_and_without(row: ResultSetRow, test: RcpRow) -> Iterator[str]:
    """What the normalisation makes of the score, also where it does not apply."""
    if test.official_pass and test.normalization > 1 and row.unscaled_minutes is not None:
        normalised = wording.minutes(row.unscaled_minutes * test.normalization)
        yield f"normalised {normalised} minutes, without it {wording.minutes(row.unscaled_minutes)}"


def json(given: Scores, _: View) -> str:
    """For programs: the result sets of the report, each with its ``runs``."""
    report: dict[str, Any] = as_json(given.report)
    head = {name: report[name] for name in ("tool", "usage", "round", "round_reason")}
    sets = [{**as_json(each.row), "runs": as_json(each.runs)} for each in given.sets]
    return tables.json_text({"format": FORMAT, **head, "result_sets": sets})


def csv(given: Scores, _: View) -> str:
    """One row per run, with the score of its set beside it."""
    header = (*_NAMED, *_RUN_FIELDS, *_SET_FIELDS)
    return tables.csv_text(header, (_cells(e.row, r) for e in given.sets for r in e.runs))


def _cells(row: ResultSetRow, run: RunRow) -> Sequence[Any]:
    of_set = [getattr(row, name) for name in _SET_FIELDS]
    return [*(getattr(row, n) for n in _NAMED), *(getattr(run, n) for n in _RUN_FIELDS), *of_set]


def markdown(given: Scores, _: View) -> str:
    """For the summary of a CI job: a section per result set."""
    sections = [section(_TITLES, _group(each, given.report)) for each in given.sets]
    ending = escape_markdown(headings.round_in_words(given.report))
    return "\n\n".join(["## MLPerf scores", *sections, ending]) + "\n"


SCORE_FORMATS: Mapping[str, Callable[[Scores, View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
