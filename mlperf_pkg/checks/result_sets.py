"""Result sets: number of runs, seeds, convergence against the reference, and the score."""

from __future__ import annotations

import json
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.consistency import CHECKS as IDENTITY_CHECKS
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.power import check_power, energy
from mlperf_pkg.checks.rcp import check_rcp, rcp_row, rcp_test
from mlperf_pkg.checks.runs import (
    check_count,
    check_folder,
    check_system_file,
    for_information,
    forgiven,
)
from mlperf_pkg.checks.seeds import check_seeds, seed_findings
from mlperf_pkg.checks.summarized import Summarized, summarized
from mlperf_pkg.checks.weak_scaling import check_scale, instance_scale, models, weak_set_score
from mlperf_pkg.findings import Finding, Verdict, Verdicts, verdicts_of, without_official
from mlperf_pkg.results import rcp, scoring
from mlperf_pkg.results.report import ResultSetRow, SeedsRow

_SKIPPED = "the package checker skips this folder"


class SetResult(Struct, frozen=True):
    """What came of a set: its row, its own findings, those of its runs, and the dropped runs.

    ``summarized`` is what only the official tables need of it.
    """

    row: ResultSetRow
    findings: tuple[Finding, ...]
    run_findings: tuple[Finding, ...]
    dropped: dict[str, str]
    summarized: Summarized


def check_set(case: SetContext) -> SetResult:
    """Judge and score one result set."""
    tested, seeds = rcp_test(case), tuple(seed_findings(case))
    findings = [finding for check in _CHECKS for finding in check(case)]
    findings += check_seeds(case, seeds)
    findings += check_rcp(case, tested)
    run_findings = [finding for run in case.runs for finding in run.findings]
    if case.loose:
        findings = [for_information(finding) for finding in findings]
        verdict = Verdicts.worst(run.verdicts for run in case.runs)
    else:
        run_findings = list(forgiven(case))
        if case.skipped:
            findings, run_findings = unread(findings, _SKIPPED), unread(run_findings, _SKIPPED)
        verdict = _verdict(case, findings, run_findings)
    score = weak_set_score(case) if case.weak else _score(case)
    return SetResult(
        row=_row(case, verdict, score, tested, SeedsRow(not seeds)),
        findings=tuple(findings),
        run_findings=tuple(run_findings),
        dropped=dict(score.dropped),
        summarized=summarized(case, _scaling_factor(case.files.scaling), tested),
    )


def _score(case: SetContext) -> scoring.Score:
    times = [scoring.RunTime(run.path, run.minutes, run.converged) for run in case.runs]
    return scoring.score(times, case.drop, case.rules.runs.required if case.rules else len(times))


def unread(findings: Iterable[Finding], hint: str) -> list[Finding]:
    """Findings about what the official checker does not read; only the description it looks for.

    ``hint`` says why it does not.
    """
    return [f if f.code == "SET110" else without_official(f, hint) for f in findings]


def _verdict(case: SetContext, own: list[Finding], of_runs: list[Finding]) -> Verdicts:
    verdict = verdicts_of([*own, *of_runs])
    if case.skipped and verdict.official is Verdict.PASS:
        verdict = replace(verdict, official=Verdict.NOT_CHECKED)
    if case.rules is None and verdict.rules is Verdict.PASS:
        verdict = replace(verdict, rules=Verdict.NOT_CHECKED)
    return verdict


def _row(
    case: SetContext,
    verdict: Verdicts,
    score: scoring.Score,
    tested: rcp.RcpResult | None,
    seeds: SeedsRow,
) -> ResultSetRow:
    given = None if case.weak else _scaling_factor(case.files.scaling)
    factor = _normalisation(case, tested) if given is None else given
    official = _official_minutes(case)
    return ResultSetRow(
        path=case.path,
        submitter=case.submitter,
        system=case.files.system,
        benchmark=case.files.benchmark,
        division=case.division,
        round=case.round.name,
        verdict=verdict,
        runs_found=len(case.runs),
        runs_required=case.rules.runs.required if case.rules else None,
        score_minutes=None if score.minutes is None else score.minutes * factor,
        unscaled_minutes=score.minutes,
        scaling_factor=factor,
        official_minutes=None if official is None else official * (1.0 if given is None else given),
        score_note=score.reason,
        rcp=rcp_row(case, tested),
        seeds=seeds,
        energy_joules=energy(case, 1.0 if given is None else given).joules,
        scaling=case.files.scaling_mode,
        number_of_models=models(case),
        instance_scale=instance_scale(case),
    )


def _normalisation(case: SetContext, tested: rcp.RcpResult | None) -> float:
    """The factor by which a Closed set that beats the reference is slowed down."""
    applies = case.round.normalised and case.closed and not case.weak
    return tested.normalization if applies and tested and tested.official_pass else 1.0


def _scaling_factor(text: str | None) -> float | None:
    """The factor in ``scaling.json``; None where there is no file or no number in it."""
    try:
        factor = json.loads(text)["scaling_factor"] if text is not None else None
    except (ValueError, TypeError, KeyError):
        return None
    return float(factor) if isinstance(factor, int | float) else None


def _official_minutes(case: SetContext) -> float | None:
    """The olympic mean of the logs that the official checker passes, before scaling."""
    if any(run.crash for run in case.runs) or energy(case).died:
        return None
    minutes = [
        run.official_minutes
        for run in case.runs
        if run.verdicts.official is Verdict.PASS and run.official_minutes is not None
    ]
    dropped = len(case.runs) - len(minutes)
    return scoring.olympic_mean(minutes, case.drop, dropped) if dropped <= case.drop else None


_CHECKS = (
    check_count,
    check_folder,
    check_system_file,
    check_power,
    check_scale,
    *IDENTITY_CHECKS,
)
