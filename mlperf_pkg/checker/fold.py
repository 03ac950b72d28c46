"""Fold what was judged into one report."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mlperf_pkg import __version__
from mlperf_pkg.checker.guard import guarded
from mlperf_pkg.checker.judge import JudgedPlan
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.inputs import check_input
from mlperf_pkg.checks.published import check_readable
from mlperf_pkg.checks.result_sets import not_described
from mlperf_pkg.checks.shared_runs import has_several_rounds, shared_runs
from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.findings import Finding, Verdicts, folded, in_order, verdicts_of, without_pass
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.infra.resources import installed_version, rules_context
from mlperf_pkg.results.report import Report, RunRow, SystemRow
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.model import Input


def fold(
    inputs: tuple[Input, ...], plans: Sequence[JudgedPlan], runs: Sequence[Run], waivers: Waivers
) -> Checked:
    """Return the report on the judged plans, with findings on inputs and between result sets."""
    judged = _compared(plans, waivers)
    unread = [finding for input_ in inputs for finding in check_input(input_)]
    sets = tuple(result for item in judged for result in item.sets)
    outside = folded(waivers.waive([*unread, *check_readable()]))
    outside += waivers.waive(not_described(sets))
    findings = in_order([*(f for item in judged for f in item.findings), *outside])
    if stale := list(waivers.stale(findings)):
        findings = in_order([*findings, *folded(stale)])
    return Checked(
        report=_report(judged, runs, findings),
        inputs=inputs,
        runs=tuple(runs),
        sets=sets,
        systems=tuple(system for item in judged for system in item.systems),
        contexts=tuple(context for item in judged for context in item.contexts),
    )


def _compared(judged: Sequence[JudgedPlan], waivers: Waivers) -> Sequence[JudgedPlan]:
    """Add the findings that compare result sets with each other."""
    contexts = [context for item in judged for context in item.contexts]
    groups = shared_runs(contexts)
    if not groups and not has_several_rounds(contexts):
        return judged
    from mlperf_pkg.checker.copies import with_comparisons  # noqa: PLC0415 - few inputs need it

    return guarded(
        ".",
        "comparing the result sets",
        lambda: with_comparisons(judged, groups, waivers),
        lambda finding: [_with_defect(judged[0], finding), *judged[1:]],
    )


def _with_defect(item: JudgedPlan, finding: Finding) -> JudgedPlan:
    findings = (*item.findings, finding)
    return replace(item, findings=findings, verdict=without_pass(item.verdict, findings))


def _report(
    judged: Sequence[JudgedPlan], runs: Sequence[Run], findings: tuple[Finding, ...]
) -> Report:
    """Return the report on the judged plans with these findings."""
    sets = [result for item in judged for result in item.sets]
    dropped = {path: reason for result in sets for path, reason in result.dropped.items()}
    ids = {path: result.row.id for result in sets for path in result.runs}
    rounds = sorted(_rounds(judged, runs))
    usages = {usage for usage, _ in rounds} | {item.plan.usage or "" for item in judged}
    return Report(
        tool=tool(),
        usage=" and ".join(sorted(filter(None, usages))),
        round=rounds[0][1] if len(rounds) == 1 else None,
        round_reason=_round_reason(judged, runs, rounds),
        verdict=without_pass(Verdicts.worst(item.verdict for item in judged), findings),
        systems=tuple(
            system_row(system, item.plan.usage or "", item.plan.round or "")
            for item in judged
            for system in item.systems
        ),
        result_sets=tuple(result.row for result in sets),
        runs=tuple(_run_row(run, ids.get(run.path), dropped.get(run.path)) for run in runs),
        findings=findings,
        configuration="---\n".join(filter(None, (item.configuration for item in judged))),
    )


def _rounds(judged: Sequence[JudgedPlan], runs: Sequence[Run]) -> set[tuple[str, str]]:
    """Return the usage and name of each round of the runs, and of submissions without runs."""
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


def _run_row(run: Run, set_id: str | None, dropped: str | None) -> RunRow:
    to_converge = run.convergence.to_converge if run.convergence.converged else None
    return RunRow(
        path=run.path,
        set=set_id,
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
