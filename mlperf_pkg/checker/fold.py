"""Fold what was judged into one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlperf_pkg import __version__
from mlperf_pkg.checker.judge import Judged
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import Finding, Verdicts, verdicts_of
from mlperf_pkg.infra.resources import installed_version
from mlperf_pkg.results.report import Report, RunRow, SystemRow
from mlperf_pkg.run.model import Run

# ---- folding ------------------------------------------------------------------------------


def fold(judged: Sequence[Judged], runs: Sequence[Run], skipped: Iterable[Finding]) -> Report:
    """Return the report on all that was judged; ``skipped`` are findings of no submission."""
    dropped = {path: why for each in judged for s in each.sets for path, why in s.dropped.items()}
    findings = [finding for each in judged for finding in each.findings]
    findings += skipped
    usages = sorted({each.plan.usage for each in judged})
    named = {(run.round, run.round_reason) for run in runs}
    named |= {(each.plan.round, each.plan.reason) for each in judged if each.plan.round}
    rounds = sorted({name for name, _ in named if name})
    return Report(
        tool=tool(),
        usage=" and ".join(usages),
        round=rounds[0] if len(rounds) == 1 else None,
        round_reason=_reason(judged, runs, rounds),
        verdict=Verdicts.worst(each.verdict for each in judged),
        systems=tuple(system_row(system) for each in judged for system in each.systems),
        result_sets=tuple(s.row for each in judged for s in each.sets),
        runs=tuple(_run_row(run, dropped.get(run.path)) for run in runs),
        findings=in_order(findings),
    )


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by path, line and code."""
    return tuple(sorted(findings, key=lambda finding: finding.sort_key))


def _reason(judged: Sequence[Judged], runs: Sequence[Run], rounds: Sequence[str]) -> str:
    reasons = {each.plan.reason for each in judged if each.plan.reason}
    reasons = reasons or {run.round_reason for run in runs}
    if len(rounds) > 1:
        return f"several rounds: {', '.join(rounds)}"
    return min(reasons, default="nothing tells the round")


def tool() -> dict[str, str]:
    """What made a report: our version, the rulebook's, and the official checker's beside us."""
    reference = f"mlperf-logging {installed_version('mlperf-logging')}"
    return {"version": __version__, "rulebook": __version__, "reference": reference}


def system_row(system: SystemFile) -> SystemRow:
    """A system description as a row of a report."""
    return SystemRow(
        id=system.id,
        path=system.path,
        submitter=system.submitter,
        division=system.division,
        status=system.status,
        accelerators=system.accelerators,
        verdict=verdicts_of(system.findings),
    )


def _run_row(run: Run, dropped: str | None) -> RunRow:
    reached = run.convergence.to_converge if run.convergence.converged else None
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
        samples_to_converge=reached if isinstance(reached, int | float) else None,
        dropped=dropped,
    )
