"""The convergence of all Closed result sets, compared with the reference.

Source: training_rules, Reference Convergence Points; submission_rules, Schedule.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from mlperf_pkg.commands.review.model import Cell, Round, Section, Table
from mlperf_pkg.results import rcp, wording
from mlperf_pkg.results.rcp import margin_in_words
from mlperf_pkg.results.report import ResultSetRow
from mlperf_pkg.rulebook.files import usages
from mlperf_pkg.rulebook.load import submission_date

PASS, FAIL, MISSING, BYPASSED, OPEN = "pass", "FAIL", "missing", "bypassed", "not compared"

_EARLY = {"gpt3": timedelta(weeks=-5), "llama31_405b": timedelta(weeks=-5)}
_LATE = timedelta(days=1)
_REFERENCE_RUNS = 2  # times the runs that a result set needs
_CRASHES = "RCP103"
_SETS = (
    "Submitter",
    "System",
    "Benchmark",
    "Batch size",
    "Test",
    "Margin %",
    "Mean",
    "Least accepted",
    "Official checker",
)
_SETS_NOTE = (
    "Margin: by how much the mean to converge exceeds the smallest acceptable mean (least"
    " accepted); negative for a set that converges too fast."
)
_MISSING = ("Benchmark", "Batch size", "Reference runs", "Due", "Submitters", "Result sets")
_MISSING_NOTE = "Reference runs: the number expected, twice the runs of a result set."
_NORMALISED = (
    "Submitter",
    "System",
    "Benchmark",
    "Factor",
    "Unscaled",
    "Score",
    "Minutes",
    "Percent",
)
_NORMALISED_NOTE = "Minutes and percent: the increase of the time-to-train by the factor."
_ORDER = (FAIL, MISSING, BYPASSED, OPEN)


def section(reviewed: Round) -> Section:
    """Return the RCP tests of all Closed sets, the smallest margin first."""
    rows = [row for row in reviewed.report.result_sets if state(row) is not None]
    rows.sort(key=_sort_key)
    missing, normalised = tuple(_missing(reviewed, rows)), tuple(_normalised(rows))
    tables = [
        _sets(reviewed, rows),
        Table("missing", "Missing reference points", _MISSING, missing, note=_MISSING_NOTE),
        Table("normalised", "Normalised scores", _NORMALISED, normalised, note=_NORMALISED_NOTE),
    ]
    counts = Counter(map(state, rows))
    words = [f"{number} {word}" for word in (PASS, *_ORDER) if (number := counts[word])]
    return Section(
        "convergence",
        "Convergence",
        tuple(_text(reviewed, counts)),
        tuple(table for table in tables if table.rows),
        (f"RCP test: {', '.join(words) or wording.NOTHING}", *_summary(rows, missing, normalised)),
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
    reasons = {f.about: f.text for f in reviewed.report.findings if f.code == _CRASHES}
    test = _SETS.index("Test")
    marked = {(number, test) for number, row in enumerate(rows) if state(row) in (FAIL, MISSING)}
    cells = tuple(_set_cells(row, reasons.get(row.path)) for row in rows)
    return Table("sets", "RCP tests by margin", _SETS, cells, frozenset(marked), _SETS_NOTE)


def _set_cells(row: ResultSetRow, crash: str | None) -> tuple[Cell, ...]:
    names: tuple[Cell, ...] = (row.submitter, row.system, row.benchmark)
    test = row.rcp
    if test is None:
        return (*names, None, state(row), None, None, None, crash or "no test for this benchmark")
    return (
        *names,
        _size(row),
        state(row),
        _rounded(test.margin_percent, 2),
        _rounded(test.mean),
        _rounded(test.minimum),
        test.message,
    )


def _missing(reviewed: Round, rows: Sequence[ResultSetRow]) -> Iterator[tuple[Cell, ...]]:
    groups: dict[tuple[str, int | float | None], list[ResultSetRow]] = {}
    for row in rows:
        if state(row) == MISSING:
            groups.setdefault((row.benchmark, _size(row)), []).append(row)
    for benchmark, size in sorted(groups, key=_benchmark_and_size):
        sets = groups[benchmark, size]
        runs = max((row.runs_required or 0 for row in sets), default=0)
        yield (
            benchmark,
            size,
            _REFERENCE_RUNS * runs or None,
            _due(reviewed, benchmark),
            ", ".join(sorted({row.submitter or wording.NOTHING for row in sets})),
            len(sets),
        )


def _benchmark_and_size(key: tuple[str, int | float | None]) -> tuple[str, int | float]:
    return key[0], key[1] or 0


def _normalised(rows: Sequence[ResultSetRow]) -> Iterator[tuple[Cell, ...]]:
    scaled = [row for row in rows if row.scaling_factor != 1 and row.score_minutes is not None]
    for row in sorted(scaled, key=lambda row: (-row.scaling_factor, row.path)):
        before, after = row.unscaled_minutes or 0.0, row.score_minutes or 0.0
        yield (
            row.submitter,
            row.system,
            row.benchmark,
            _rounded(row.scaling_factor),
            _rounded(before, 3),
            _rounded(after, 3),
            _rounded(after - before, 3),
            _rounded(100 * (row.scaling_factor - 1), 2),
        )


def _size(row: ResultSetRow) -> int | float | None:
    size = row.rcp.batch_size if row.rcp else -1
    if size < 0:
        return None
    return int(size) if size == size // 1 else size


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return value if value is None or not math.isfinite(value) else round(value, digits)


# ---- words ----------------------------------------------------------------------------------


def _submitted(reviewed: Round) -> date | None:
    """Return the submission date of the round in the rulebook; None for several rounds."""
    report = reviewed.report
    is_one = report.round is not None and report.usage in usages()
    return submission_date(report.usage, report.round or "") if is_one else None


def _due(reviewed: Round, benchmark: str) -> str | None:
    submitted = _submitted(reviewed)
    return None if submitted is None else str(submitted + _EARLY.get(benchmark, _LATE))


def _text(reviewed: Round, counts: Counter[str | None]) -> Iterator[str]:
    if counts[FAIL]:
        yield (
            "A set that fails is rejected by default; evidence in its favour is due by the end of"
            " the first week of the review (training_rules, Handling RCP Failures)."
        )
    if counts[MISSING]:
        submitted = _submitted(reviewed) or "unknown"
        yield (
            "Missing reference points are due 24 hours after the submission deadline, those of"
            " gpt3 and llama31_405b five weeks before it. The rulebook has the submission date"
            f" {submitted}."
        )
    if counts[BYPASSED]:
        yield "Bypassed: package_checker_params contains rcp-bypass, which only a review may grant."
    if counts[OPEN]:
        yield (
            "Not compared: the official checker crashes or has no test for the benchmark, or the"
            " set has no mean to converge."
        )


def _summary(
    rows: Sequence[ResultSetRow],
    missing: Sequence[tuple[Cell, ...]],
    normalised: Sequence[tuple[Cell, ...]],
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
    if normalised:
        most = max(float(row[-1] or 0) for row in normalised)
        yield f"normalised: {wording.counted(len(normalised), 'score')}, by up to {most:.2f} %"
