"""Fold what was judged into one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlperf_pkg import __version__
from mlperf_pkg.checker.judge import JudgedPlan
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import Finding, Verdicts, folded, in_order, verdicts_of, without_pass
from mlperf_pkg.infra.numbers import is_number
from mlperf_pkg.infra.resources import installed_version
from mlperf_pkg.infra.rules_folders import rules_context
from mlperf_pkg.results.report import Report, RunRow, SystemRow
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.model import Run


def fold(judged: Sequence[JudgedPlan], runs: Sequence[Run], skipped: Iterable[Finding]) -> Report:
    """Return the report on everything judged; ``skipped`` are findings outside the plans."""
    sets = [result for item in judged for result in item.sets]
    dropped = {path: reason for result in sets for path, reason in result.dropped.items()}
    rounds = sorted(_rounds(judged, runs))
    verdict = Verdicts.worst(item.verdict for item in judged)
    findings = in_order([*(f for item in judged for f in item.findings), *folded(skipped)])
    usages = {usage for usage, _ in rounds} | {item.plan.usage or "" for item in judged}
    return Report(
        tool=tool(),
        usage=" and ".join(sorted(filter(None, usages))),
        round=rounds[0][1] if len(rounds) == 1 else None,
        round_reason=_round_reason(judged, runs, rounds),
        verdict=without_pass(verdict, findings),
        systems=tuple(
            system_row(system, item.plan.usage or "", item.plan.round or "")
            for item in judged
            for system in item.systems
        ),
        result_sets=tuple(result.row for result in sets),
        runs=tuple(_run_row(run, dropped.get(run.path)) for run in runs),
        findings=findings,
    )


def _rounds(judged: Sequence[JudgedPlan], runs: Sequence[Run]) -> set[tuple[str, str]]:
    """Return the usage and the name of the rounds of the runs, and of submissions without any."""
    plans = (item.plan for item in judged)
    of_plans = {(plan.usage, plan.round) for plan in plans if plan.usage and plan.round}
    return {(run.usage, run.round) for run in runs} | of_plans


def _round_reason(
    judged: Sequence[JudgedPlan], runs: Sequence[Run], rounds: Sequence[tuple[str, str]]
) -> str:
    if len(rounds) > 1:
        differ = len({usage for usage, _ in rounds}) > 1
        names = (f"{usage} {name}" if differ else name for usage, name in rounds)
        return f"several rounds: {', '.join(names)}"
    reasons = {item.plan.reason for item in judged if item.plan.reason}
    reasons = reasons or {run.round_reason for run in runs}
    return min(reasons, default="no log and no folder name gives the round")


def tool() -> dict[str, str]:
    """Return our version, the rulebook's, and that of the installed official checker."""
    reference = f"mlperf-logging {installed_version('mlperf-logging')}"
    rulebook = " and ".join([__version__, *map(str, rules_context())])
    return {"version": __version__, "rulebook": rulebook, "reference": reference}


def system_row(system: SystemFile, usage: str, round_name: str) -> SystemRow:
    """Return a system description as a row of a report on a round."""
    return SystemRow(
        id=system.id,
        path=system.path,
        submitter=system.submitter,
        division=system.division,
        status=system.status,
        accelerators=system.accelerators,
        verdict=known_verdicts(verdicts_of(system.findings), usage, round_name),
    )


def _run_row(run: Run, dropped: str | None) -> RunRow:
    to_converge = run.convergence.to_converge if run.convergence.converged else None
    return RunRow(
        path=run.path,
        verdict=run.verdicts,
        benchmark=run.benchmark,
        division=run.division,
        round=run.round,
        minutes=run.minutes,
        official_minutes=run.official_minutes,
        status=run.status,
        records=run.records,
        samples_to_converge=to_converge if is_number(to_converge) else None,
        dropped=dropped,
    )
