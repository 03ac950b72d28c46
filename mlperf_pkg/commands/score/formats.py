"""Scores as text, JSON, Markdown and CSV.

Text and Markdown show each run's time, the dropped runs and the score of a single result set, and
only the scores of several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlperf_pkg.checker.scores import ScoredSet, Scores
from mlperf_pkg.commands.score import summary
from mlperf_pkg.commands.score.ranks import standing_in_words
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import findings, tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, Group, Span, Table, csv_text
from mlperf_pkg.render.table import markdown as markdown_table
from mlperf_pkg.render.terminal import Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import RcpRow, Report, ResultSetRow, RunRow, as_json, name

FORMAT = "mlperf-pkg/score/1"

_COLUMNS = (Column("Scores"), Column("Minutes", 9, numbers=True), Column("Status, dropped", 30))
_RUN = Column("Run")  # of Markdown, whose groups have headings
_RUN_FIELDS = ("path", "status", "minutes", "dropped")
_SET_FIELDS = (
    "unscaled_minutes",
    "scaling_factor",
    "score_minutes",
    "official_minutes",
    "score_note",
)
_PUBLISHED_FIELDS = ("published_round", "published_rank", "published_of")
_SET_NAMES = ("submitter", "system", "benchmark", "division", "round")


def text(scores: Scores, view: View) -> str:
    """Render for a terminal or a pipe."""
    terminal = Terminal(view)
    if _in_short(scores, view):
        summary.add_table(terminal, scores)
    elif scores.sets:
        terminal.table(Table(_COLUMNS, _groups(scores)), apart=True)
    else:
        terminal.line((findings.NO_RESULT_SET, PLAIN))
    for remark in _checked(scores.report):
        terminal.paragraph((remark, PLAIN))
    terminal.paragraph((findings.round_in_words(scores.report), PLAIN))
    return terminal.text()


def _checked(report: Report) -> Iterator[str]:
    """Yield how many findings there are, if any: the scores do not show them."""
    if report.findings or report.hidden:
        yield f"{findings.counts_in_words(report)}; 'mlperf-pkg check' shows them"


def _in_short(scores: Scores, view: View) -> bool:
    return len(scores.sets) > 1 and not view.verbose


def _groups(scores: Scores) -> list[Group]:
    title = findings.system_titles(scores.report)
    return [_group(scored, title(scored.row)) for scored in scores.sets]


def _group(scored: ScoredSet, system: str) -> Group:
    title = f"{scored.row.benchmark}: {system}"
    rows = [*map(_run_cells, scored.runs), *_score_rows(scored.row)]
    return Group(title, rows, list(_remarks(scored)))


def _run_cells(run: RunRow) -> list[Span]:
    cells = (name(run.path), wording.minutes(run.minutes), wording.outcome(run))
    return [(cell, PLAIN) for cell in cells]


def _score_rows(row: ResultSetRow) -> Iterator[list[Span]]:
    """Yield the steps from the mean to the score, and the score of the official summarizer."""
    yield [("olympic mean", PLAIN), (wording.minutes(row.unscaled_minutes), PLAIN), ("", PLAIN)]
    yield [("scaling factor", PLAIN), (f"{row.scaling_factor:.4f}", PLAIN), ("", PLAIN)]
    yield [("score", HEADING), (wording.minutes(row.score_minutes), HEADING), ("", PLAIN)]
    yield [
        ("official", PLAIN),
        (wording.minutes(row.official_minutes), PLAIN),
        (_no_official_score(row), PLAIN),
    ]


def _no_official_score(row: ResultSetRow) -> str:
    """Return why there is no official score; it is unknown without rules for the benchmark."""
    if row.official_minutes is not None:
        return ""
    return "not checked" if row.runs_required is None else "mlperf-logging gives no score"


def _remarks(scored: ScoredSet) -> Iterator[str]:
    row = scored.row
    if row.score_note:
        yield row.score_note
    if row.rcp:
        yield f"RCP: {row.rcp.explanation}"
        yield from _normalised(row, row.rcp)
    if scored.published:
        yield f"published: {standing_in_words(scored.published)}"


def _normalised(row: ResultSetRow, test: RcpRow) -> Iterator[str]:
    """Yield the normalised score, even where normalisation does not apply."""
    if test.official_pass and test.normalization > 1 and row.unscaled_minutes is not None:
        minutes = wording.minutes(row.unscaled_minutes * test.normalization)
        yield f"normalised: {minutes} minutes; before: {wording.minutes(row.unscaled_minutes)}"


def json(scores: Scores, _: View) -> str:
    """Render the result sets of the report, each with its ``runs``."""
    report: dict[str, Any] = as_json(scores.report)
    head = {name: report[name] for name in ("tool", "usage", "round", "round_reason")}
    sets = [
        {
            **as_json(scored.row),
            "runs": as_json(scored.runs),
            "published": as_json(scored.published),
        }
        for scored in scores.sets
    ]
    return tables.json_text({"format": FORMAT, **head, "result_sets": sets})


def csv(scores: Scores, _: View) -> str:
    """Render one row per run, with the score of its set beside it."""
    header = (*_SET_NAMES, *_RUN_FIELDS, *_SET_FIELDS, *_PUBLISHED_FIELDS)
    rows = (_csv_cells(scored, run) for scored in scores.sets for run in scored.runs)
    return csv_text(header, rows)


def _csv_cells(scored: ScoredSet, run: RunRow) -> Sequence[Any]:
    row, standing = scored.row, scored.published
    of_run = [getattr(run, name) for name in _RUN_FIELDS]
    of_set = [getattr(row, name) for name in _SET_FIELDS]
    published = [standing.round, standing.overall.rank, standing.overall.of] if standing else []
    none = [None] * (len(_PUBLISHED_FIELDS) - len(published))
    return [*(getattr(row, name) for name in _SET_NAMES), *of_run, *of_set, *published, *none]


def markdown(scores: Scores, view: View) -> str:
    """Render for the summary of a CI job."""
    detailed = (markdown_table(Table((_RUN, *_COLUMNS[1:]), [group])) for group in _groups(scores))
    sections = summary.sections(scores) if _in_short(scores, view) else detailed
    endings = (*_checked(scores.report), findings.round_in_words(scores.report))
    paragraphs = ["## MLPerf scores", *sections, *map(escape_markdown, endings)]
    return "\n\n".join(paragraphs) + "\n"


SCORE_FORMATS: Mapping[str, Callable[[Scores, View], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "csv": csv,
}
