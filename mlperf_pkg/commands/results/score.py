"""Scores as text, JSON, Markdown and CSV.

Text and Markdown show each run's time, the dropped runs and the score of a single result set, and
only the scores of several.
"""

from collections.abc import Iterator
from operator import attrgetter

from msgspec.structs import astuple, replace

from mlperf_pkg.checker.values import Rank, ScoredSet, Scores, Standing
from mlperf_pkg.checks.score import OTHER_SCORE
from mlperf_pkg.findings import Verdict, Verdicts
from mlperf_pkg.infra.text import escape_markdown
from mlperf_pkg.render import findings
from mlperf_pkg.render import table as tables
from mlperf_pkg.render.findings import View
from mlperf_pkg.render.table import HEADING, PLAIN, Column, RowGroup, Table, by_key
from mlperf_pkg.render.terminal import RCP_MARGIN, STYLES, Terminal
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report, ResultSetRow, as_json, names

FORMAT = "mlperf-pkg/score/1"

_FEW = 10  # result sets; each one has another line
_GRAVITY = (Verdict.PASS, Verdict.NOT_CHECKED, Verdict.FAIL)
_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


def text(scores: Scores, view: View) -> str:
    """Render for a terminal or a pipe."""
    terminal = Terminal(view)
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
    """Render for the summary of a CI job."""
    shown = _table(scores, view)
    title = "Run"  # as groups have headings
    if _in_short(scores, view):
        title = "System"
    columns = (replace(shown.columns[0], title=title), *shown.columns[1:])
    sections = tables.markdown(Table(columns, shown.groups))
    ending = map(escape_markdown, _ending(scores.report))
    return tables.document("## MLPerf scores", sections, *ending)


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
_RUN = ("path", "status", "minutes", "dropped")
_SCORE = ("unscaled_minutes", "scaling_factor", "score_minutes", "official_minutes", "score_note")

SCORE_FORMATS = {"text": text, "json": json, "markdown": markdown, "csv": csv}


def _in_short(scores: Scores, view: View) -> bool:
    return len(scores.sets) > 1 and not view.verbose


def _table(scores: Scores, view: View) -> Table:
    """Return a table of the runs of each result set or, in short, of the result sets."""
    if _in_short(scores, view):
        return Table(_SETS, _in_groups(scores))
    title = findings.system_titles(scores.report)
    return Table(
        _RUNS, [_group(scored, title(scored.row), scores.report) for scored in scores.sets]
    )


def _ending(report: Report) -> Iterator[str]:
    """Yield how many findings there are, if any, as the scores do not show them; and the round."""
    if report.findings or report.hidden:
        yield f"{findings.counts_in_words(report)}; 'mlperf-pkg check' shows them"
    yield findings.round_in_words(report)


# ---- in detail ----------------------------------------------------------------------------

_RUNS = (Column("Scores"), Column("Minutes", 9, numbers=True), Column("Status, dropped", 30))


def _group(scored: ScoredSet, system: str, report: Report) -> RowGroup:
    """Return the runs, the steps from the mean to the score, and the official score."""
    row = scored.row
    why = ""
    if row.official_minutes is None:
        why = "mlperf-logging gives no score"
        if row.runs_required is None:  # unknown without rules for the benchmark
            why = "not checked"
    rows: list[tuple[object, ...]] = []
    run_names = names([run.label for run in scored.runs])
    for run, run_name in zip(scored.runs, run_names, strict=True):
        rows.append((run_name, wording.minutes(run.minutes), wording.outcome(run)))
    rows += [
        ("olympic mean", wording.minutes(row.unscaled_minutes), ""),
        ("scaling factor", f"{row.scaling_factor:.4f}", ""),
        (("score", HEADING), (wording.minutes(row.score_minutes), HEADING), ""),
        ("official", wording.minutes(row.official_minutes), why),
    ]
    return RowGroup(f"{row.benchmark}: {system}", rows, list(_remarks(scored, report)))


def _remarks(scored: ScoredSet, report: Report) -> Iterator[str]:
    row = scored.row
    if row.score_note:
        yield row.score_note
    if row.rcp:
        yield f"RCP: {row.rcp.explanation}"
    for finding in report.findings:
        if finding.code == OTHER_SCORE and finding.set == row.id:
            yield finding.text
    standing = scored.published
    if standing:
        text = f"published: {_standing_in_short(standing)}"
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
                standings.append(f"{subject}: published: {_standing_in_short(scored.published)}")
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
    """Return ``3rd of 41 on 8 accelerators in 5.1``."""
    accelerators = wording.counted(standing.accelerators, "accelerator")
    return f"{_in_words(standing.overall)} on {accelerators} in {standing.round}"


def _in_words(rank: Rank) -> str:
    suffix = _SUFFIXES.get(rank.rank % 10, "th")
    if rank.rank % 100 in range(11, 14):
        suffix = "th"
    return f"{rank.rank}{suffix} of {rank.of}"
