"""Results in words, the same in every table."""

import math
from collections.abc import Sequence

from mlperf_pkg.findings import Finding, Verdict
from mlperf_pkg.results.rcp import is_missing, margin_in_words
from mlperf_pkg.results.report import ResultSetRow, RunRow
from mlperf_pkg.results.scoring import NO_TIME, NOT_CONVERGED

UNVERIFIED = "unverified"
NOTHING = "-"
SUCCESS = "success"
VERDICTS = {Verdict.PASS: "pass", Verdict.FAIL: "FAIL", Verdict.NOT_CHECKED: "not checked"}


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 error``, ``2 errors``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


UNCHANGED = "unchanged"


def change(before: float, now: float) -> str:
    """Return how much the minutes changed: ``8 % slower``, ``unchanged``, ``2.5 times as fast``
    or ``2.5 times as long``."""
    if before >= 2 * now:
        return f"{before / now:.3g} times as fast"
    if now >= 2 * before:
        return f"{now / before:.3g} times as long"
    percent = round(100 * (max(before, now) / min(before, now) - 1))
    if not percent:
        return UNCHANGED
    return f"{percent} % faster" if now < before else f"{percent} % slower"


def edition(usage: str, round_: str | None) -> str:
    """Return the name of a round: ``MLPerf Training 5.1``."""
    name = {"training": "Training", "hpc": "HPC"}.get(usage, usage)
    return f"MLPerf {name} {round_ or 'of several rounds'}"


def enumerated(texts: Sequence[str]) -> str:
    """Return strings as a list in a sentence: ``a, b and c``."""
    if len(texts) <= 1:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def shortened(texts: Sequence[str], most: int, noun: str = "") -> str:
    """Return the first strings and the number of the others: ``a, b and 3 more``.

    The ``noun`` says more of what, unless the words before the strings do: ``and 3 more logs``.
    """
    joint = "; " if any(", " in text for text in texts[:most]) else ", "
    text = joint.join(texts[:most])
    rest = len(texts) - most
    if rest <= 0:
        return text
    more = counted(rest, f"more {noun}") if noun else f"{rest} more"
    return f"{text} and {more}"


def minutes(value: float | None) -> str:
    """Return minutes with the precision of the published tables, rounded normally: halves up.

    The double nearest to 9.8065 is a little smaller; the next one is not.
    Source: training_rules, Result rounding
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{math.nextafter(value, math.inf):.3f}"


def benchmark(row: ResultSetRow) -> str:
    """Return the benchmark of a set, with ``(weak)`` for weak scaling (HPC)."""
    if row.scaling == "weak":
        return f"{row.benchmark} (weak)"
    return row.benchmark


def runs(row: ResultSetRow) -> str:
    """Return the number of runs, and of runs required if the rules are known: ``10/10``."""
    if row.runs_required is None:
        return str(row.runs_found)
    return f"{row.runs_found}/{row.runs_required}"


def outcome(run: RunRow) -> str:
    """Return how a run ended, and why the mean leaves it out, if it does: ``success, fastest``."""
    status = run.status or "no run_stop"
    if run.dropped in (NOT_CONVERGED, NO_TIME) and status != SUCCESS:
        return f"{status}, dropped"
    if run.dropped is None:
        return status
    return f"{status}, {run.dropped}"


def severity(finding: Finding) -> str:
    """Return the severity: ``error``, ``waived error``, ``warning`` and so on."""
    return f"waived {finding.severity}" if finding.waiver else finding.severity.value


def unscaled(row: ResultSetRow) -> str:
    """Return what the ``unscaled_minutes`` of a result set are."""
    return "time of all models" if row.scaling == "weak" else "olympic mean"


def rcp_state(row: ResultSetRow) -> str | None:
    """Return the state of the RCP test; None if no test is required.

    It is ``pass``, ``fail``, ``missing`` (no reference point), ``bypassed`` or ``not_checked``.
    """
    if (row.division or "").lower() != "closed":
        return None
    if row.rcp is None:
        return "not_checked"
    if row.rcp.bypassed:
        return "bypassed"
    if row.rcp.official_pass:
        return "pass"
    return "missing" if is_missing(row.rcp.message) else "fail"


def rcp(row: ResultSetRow) -> str:
    """Return the RCP test and its margin: ``pass +3.2 %``, ``FAIL``, ``missing`` and so on."""
    state = rcp_state(row)
    if state is None:
        return NOTHING
    if row.rcp is None:
        return VERDICTS[Verdict.NOT_CHECKED]
    if row.rcp.mean is not None and math.isnan(row.rcp.mean):
        return "too few runs"
    word = "FAIL" if state == "fail" else state
    if row.rcp.no_limit_reason:
        return f"{word}, no limit"
    margin = row.rcp.margin_percent
    if margin is None:
        return word
    return f"{word} {margin_in_words(margin)}"
