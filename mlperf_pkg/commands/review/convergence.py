"""The convergence of all Closed result sets, compared with the reference.

Source: training_rules, Reference Convergence Points; submission_rules, Schedule.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from operator import attrgetter

from mlperf_pkg.commands.review.round import Round
from mlperf_pkg.commands.review.section import Cell, Section, column
from mlperf_pkg.render.table import Column, Table, by_key, table_of
from mlperf_pkg.results import rcp, wording
from mlperf_pkg.results.rcp import margin_in_words
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.documents import usages
from mlperf_pkg.rulebook.load import submission_date

PASS, FAIL, MISSING, BYPASSED, OPEN = "pass", "FAIL", "missing", "bypassed", "not compared"

_EARLY = {"gpt3": timedelta(weeks=-5), "llama31_405b": timedelta(weeks=-5)}
_LATE = timedelta(days=1)
_REFERENCE_RUNS = 2  # times the runs that a result set needs
_CRASHES = "RCP103"
_ORDER = (FAIL, MISSING, BYPASSED, OPEN)


def section(reviewed: Round) -> Section:
    """Return the RCP tests of all Closed sets, the smallest margin first."""
    rows = [row for row in reviewed.report.result_sets if state(row) is not None]
    rows.sort(key=_sort_key)
    scaled = [row for row in rows if row.scaling_factor != 1 and row.score_minutes is not None]
    scaled.sort(key=lambda row: (-row.scaling_factor, row.path))
    missing = list(_missing(reviewed, rows))
    tables = {
        "sets": _sets(reviewed, rows),
        "missing": table_of(
            _MISSING, missing, title="Missing reference points", note=_MISSING_NOTE
        ),
        "normalised": table_of(
            _NORMALISED, scaled, title="Normalised scores", note=_NORMALISED_NOTE
        ),
    }
    counts, submitted = Counter(map(state, rows)), _submitted(reviewed) or "unknown"
    words = [f"{number} {word}" for word in (PASS, *_ORDER) if (number := counts[word])]
    return Section(
        "convergence",
        "Convergence",
        tuple(text.format(date=submitted) for word, text in _TEXTS.items() if counts[word]),
        {name: table for name, table in tables.items() if table.rows},
        (f"RCP test: {', '.join(words) or wording.NOTHING}", *_summary(rows, missing, scaled)),
    )


def state(row: ResultSetRow) -> str | None:
    """Return the outcome of the RCP test of a set; None if no test is required.

    MISSING: there is no reference point for its batch size, so it neither passes nor fails.
    """
    word = wording.rcp_state(row)
    if word in (None, PASS):
        return word
    if row.rcp is None or row.rcp.message.startswith((rcp.NO_BATCH_SIZE, rcp.NOT_CONVERGED)):
        return OPEN
    if row.rcp.mean is not None and math.isnan(row.rcp.mean):
        return OPEN
    if row.rcp.message.startswith((rcp.MISSING, rcp.NO_POINTS)):
        return MISSING
    return BYPASSED if row.rcp.bypassed else FAIL


# ---- tables ---------------------------------------------------------------------------------


def _sort_key(row: ResultSetRow) -> tuple[float, str, str]:
    margin = row.rcp.margin_percent if row.rcp else None
    return (math.inf if margin is None else margin, row.benchmark, row.path)


def _sets(reviewed: Round, rows: Sequence[ResultSetRow]) -> Table:
    crashes = {f.about: f.text for f in reviewed.report.findings if f.code == _CRASHES}
    columns = (
        *_NAMES,
        column("Batch size", _size, numbers=True),
        column("Test", state),
        _of_test("Margin %", "margin_percent", 2),
        _of_test("Mean", "mean"),
        _of_test("Least accepted", "minimum"),
        column(
            "Official checker",
            lambda row: row.rcp.message if row.rcp else crashes.get(row.path, _NO_TEST),
        ),
    )
    test = len(_NAMES) + 1
    marked = {(number, test) for number, row in enumerate(rows) if state(row) in (FAIL, MISSING)}
    title = "RCP tests by margin"
    return table_of(columns, rows, title=title, marked=frozenset(marked), note=_SETS_NOTE)


def _missing(reviewed: Round, rows: Sequence[ResultSetRow]) -> Iterator[tuple[Cell, ...]]:
    submitted = _submitted(reviewed)
    missing = (row for row in rows if state(row) == MISSING)
    groups = by_key(((row.benchmark, _size(row)), row) for row in missing)
    for benchmark, size in sorted(groups, key=lambda key: (key[0], key[1] or 0)):
        sets = groups[benchmark, size]
        runs = max(row.runs_required or 0 for row in sets)
        due = str(submitted + _EARLY.get(benchmark, _LATE)) if submitted else None
        yield (
            benchmark,
            size,
            _REFERENCE_RUNS * runs or None,
            due,
            ", ".join(sorted({row.submitter or wording.NOTHING for row in sets})),
            len(sets),
        )


def _size(row: ResultSetRow) -> int | float | None:
    size = row.rcp.batch_size if row.rcp else -1
    if size < 0:
        return None
    return int(size) if size == size // 1 else size


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return value if value is None or not math.isfinite(value) else round(value, digits)


def _of_test(title: str, field: str, digits: int = 4) -> Column:
    """Return the column of a number of the RCP test."""
    return column(title, lambda r: r.rcp and _rounded(getattr(r.rcp, field), digits), numbers=True)


_NAMES = (
    column("Submitter", attrgetter("submitter")),
    column("System", attrgetter("system")),
    column("Benchmark", attrgetter("benchmark")),
)
_NO_TEST = "no test for this benchmark"
_SETS_NOTE = (
    "Margin: by how much the mean to converge exceeds the smallest acceptable mean (least"
    " accepted); negative for a set that converges too fast."
)
_MISSING = (
    column("Benchmark"),
    column("Batch size", numbers=True),
    column("Reference runs", numbers=True),
    column("Due"),
    column("Submitters"),
    column("Result sets", numbers=True),
)
_MISSING_NOTE = "Reference runs: the number expected, twice the runs of a result set."
_NORMALISED = (
    *_NAMES,
    column("Factor", lambda row: _rounded(row.scaling_factor), numbers=True),
    column("Unscaled", lambda row: _rounded(row.unscaled_minutes or 0.0, 3), numbers=True),
    column("Score", lambda row: _rounded(row.score_minutes, 3), numbers=True),
    column(
        "Minutes",
        lambda row: _rounded(row.score_minutes - (row.unscaled_minutes or 0.0), 3),
        numbers=True,
    ),
    column("Percent", lambda row: _rounded(100 * (row.scaling_factor - 1), 2), numbers=True),
)
_NORMALISED_NOTE = "Minutes and percent: the increase of the time-to-train by the factor."


# ---- words ----------------------------------------------------------------------------------


def _submitted(reviewed: Round) -> date | None:
    """Return the submission date of the round in the rulebook; None for several rounds."""
    report = reviewed.report
    is_one = report.round is not None and report.usage in usages()
    return submission_date(report.usage, report.round or "") if is_one else None


_TEXTS = {
    FAIL: "A set that fails is rejected by default; evidence in its favour is due by the end of"
    " the first week of the review (training_rules, Handling RCP Failures).",
    MISSING: "Missing reference points are due 24 hours after the submission deadline, those of"
    " gpt3 and llama31_405b five weeks before it. The rulebook has the submission date {date}.",
    BYPASSED: "Bypassed: package_checker_params contains rcp-bypass, which only a review may"
    " grant.",
    OPEN: "Not compared: the official checker crashes or has no test for the benchmark, or the set"
    " has no mean to converge.",
}


def _summary(
    rows: Sequence[ResultSetRow],
    missing: Sequence[tuple[Cell, ...]],
    scaled: Sequence[ResultSetRow],
) -> Iterator[str]:
    for row in rows:
        if state(row) in (FAIL, BYPASSED):
            margin = row.rcp.margin_percent if row.rcp else None
            shown = "" if margin is None else f", margin {margin_in_words(margin)}"
            yield f"{state(row)}: {row.submitter} {row.benchmark} on {row.system}{shown}"
    for benchmark, size, runs, due, submitters, _ in missing:
        yield (
            f"missing: {benchmark} at batch size {size} ({submitters}): {runs} reference runs due"
            f" {due}"
        )
    if scaled:
        most = 100 * (scaled[0].scaling_factor - 1)
        yield f"normalised: {wording.counted(len(scaled), 'score')}, by up to {most:.2f} %"
