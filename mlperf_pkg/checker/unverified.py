"""Take back the official verdict where the installed mlperf-logging is not the verified one."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts
from mlperf_pkg.results.report import DriftRow, Report, ResultSetRow, RunRow, SystemRow
from mlperf_pkg.rulebook.verified import Drift, drift, installed_name, verified, verified_name
from mlperf_pkg.run.model import Run

_Judged: TypeAlias = Run | RunRow | ResultSetRow
Row = TypeVar("Row", RunRow, ResultSetRow)

_OF_POINTS = ("RCP", "SET119", "SET120")
"""The codes of findings that compare with reference points."""


def without_unverified(checked: Checked, rounds: Iterable[tuple[str, str]]) -> Checked:
    """Return a check whose official verdicts are those that the installed mlperf-logging gives.

    What it may judge otherwise than the verified one is not checked: the report says what the
    verified one says, and where the two differ. Scores and findings that depend on reference points
    that differ say so. ``rounds`` are the usages and rounds of the check.
    """
    benchmarks = {run.benchmark for run in checked.runs}
    benchmarks |= {result.row.benchmark for result in checked.sets}
    drifts = []
    for usage, name in rounds:
        of_round = drift(usage, name).of(benchmarks)
        if of_round:
            drifts.append(of_round)
    if not drifts:
        return checked
    sets = tuple(_set(result, drifts) for result in checked.sets)
    runs = tuple(_run(run, drifts) for run in checked.runs)
    report = _report(checked.report, sets, runs, drifts)
    return replace(checked, report=report, sets=sets, runs=runs)


def _concerns(drifts: Iterable[Drift], judged: _Judged) -> bool:
    """Return whether a round differs in what decides the official verdict on what was judged."""
    return any(drift.round == judged.round and drift.concerns(judged.benchmark) for drift in drifts)


def _has_other_points(drifts: Iterable[Drift], row: ResultSetRow) -> bool:
    return any(drift.round == row.round and row.benchmark in drift.points for drift in drifts)


def _run(run: Run, drifts: Sequence[Drift]) -> Run:
    if not _concerns(drifts, run):
        return run
    return replace(run, verdicts=_unknown(run.verdicts))


def _set(result: SetResult, drifts: Sequence[Drift]) -> SetResult:
    row = result.row
    if _has_other_points(drifts, row):
        remark = f"the score and the RCP margin are computed {_by_other_points()}"
        notes = [note for note in (row.score_note, remark) if note]
        row = replace(row, score_note="; ".join(notes))
    return replace(result, row=_row(row, drifts))


def _row(row: Row, drifts: Sequence[Drift]) -> Row:
    if not _concerns(drifts, row):
        return row
    return replace(row, verdict=_unknown(row.verdict), official_minutes=None)


def _unknown(verdicts: Verdicts) -> Verdicts:
    return replace(verdicts, official=Verdict.NOT_CHECKED)


def _by_other_points() -> str:
    return (
        f"with the reference points of {installed_name()}, which differ from those of version"
        f" {verified().version}"
    )


# ---- the report ---------------------------------------------------------------------------


def _report(
    report: Report, sets: Sequence[SetResult], runs: Sequence[Run], drifts: Sequence[Drift]
) -> Report:
    of_drift = DriftRow(
        verified=verified_name(),
        installed=installed_name(),
        differs=tuple(drift.in_words() for drift in drifts),
        official=report.verdict.official,
    )
    return replace(
        report,
        verdict=replace(report.verdict, official=_official(report, sets, runs, drifts)),
        systems=tuple(_system(row, drifts) for row in report.systems),
        result_sets=tuple(result.row for result in sets),
        runs=tuple(_row(row, drifts) for row in report.runs),
        findings=tuple(_findings(report.findings, sets, drifts)),
        drift=of_drift,
    )


def _system(row: SystemRow, drifts: Sequence[Drift]) -> SystemRow:
    if any(drift.concerns(None) for drift in drifts):
        return replace(row, verdict=_unknown(row.verdict))
    return row


def _official(
    report: Report, sets: Sequence[SetResult], runs: Sequence[Run], drifts: Sequence[Drift]
) -> Verdict:
    """Return the official verdict on all: fail if what is not concerned fails."""
    if any(drift.code for drift in drifts):
        return Verdict.NOT_CHECKED
    unknown_sets = {result.row.id for result in sets if _concerns(drifts, result.row)}
    unknown_logs = {run.path for run in runs if _concerns(drifts, run)}
    if not unknown_sets and not unknown_logs:
        return report.verdict.official
    for finding in report.findings:
        is_known = finding.set not in unknown_sets and finding.path not in unknown_logs
        if finding.fails(Basis.OFFICIAL) and is_known:
            return Verdict.FAIL
    return Verdict.NOT_CHECKED


def _findings(
    findings: Iterable[Finding], sets: Iterable[SetResult], drifts: Sequence[Drift]
) -> Iterator[Finding]:
    """Yield findings; those that compare with points that differ say so."""
    rows = [result.row for result in sets]
    sets_with_other_points = {row.id for row in rows if _has_other_points(drifts, row)}
    for finding in findings:
        if finding.set in sets_with_other_points and finding.code.startswith(_OF_POINTS):
            yield replace(finding, message=f"{finding.message}, {_by_other_points()}")
        else:
            yield finding
