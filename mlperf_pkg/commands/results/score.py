"""Scores as text, JSON, Markdown and CSV.

Text and Markdown show each run's time, the dropped runs and the score of a single result set, and
only the scores of several.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter

from msgspec.structs import astuple, replace

from mlperf_pkg.checker.values import Checked, Rank, ScoredSet, Scores, Standing
from mlperf_pkg.checks.score import OTHER_SCORE
from mlperf_pkg.commands.notice import notice, score, shown_results
from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import findings
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, RowGroup, Table, by_key, shown
from mlperf_pkg.render.terminal import RCP_MARGIN, STYLES, Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, as_json, names

FORMAT = "mlperf-pkg/score/1"

_FEW = 10  # result sets; each one has another line
_GRAVITY = (Verdict.PASS, Verdict.NOT_CHECKED, Verdict.FAIL)
_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


def text(scores: Scores, view: View) -> str:
    """Render for a terminal or a pipe."""
    terminal = Terminal(view)
    scores = replace(scores, unverified=frozenset())
    if scores.sets:
        terminal.table(_table(scores, view), apart=True)
    else:
        terminal.line((findings.NO_RESULT_SET, PLAIN))
    remarks = list(_ending(scores.report))
    if _in_short(scores, view):
        number = wording.counted(len(scores.sets), "result set")
        remarks.insert(0, f"{number}; --verbose shows the runs and how each score is computed")
    for remark in remarks:
        terminal.paragraph((remark, PLAIN))
    return terminal.text()


def markdown(scores: Scores, view: View) -> str:
    """Render for a document, with what must stand beside the scores."""
    shown = _table(scores, view)
    title = "Run"  # as groups have headings
    if _in_short(scores, view):
        title = "System"
    columns = (replace(shown.columns[0], title=title), *shown.columns[1:])
    sections = tables.markdown(Table(columns, shown.groups))
    ending = map(escape_markdown, (*_ending(scores.report), *scores.notice))
    return tables.document("## MLPerf\u00ae scores", sections, *ending)


def with_notice(scores: Scores, checked: Checked) -> Scores:
    """Return scores that are made for showing."""
    shown = shown_results(checked)
    unverified = frozenset(name for name, result in shown.items() if not result.is_verified)
    return replace(scores, unverified=unverified, notice=tuple(notice(shown.values())))


def json(scores: Scores, _: View) -> str:
    """Render the result sets of the report, each with its ``runs``."""
    head = {name: getattr(scores.report, name) for name in tables.HEAD}
    sets = []
    for scored in scores.sets:
        more = {"runs": scored.runs, "published": scored.published}
        sets.append(as_json(scored.row) | as_json(more))
    return tables.json_text({"format": FORMAT, **head, "result_sets": sets})


def csv(scores: Scores, _: View) -> str:
    """Render one row per run, with the score of its set beside it."""
    names_of = attrgetter(*_NAMES)
    run_of = attrgetter(*_RUN)
    score_of = attrgetter(*_SCORE)
    rows = []
    for scored in scores.sets:
        names = names_of(scored.row)
        score = score_of(scored.row)
        standing: tuple[object, ...] = (None, None, None)
        if scored.published:
            rank = scored.published.overall
            standing = (scored.published.round, rank.rank, rank.of)
        for run in scored.runs:
            rows.append((*names, *run_of(run), *score, *standing))
    header = (*_NAMES, *_RUN, *_SCORE, "published_round", "published_rank", "published_of")
    return tables.csv_text(header, rows)


_NAMES = ("submitter", "system", "benchmark", "division", "round")
_RUN = ("path", "status", "minutes", "dropped", "samples_to_converge", "energy_joules")
_SCORE = ("unscaled_minutes", "scaling_factor", "score_minutes", "official_minutes", "score_note")

SCORE_FORMATS = {"text": text, "json": json, "markdown": markdown, "csv": csv}


def _in_short(scores: Scores, view: View) -> bool:
    return len(scores.sets) > 1 and not view.verbose


def _table(scores: Scores, view: View) -> Table:
    """Return a table of the runs of each result set or, in short, of the result sets."""
    if _in_short(scores, view):
        columns = list(_SETS)
        columns[2] = replace(columns[2], of=partial(_score, scores), show=shown)
        return Table(columns, _in_groups(scores))
    title = findings.system_titles(scores.report)
    runs = [run for scored in scores.sets for run in scored.runs]
    has_energy = any(run.energy_joules is not None for run in runs)
    groups: list[RowGroup] = []
    for scored in scores.sets:
        is_verified = scored.row.id not in scores.unverified
        rows = [*_run_rows(scored.runs), *_steps(scored.row, is_verified=is_verified)]
        remarks = list(_remarks(scored, scores.report, has_energy=has_energy))
        groups.append(RowGroup(f"{scored.row.benchmark}: {title(scored.row)}", rows, remarks))
    return Table(_RUNS if has_energy else _RUNS[:-1], groups)


def _ending(report: Report) -> Iterator[str]:
    """Yield how many findings there are, if any, as the scores do not show them; and the round."""
    if report.findings or report.hidden:
        yield f"{findings.counts_in_words(report)}; 'mlperf-pkg check' shows them"
    yield findings.round_in_words(report)


# ---- in detail ----------------------------------------------------------------------------

_RUNS = (
    Column("Scores"),
    Column("Minutes", 9, numbers=True),
    Column("To converge", 18, numbers=True),
    Column("Status, dropped", 22),
    Column("Energy", 12, numbers=True, unit="kJ"),
)


def _run_rows(runs: Sequence[RunRow]) -> Iterator[tuple[object, ...]]:
    """Yield the cells of each run."""
    run_names = names([run.label for run in runs])
    for run, run_name in zip(runs, run_names, strict=True):
        to_converge = wording.NOTHING
        if run.samples_to_converge is not None:
            to_converge = f"{shown(run.samples_to_converge)} {run.convergence_unit or ''}".rstrip()
        yield (
            run_name,
            wording.minutes(run.minutes),
            to_converge,
            wording.outcome(run),
            _kilojoules(run.energy_joules),
        )


def _kilojoules(joules: float | None) -> str:
    if joules is None or not math.isfinite(joules):
        return wording.NOTHING
    return f"{joules / 1000:,.1f}"


def _score(scores: Scores, row: ResultSetRow) -> str:
    """Return the score of a set in words."""
    return score(row.score_minutes, is_verified=row.id not in scores.unverified)


def _steps(row: ResultSetRow, *, is_verified: bool) -> Iterator[tuple[object, ...]]:
    """Yield the steps from the mean to the score, and the official score."""
    shown_score = partial(score, is_verified=is_verified)
    why = ""
    if row.official_minutes is None:
        why = "mlperf-logging gives no score"
        if row.runs_required is None:  # unknown without rules for the benchmark
            why = "not checked"
    yield wording.unscaled(row), shown_score(row.unscaled_minutes), "", "", ""
    yield "scaling factor", f"{row.scaling_factor:.4f}", "", "", ""
    yield ("score", HEADING), (shown_score(row.score_minutes), HEADING), "", "", ""
    energy = _kilojoules(row.energy_joules)
    yield "official", shown_score(row.official_minutes), "", why, energy


def _remarks(scored: ScoredSet, report: Report, *, has_energy: bool) -> Iterator[str]:
    row = scored.row
    if row.score_note:
        yield row.score_note
    if row.energy_note:
        yield f"no energy: {row.energy_note}"
    elif has_energy and row.energy_joules is None:
        yield "no energy: the set has no folder power/"
    if row.rcp:
        yield f"RCP: {row.rcp.explanation}"
    for finding in report.findings:
        if finding.code == OTHER_SCORE and finding.set == row.id:
            yield finding.text
    standing = scored.published
    if standing:
        text = _standing_in_short(standing)
        if standing.of_model:
            text += f", {_in_words(standing.of_model)} on {standing.accelerator_model}"
        yield text


# ---- in short: a line per result set ------------------------------------------------------


def verdict_in_short(verdicts: Verdicts) -> str:
    """Return both verdicts in a few words: ``pass``, ``FAIL``, ``rules FAIL``, ``rules pass``.

    A verdict that is alone in failing is named; so is one that passes where the other was not
    checked.
    """
    if verdicts.official is verdicts.rules:
        return wording.VERDICTS[verdicts.rules]
    telling = Verdict.PASS
    if Verdict.FAIL in astuple(verdicts):
        telling = Verdict.FAIL
    basis = "rules"
    if verdicts.official is telling:
        basis = "official"
    return f"{basis} {wording.VERDICTS[telling]}"


def _system(row: ResultSetRow) -> str:
    return row.system or "unnamed system"


def _style(row: ResultSetRow) -> str:
    """Return the style of the worse verdict."""
    return STYLES[max(astuple(row.verdict), key=_GRAVITY.index)]


_SETS = (
    Column("Submitter, system", of=_system),
    Column("Benchmark", 16, of=wording.benchmark),
    Column("Minutes", 9, numbers=True, of=attrgetter("score_minutes"), show=wording.minutes),
    RCP_MARGIN,
    Column(
        "Verdict",
        14,
        of=lambda row: verdict_in_short(row.verdict),
        style=_style,
    ),
)


def _in_groups(scores: Scores) -> list[RowGroup]:
    """Return the result sets in the order of the report, below their submitter and division.

    Remarks say what qualifies a score or why there is none, and how it ranks among published ones.
    """
    by_title = by_key((_title(scored.row, scores.report), scored) for scored in scores.sets)
    groups = []
    for title, sets in by_title.items():
        notes = []
        standings = []
        for scored in sets:
            row = scored.row
            subject = f"{_system(row)}, {row.benchmark}"
            if row.score_note:
                notes.append(f"{subject}: {row.score_note}")
            if scored.published and len(scores.sets) <= _FEW:
                standings.append(f"{subject}: {_standing_in_short(scored.published)}")
        groups.append(RowGroup(title, [scored.row for scored in sets], notes + standings))
    return groups


def _title(row: ResultSetRow, report: Report) -> str:
    details = [row.division or "no division"]
    if report.round is None:
        details.append(f"round {row.round}")
    owner = row.submitter
    if not owner and row.path == ".":
        owner = "raw logs"
    elif not owner:
        owner = f"logs in {row.path}"
    return f"{owner} ({', '.join(details)})"


# ---- standings among published results ----------------------------------------------------


def _standing_in_short(standing: Standing) -> str:
    """Return ``3rd of 41 published results on 8 accelerators in round 5.1 (Preview)``."""
    accelerators = wording.counted(standing.accelerators, "accelerator")
    rank = f"{_in_words(standing.overall)} published results"
    text = f"{rank} on {accelerators} in round {standing.round}"
    if standing.category:
        text += f" ({standing.category})"
    return text


def _in_words(rank: Rank) -> str:
    suffix = _SUFFIXES.get(rank.rank % 10, "th")
    if rank.rank % 100 in range(11, 14):
        suffix = "th"
    return f"{rank.rank}{suffix} of {rank.of}"
