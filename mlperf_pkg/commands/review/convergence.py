"""The convergence of all Closed result sets, compared with the reference.

Source: training_rules, Reference Convergence Points; submission_rules, Schedule.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec import Struct

from mlperf_pkg.commands.review.calendar import SUBMISSION, Calendar
from mlperf_pkg.commands.review.round import Cell, ReviewedRound, ReviewSection, column, with_rows
from mlperf_pkg.findings import Basis, Finding
from mlperf_pkg.render.table import by_key, table_of
from mlperf_pkg.results import rcp, wording
from mlperf_pkg.results.report import ResultSetRow

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
        if test.official_pass:
            return FAILS if fails else BYPASSED if finding else PASSES
        if test.message.startswith((rcp.NO_BATCH_SIZE, rcp.NOT_CONVERGED)):
            return OPEN
        if test.message.startswith((rcp.MISSING, rcp.NO_POINTS)):
            return MISSING
        return BYPASSED if test.bypassed else FAILS if fails else OFFICIAL

    @property
    def margin(self) -> float | None:
        """The RCP margin in percent: by the limit of the rules, if it is another one."""
        finding = self.finding
        if finding is not None and finding.code == _ALLOWED_ONCE:
            return 100 * float(finding.found / finding.expected - 1)
        return self.row.rcp.margin_percent if self.row.rcp else None

    @property
    def words(self) -> str:
        """The message of the finding on it, else of the official checker."""
        message = self.row.rcp.message if self.row.rcp else _NO_TEST
        if self.finding is None:
            return message
        return f"{self.finding.code}: {message if self.row.rcp else self.finding.text}"


def tests_of(rows: Iterable[ResultSetRow], findings: Iterable[Finding]) -> list[RcpTest]:
    """Return the RCP tests of Closed sets, with the findings on them."""
    last_first = sorted((f for f in findings if f.code in _CODES), key=lambda f: f.code)[::-1]
    of_set = {finding.about: finding for finding in last_first}
    closed = (row for row in rows if wording.rcp_state(row) is not None)
    return [RcpTest(row, of_set.get(row.path)) for row in closed]


def section(reviewed: ReviewedRound) -> ReviewSection:
    """Return the RCP tests of all Closed sets, the smallest margin first."""
    tests = tests_of(reviewed.report.results, reviewed.report.findings)
    by_margin = attrgetter("row.benchmark", "row.path")
    tests.sort(key=lambda t: (math.inf if t.margin is None else t.margin, *by_margin(t)))
    rows = [test.row for test in tests]
    scaled = [row for row in rows if row.scaling_factor != 1 and row.score_minutes is not None]
    scaled.sort(key=lambda row: (-row.scaling_factor, row.path))
    dates = reviewed.outcome.calendar or {}
    missing = list(_missing([test.row for test in tests if test.state == MISSING], dates))
    states = [test.state for test in tests]
    marked = frozenset((n, _TEST) for n, state in enumerate(states) if state in (FAILS, MISSING))
    tables = {
        "sets": table_of(_SETS, tests, title="RCP tests by margin", note=_SETS_NOTE, marked=marked),
        "missing": table_of(
            _MISSING, missing, title="Missing reference points", note=_MISSING_NOTE
        ),
        "normalised": table_of(
            _NORMALISED, scaled, title="Normalised scores", note=_NORMALISED_NOTE
        ),
    }
    counts = Counter(states)
    words = [f"{number} {word}" for word in (PASSES, *_ORDER) if (number := counts[word])]
    date = dates.get(SUBMISSION, "unknown")
    texts = tuple(text.format(date=date) for word, text in _TEXTS.items() if counts[word])
    total = f"RCP test: {', '.join(words) or wording.NOTHING}"
    summary = (total, *_summary(tests, missing, scaled))
    return ReviewSection("convergence", "Convergence", texts, with_rows(tables), summary)


# ---- tables ---------------------------------------------------------------------------------


def _missing(rows: Sequence[ResultSetRow], dates: Calendar) -> Iterator[tuple[Cell, ...]]:
    groups = by_key(((row.benchmark, _size(row)), row) for row in rows)
    for benchmark, size in sorted(groups, key=lambda key: (key[0], key[1] or 0)):
        sets = groups[benchmark, size]
        runs = _REFERENCE_RUNS * max(row.runs_required or 0 for row in sets)
        due = dates.get("early_rcps" if benchmark in _EARLY else "rcps")
        submitters = ", ".join(sorted({row.submitter or wording.NOTHING for row in sets}))
        yield benchmark, size, runs or None, str(due) if due else None, submitters, len(sets)


def _size(row: ResultSetRow) -> int | float | None:
    size = row.rcp.batch_size if row.rcp else -1
    return None if size < 0 else int(size) if size == size // 1 else size


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return value if value is None or not math.isfinite(value) else round(value, digits)


_NO_TEST = "no test for this benchmark"
_NAMES = ("Submitter", "System", "Benchmark")
_SETS = (
    *(column(name, attrgetter(f"row.{name.lower()}")) for name in _NAMES),
    column("Batch size", lambda test: _size(test.row), numbers=True),
    column("Test", attrgetter("state")),
    column("Margin %", lambda test: _rounded(test.margin, 2), numbers=True),
    column("Mean", lambda test: test.row.rcp and _rounded(test.row.rcp.mean), numbers=True),
    column("Least accepted", lambda t: t.row.rcp and _rounded(t.row.rcp.minimum), numbers=True),
    column("Official checker", attrgetter("words")),
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
_MISSING_NOTE = "Reference runs: the number expected, twice the runs of a result set."
_NORMALISED = (
    *(column(name, attrgetter(name.lower())) for name in _NAMES),
    column("Factor", lambda row: _rounded(row.scaling_factor), numbers=True),
    column("Unscaled", lambda row: _rounded(row.unscaled_minutes or 0.0, 3), numbers=True),
    column("Score", lambda row: _rounded(row.score_minutes, 3), numbers=True),
    column(
        "Minutes",
        lambda r: _rounded(r.score_minutes - (r.unscaled_minutes or 0.0), 3),
        numbers=True,
    ),
    column("Percent", lambda row: _rounded(100 * (row.scaling_factor - 1), 2), numbers=True),
)
_NORMALISED_NOTE = "Minutes and percent: the increase of the time-to-train by the factor."


# ---- words ----------------------------------------------------------------------------------


_TEXTS = {
    FAILS: "A set that fails is rejected by default; evidence in its favour is due by the end of"
    " the first week of the review (training_rules, Handling RCP Failures).",
    MISSING: "Missing reference points are due 24 hours after the submission deadline, those of"
    " gpt3 and llama31_405b five weeks before it. The submission date is {date}.",
    OFFICIAL: "Official only: the official checker fails the set by a rule that is newer than the"
    " round.",
    BYPASSED: "Bypassed: package_checker_params contains rcp-bypass, which only a review may"
    " grant.",
    OPEN: "Not compared: the official checker crashes or has no test for the benchmark, or the set"
    " has no mean to converge.",
}


def _summary(
    tests: Sequence[RcpTest], missing: Sequence[tuple[Cell, ...]], scaled: Sequence[ResultSetRow]
) -> Iterator[str]:
    for test in tests:
        if test.state in (FAILS, OFFICIAL, BYPASSED):
            row = test.row
            margin = test.margin
            shown = "" if margin is None else f", margin {rcp.margin_in_words(margin)}"
            shown += f" ({test.finding.code})" if test.finding else ""
            yield f"{test.state}: {row.submitter} {row.benchmark} on {row.system}{shown}"
    for benchmark, size, runs, due, submitters, _ in missing:
        needed = f"{runs} reference runs due {due}"
        yield f"missing: {benchmark} at batch size {size} ({submitters}): {needed}"
    if scaled:
        most = 100 * (scaled[0].scaling_factor - 1)
        yield f"normalised: {wording.counted(len(scaled), 'score')}, by up to {most:.2f} %"
