"""The convergence of all Closed result sets, compared with the reference.

Source: training_rules, Reference Convergence Points; submission_rules, Schedule.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from mlperf_pkg.commands.notice import ShownResult
from mlperf_pkg.commands.review.calendar import SUBMISSION, Calendar
from mlperf_pkg.commands.review.round import Cell, ReviewedRound, ReviewSection, column, with_rows
from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.render.table import Table, table_of
from mlperf_pkg.results import rcp, wording
from mlperf_pkg.results.report import RcpRow, ResultSetRow

PASSES = "pass"
FAILS = "FAIL"
MISSING = "missing"
BYPASSED = "bypassed"
OPEN = "not compared"
OFFICIAL = "official only"

_EARLY = ("gpt3", "llama31_405b")
_REFERENCE_RUNS = 2  # times the runs that a result set needs
_ALLOWED_ONCE = "RCP105"  # by the official checker, in all rounds
_CODES = ("RCP101", "RCP102", "RCP103", _ALLOWED_ONCE)  # of the findings on the test
_ORDER = (FAILS, MISSING, OFFICIAL, BYPASSED, OPEN)


class RcpTest(Struct, frozen=True):
    """The RCP test of a Closed set, and the first finding on it."""

    row: ResultSetRow
    finding: Finding | None = None

    @property
    def state(self) -> str:
        """The outcome by the rules of the round.

        MISSING: there is no reference point for the batch size, so it neither passes nor fails.
        OFFICIAL: only the official checker fails it, as the rule is newer than the round.
        """
        test = self.row.rcp
        finding = self.finding
        if test is None or (test.mean is not None and math.isnan(test.mean)):
            return OPEN
        fails = finding is not None and finding.fails(Basis.RULES)
        if not test.official_pass:
            return _state_of_failed(test, fails=fails)
        if fails:
            return FAILS
        if finding:
            return BYPASSED
        return PASSES

    @property
    def margin(self) -> float | None:
        """The RCP margin in percent: by the limit of the rules, if it is another one."""
        finding = self.finding
        if finding is not None and finding.code == _ALLOWED_ONCE:
            return 100 * float(finding.found / finding.expected - 1)
        if self.row.rcp:
            return self.row.rcp.margin_percent
        return None

    @property
    def words(self) -> str:
        """The code of the finding on it, if any, and the message of the official checker."""
        test = self.row.rcp
        finding = self.finding
        if finding is None:
            return test.message if test else _NO_TEST
        message = test.message if test else finding.text
        return f"{finding.code}: {message}"


def _state_of_failed(test: RcpRow, *, fails: bool) -> str:
    """Return the outcome of a test that the official checker fails."""
    if test.message.startswith((rcp.NO_BATCH_SIZE, rcp.NOT_CONVERGED)):
        return OPEN
    if rcp.is_missing(test.message):
        return MISSING
    if test.bypassed:
        return BYPASSED
    if fails:
        return FAILS
    return OFFICIAL


def tests_of(rows: Iterable[ResultSetRow], findings: Iterable[Finding]) -> list[RcpTest]:
    """Return the RCP tests of Closed sets, with the findings on them."""
    first_findings: dict[str, Finding] = {}  # of each set, by code
    for finding in findings:
        if finding.code in _CODES:
            first = first_findings.setdefault(finding.about, finding)
            if finding.code < first.code:
                first_findings[finding.about] = finding
    tests = []
    for row in rows:
        if wording.rcp_state(row) is not None:
            tests.append(RcpTest(row, first_findings.get(row.path)))
    return tests


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the RCP tests of all Closed sets, the smallest margin first."""
    dates = reviewed.outcome.calendar or {}
    tests = tests_of(reviewed.report.result_sets, reviewed.report.findings)
    tests.sort(key=_by_margin)
    missing = list(_missing(tests, dates))
    normalised = _normalised(tests)
    tables = {
        "sets": _sets_table(tests),
        "missing": table_of(
            _MISSING, missing, title="Missing reference points", note=_MISSING_NOTE
        ),
        "normalised": _normalised_table(normalised, reviewed.shown),
    }
    counts = Counter(test.state for test in tests)
    date = f"{dates[SUBMISSION]:%Y-%m-%d}" if dates else "unknown"
    texts = [text.format(date=date) for state, text in _TEXTS.items() if counts[state]]
    summary = (_total(counts), *_summary(tests, missing, normalised))
    return ReviewSection(
        "convergence",
        "Convergence",
        tuple(texts),
        with_rows(tables),
        summary,
        derived=(_INCREASE,) if normalised else (),
    )


def _by_margin(test: RcpTest) -> tuple[float, str, str]:
    margin = math.inf if test.margin is None else test.margin
    return margin, test.row.benchmark, test.row.path


def _normalised(tests: Iterable[RcpTest]) -> list[ResultSetRow]:
    """Return the result sets whose scores are normalised, the largest factor first."""
    rows = []
    for test in tests:
        if test.row.scaling_factor != 1 and test.row.score_minutes is not None:
            rows.append(test.row)
    return sorted(rows, key=lambda row: (-row.scaling_factor, row.path))


# ---- tables ---------------------------------------------------------------------------------


def _sets_table(tests: Sequence[RcpTest]) -> Table:
    rows = []
    marked = set[tuple[int, int]]()
    for number, test in enumerate(tests):
        row = test.row
        mean = row.rcp.mean if row.rcp else None
        minimum = row.rcp.minimum if row.rcp else None
        rows.append(
            (
                row.submitter,
                row.system,
                row.benchmark,
                _size(row),
                test.state,
                _rounded(test.margin, 2),
                _rounded(mean),
                _rounded(minimum),
                test.words,
            )
        )
        if test.state in (FAILS, MISSING):
            marked.add((number, _TEST))
    return table_of(
        _SETS, rows, title="RCP tests by margin", note=_SETS_NOTE, marked=frozenset(marked)
    )


def _normalised_table(rows: Iterable[ResultSetRow], shown: Mapping[str, ShownResult]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    unverified = set[tuple[int, int]]()
    for row in rows:
        if not shown[row.id].is_verified:
            unverified.update((len(cells), place) for place in _SCORES)
        score = row.score_minutes or 0.0
        unscaled = row.unscaled_minutes or 0.0
        increase = 100 * (row.scaling_factor - 1)
        cells.append(
            (
                row.submitter,
                row.system,
                row.benchmark,
                _rounded(row.scaling_factor),
                _rounded(unscaled, 3),
                _rounded(score, 3),
                _rounded(score - unscaled, 3),
                _rounded(increase, 2),
            )
        )
    return table_of(
        _NORMALISED,
        cells,
        title="Normalised scores",
        note=_NORMALISED_NOTE,
        unverified=frozenset(unverified),
    )


def _missing(tests: Iterable[RcpTest], dates: Calendar) -> Iterator[tuple[Cell, ...]]:
    """Yield the missing reference points, with the day on which they are due."""
    rows_by_point: dict[tuple[str, int | float | None], list[ResultSetRow]] = {}
    for test in tests:
        if test.state == MISSING:
            point = (test.row.benchmark, _size(test.row))
            rows_by_point.setdefault(point, []).append(test.row)
    for benchmark, size in sorted(rows_by_point, key=lambda point: (point[0], point[1] or 0)):
        rows = rows_by_point[benchmark, size]
        runs = _REFERENCE_RUNS * max(row.runs_required or 0 for row in rows)
        due = dates.get("early_rcps" if benchmark in _EARLY else "rcps")
        submitters = ", ".join(sorted({row.submitter or wording.NOTHING for row in rows}))
        day = f"{due:%Y-%m-%d}" if due else None
        yield benchmark, size, runs or None, day, submitters, len(rows)


def _size(row: ResultSetRow) -> int | float | None:
    size = row.rcp.batch_size if row.rcp else -1
    if size < 0:
        return None
    if size == size // 1:
        return int(size)
    return size


def _rounded(value: float | None, digits: int = 4) -> float | None:
    if value is None or not math.isfinite(value):
        return value
    return round(value, digits)


_NO_TEST = "no test for this benchmark"
_SETS = (
    column("Submitter"),
    column("System"),
    column("Benchmark"),
    column("Batch size", numbers=True),
    column("Test"),
    column("Margin %", numbers=True),
    column("Mean", numbers=True),
    column("Least accepted", numbers=True),
    column("Official checker"),
)
_TEST = 4  # the place of the test among the columns
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
_MISSING_NOTE = (
    "Reference runs: the number of runs that a new reference point needs, which is twice that of a"
    " result set."
)
_NORMALISED = (
    column("Submitter"),
    column("System"),
    column("Benchmark"),
    column("Factor", numbers=True),
    column("Unscaled", numbers=True),
    column("Score", numbers=True),
    column("Minutes", numbers=True),
    column("Percent", numbers=True),
)
_SCORES = (4, 5)  # their places among the columns
_NORMALISED_NOTE = "Minutes and percent: by how much the factor increases the time-to-train."
_INCREASE = "increase by the factor (the score minus the unscaled score, in minutes and in percent)"


# ---- words ----------------------------------------------------------------------------------


_TEXTS = {
    FAILS: "A set that fails is rejected by default; evidence in its favour is due by the end of"
    " the first week of the review (training_rules, Handling RCP Failures).",
    MISSING: "Missing reference points are due 24 hours after the submission deadline; those of"
    " gpt3 and llama31_405b are due five weeks before the deadline. The submission date is {date}.",
    OFFICIAL: "Official only: the set fails the official checker, by a rule that is newer than the"
    " round.",
    BYPASSED: "Bypassed: package_checker_params contains rcp-bypass; only a review may grant this"
    " exception.",
    OPEN: "Not compared: the official checker crashes or has no test for the benchmark, or the set"
    " has no mean to converge.",
}


def _total(counts: Mapping[str, int]) -> str:
    """Return the numbers of tests by state in words."""
    words = [f"{counts[state]} {state}" for state in (PASSES, *_ORDER) if counts[state]]
    return f"RCP test: {', '.join(words) or wording.NOTHING}"


def _summary(
    tests: Sequence[RcpTest],
    missing: Sequence[tuple[Cell, ...]],
    normalised: Sequence[ResultSetRow],
) -> Iterator[str]:
    for test in tests:
        if test.state in (FAILS, OFFICIAL, BYPASSED):
            row = test.row
            line = f"{test.state}: {row.submitter} {row.benchmark} on {row.system}"
            if test.margin is not None:
                line += f", margin {rcp.margin_in_words(test.margin)}"
            if test.finding:
                line += f" ({test.finding.code})"
            yield line
    for benchmark, size, runs, due, submitters, _ in missing:
        needed = f"{runs} reference runs of {benchmark} at batch size {size}"
        yield f"missing: {needed} ({submitters}), due {due}"
    if normalised:
        most = 100 * (normalised[0].scaling_factor - 1)
        scores = wording.counted(len(normalised), "score")
        yield f"normalised: {scores}, by up to {most:.2f} %"
