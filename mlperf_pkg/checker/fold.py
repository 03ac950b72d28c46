"""Fold what was judged into one report, with the findings that compare result sets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count

from msgspec.structs import replace

from mlperf_pkg import __version__
from mlperf_pkg.checker.judge import JudgedPlan, with_failures
from mlperf_pkg.checker.reading import Guard, guarded, size_of
from mlperf_pkg.checker.unverified import without_unverified
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks import copies
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile, batch_size_of
from mlperf_pkg.checks.published import check_readable
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.checks.tree import check_input
from mlperf_pkg.findings import (
    Finding,
    Severity,
    Unchecked,
    Verdicts,
    folded,
    in_files,
    in_order,
    in_report,
    verdicts_of,
    without_pass,
)
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.infra.resources import rules_context
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published.model import digests_of
from mlperf_pkg.results.report import Report, ResultSetRow, RunRow, SystemRow
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.rulebook.verified import installed_name
from mlperf_pkg.run.model import Run, files_of
from mlperf_pkg.submission.model import Input


def fold(
    inputs: tuple[Input, ...],
    plans: Sequence[JudgedPlan],
    runs: Sequence[Run],
    run_rows: Sequence[RunRow],
    waivers: Waivers,
) -> Checked:
    """Return the report on the judged plans, with findings on inputs and between result sets.

    ``run_rows`` are those of all ``runs``, in their order.
    """
    plan_findings: list[Finding] = []
    sets: list[SetResult] = []
    systems: list[SystemFile] = []
    contexts: list[SetContext] = []
    judged_plans = _compared(plans, waivers)
    for judged in judged_plans:
        plan_findings += judged.findings
        sets += judged.sets
        systems += judged.systems
        contexts += judged.contexts
    outside = _outside_plans(inputs, plan_findings, waivers)
    findings = _explained([*plan_findings, *outside], runs, contexts)
    verdict = Verdicts.worst(judged.verdict for judged in judged_plans)
    verdict = without_pass(with_failures(verdict, outside), findings)
    rounds = _rounds(judged_plans, runs)
    report = _report(
        judged_plans, sets, runs, run_rows, rounds=rounds, findings=findings, verdict=verdict
    )
    checked = Checked(
        report=report.with_companies,
        inputs=inputs,
        runs=tuple(runs),
        sets=tuple(sets),
        systems=tuple(systems),
        contexts=tuple(contexts),
    )
    return without_unverified(checked, rounds)


def _outside_plans(
    inputs: Iterable[Input], plan_findings: Sequence[Finding], waivers: Waivers
) -> list[Finding]:
    """Return the findings on inputs, on the published results, and on waivers."""
    unread: list[Finding] = []
    for input_ in inputs:
        unread += check_input(input_)
    unread += check_readable()
    outside = folded(waivers.waive(unread))
    stale = waivers.stale([*plan_findings, *outside])
    return [*outside, *folded(stale)]


def _explained(
    findings: Sequence[Finding], runs: Sequence[Run], contexts: Iterable[SetContext]
) -> tuple[Finding, ...]:
    """Return all findings in order, at places in files, with their ids and causes."""
    files = files_of(runs)
    explained = in_report(findings)
    if any(finding.severity is not Severity.NOTE for finding in findings):
        from mlperf_pkg.checks.causes import with_causes  # noqa: PLC0415 - notes have no causes

        result = guarded(".", "looking for causes", with_causes, explained, runs, contexts)
        if isinstance(result, Unchecked):
            result = in_report([*findings, result])
        explained = result
    if not files:
        return explained  # which is in order
    return in_order(in_files(finding, files) for finding in explained)


def _compared(judged_plans: Sequence[JudgedPlan], waivers: Waivers) -> Sequence[JudgedPlan]:
    """Add the findings that compare result sets with each other."""
    contexts = list(chain.from_iterable(judged.contexts for judged in judged_plans))
    if len(contexts) <= 1:
        return judged_plans
    with Guard(".", "comparing the result sets") as guard:
        return _with_comparisons(judged_plans, contexts, waivers)
    first = judged_plans[0]
    findings = (*first.findings, guard.finding)
    first = replace(first, findings=findings, verdict=without_pass(first.verdict, findings))
    return [first, *judged_plans[1:]]


# ---- the report ---------------------------------------------------------------------------


def _report(
    judged_plans: Sequence[JudgedPlan],
    sets: Sequence[SetResult],
    runs: Sequence[Run],
    run_rows: Sequence[RunRow],
    *,
    rounds: Sequence[tuple[str, str]],
    findings: tuple[Finding, ...],
    verdict: Verdicts,
) -> Report:
    """Return the report on the judged plans of these rounds, with findings and a verdict."""
    usages = {usage for usage, _ in rounds}
    configurations: list[str] = []
    for judged in judged_plans:
        usages.add(judged.plan.usage or "")
        if judged.configuration:
            configurations.append(judged.configuration)
    return Report(
        tool=tool(),
        usage=" and ".join(sorted(filter(None, usages))),
        round=rounds[0][1] if len(rounds) == 1 else None,
        round_reason=_round_reason(judged_plans, runs, rounds),
        verdict=verdict,
        systems=tuple(chain.from_iterable(map(_system_rows, judged_plans))),
        result_sets=tuple(result.row for result in sets),
        runs=tuple(run_rows),
        findings=findings,
        configuration="---\n".join(configurations),
    )


def _rounds(judged_plans: Sequence[JudgedPlan], runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return the usages and rounds of all runs and of all plans that have one, sorted."""
    rounds = {(run.usage, run.round) for run in runs}
    for judged in judged_plans:
        if judged.plan.usage and judged.plan.round:
            rounds.add((judged.plan.usage, judged.plan.round))
    return sorted(rounds)


def _round_reason(
    judged_plans: Sequence[JudgedPlan], runs: Sequence[Run], rounds: Sequence[tuple[str, str]]
) -> str:
    if len(rounds) > 1:
        names = [name for _, name in rounds]
        if len({usage for usage, _ in rounds}) > 1:
            names = [f"{usage} {name}" for usage, name in rounds]
        return f"several rounds: {', '.join(names)}"
    reasons = {judged.plan.reason for judged in judged_plans if judged.plan.reason}
    if not reasons:
        reasons = {run.round_reason for run in runs}
    return min(reasons, default="neither a log nor the name of a folder names the round")


def tool() -> dict[str, str]:
    """Return our version, the rulebook's, and that of the installed official checker."""
    rulebook = " and ".join([__version__, *map(str, rules_context())])
    return {"version": __version__, "rulebook": rulebook, "reference": installed_name()}


def _system_rows(judged: JudgedPlan) -> Iterator[SystemRow]:
    """Yield the system descriptions of a plan, failed also by what was found around them."""
    by_subject: dict[str, list[Finding]] = {}
    for finding in judged.findings:
        by_subject.setdefault(finding.about, []).append(finding)
    for system in judged.systems:
        row = system_row(system, judged.plan.usage or "", judged.plan.round or "")
        system_findings = by_subject.get(system.path, ())
        yield replace(row, verdict=with_failures(row.verdict, system_findings))


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


def run_rows_of(judged: JudgedPlan, runs: Iterable[Run]) -> Iterator[RunRow]:
    """Yield the runs of a plan with what is known of them by their result sets."""
    set_rows: dict[str, ResultSetRow] = {}
    dropped: dict[str, str] = {}
    energies: dict[str, float] = {}
    accelerators: dict[str, int | None] = {}
    units: dict[str, str] = {}
    for result, context in zip(judged.sets, judged.contexts, strict=True):
        set_rows |= dict.fromkeys(result.runs, result.row)
        dropped |= result.dropped
        energies |= result.energies
        if context.system:
            accelerators |= dict.fromkeys(result.runs, context.system.accelerators)
        if context.rules:
            units |= dict.fromkeys(result.runs, context.rules.unit)
    for run in runs:
        set_row = set_rows.get(run.path)
        to_converge = run.convergence.to_converge if run.convergence.converged else None
        yield RunRow(
            path=run.file,
            lines=run.lines,
            set=set_row.id if set_row else None,
            verdict=run.verdicts,
            benchmark=run.benchmark,
            division=run.division,
            round=run.round,
            minutes=run.minutes,
            official_minutes=run.official_minutes,
            status=run.status,
            records=run.records,
            samples_to_converge=to_converge if is_number(to_converge) else None,
            dropped=dropped.get(run.path),
            usage=run.usage,
            start=_time(run.start_ms),
            submitter=set_row.submitter if set_row else None,
            system=set_row.system if set_row else None,
            batch_size=batch_size_of([run]),
            accelerators=run.instance_scale or accelerators.get(run.path),
            energy_joules=energies.get(run.path),
            convergence_unit=units.get(run.path),
        )


def _time(milliseconds: float | None) -> datetime | None:
    """Return a time in milliseconds since the epoch; None outside of the calendar."""
    if milliseconds is None:
        return None
    try:
        time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


# ---- comparisons of result sets: runs, and Previews with later results --------------------


def _with_comparisons(
    judged_plans: Sequence[JudgedPlan], contexts: Sequence[SetContext], waivers: Waivers
) -> list[JudgedPlan]:
    """Return the judged plans with the findings of comparisons of their ``contexts``."""
    sets = chain.from_iterable(judged.sets for judged in judged_plans)
    minutes = [result.row.score_minutes for result in sets]
    sources: dict[str, Source] = {}
    for judged in judged_plans:
        sources |= judged.plan.sources
    comparisons = _comparisons(contexts, minutes, sources)
    compared: list[JudgedPlan] = []
    indexes = count()
    for judged in judged_plans:
        by_set = [waivers.waive(comparisons.get(next(indexes), ())) for _ in judged.sets]
        compared.append(_with_set_findings(judged, by_set))
    return compared


def _comparisons(
    contexts: Sequence[SetContext],
    minutes: Sequence[float | None],
    sources: Mapping[str, Source],
) -> dict[int, list[Finding]]:
    """Return the findings that compare result sets, by the index of the set.

    Sets with copies are not compared by their seeds, too, nor sets that repeat the runs of others.
    ``minutes`` are the scores, ``sources`` the logs by path.
    """
    related = copies.related_runs(contexts)
    groups = copies.shared_runs(contexts, related)
    pairs = find_pairs(contexts, groups, sources)
    findings = copies_in(contexts, pairs)
    copied: set[int] = set()
    for pair in pairs:
        copied |= {pair.original.index, pair.copy.index}
    comparisons = list(copies.check_repetitions(contexts, related))
    copied.update(index for index, _ in comparisons)
    for index, finding in copies.check_seeds(contexts):
        if index not in copied:
            comparisons.append((index, finding))
    comparisons += copies.check_swapped(contexts)
    if copies.has_several_rounds(contexts):
        comparisons += copies.check_previews(contexts, minutes)
    for index, finding in comparisons:
        findings.setdefault(index, []).append(finding)
    return findings


def find_pairs(
    contexts: Sequence[SetContext], groups: Sequence[copies.Members], sources: Mapping[str, Source]
) -> list[copies.Pair]:
    """Return the pairs of result sets with the same runs; ``sources`` are the logs, by path.

    The logs of a group are hashed only if two of them may have the same bytes: if they have the
    same size, or one is compressed, so that its size says nothing.
    """
    candidates: dict[str, Source] = {}
    for group in groups:
        runs = chain.from_iterable(group.values())
        logs = {run.path: sources[run.path] for run in runs if run.path in sources}
        is_compressed = any(log.compression for log in logs.values())
        sizes = {size_of(log) for log in logs.values()}
        if is_compressed or 0 in sizes or len(sizes) < len(logs):
            candidates |= logs
    return copies.pairs_of(contexts, groups, digests_of(candidates))


def copies_in(
    contexts: Sequence[SetContext], pairs: Iterable[copies.Pair]
) -> dict[int, list[Finding]]:
    """Return the findings on sets with copies, by the index of the set, one for each run."""
    by_copy: dict[int, list[copies.Pair]] = {}
    for pair in pairs:
        by_copy.setdefault(pair.copy.index, []).append(pair)
    if not by_copy:
        return {}
    with_power = {context.tree for context in contexts if context.files.power}
    findings: dict[int, list[Finding]] = {}
    for index, set_pairs in by_copy.items():
        findings[index] = list(copies.findings_on(set_pairs, with_power))
    return findings


def with_findings(result: SetResult, findings: Sequence[Finding]) -> SetResult:
    """Add findings, which may fail the result set."""
    row = replace(result.row, verdict=with_failures(result.row.verdict, findings))
    return replace(result, row=row, findings=(*result.findings, *findings))


def _with_set_findings(judged: JudgedPlan, by_set: Iterable[Sequence[Finding]]) -> JudgedPlan:
    """Add findings, by set, to a judged plan."""
    sets: list[SetResult] = []
    plan_findings: list[Finding] = []
    for result, findings in zip(judged.sets, by_set, strict=True):
        sets.append(with_findings(result, findings))
        plan_findings += result.folded(findings)
    return replace(
        judged,
        verdict=with_failures(judged.verdict, plan_findings),
        sets=tuple(sets),
        findings=(*judged.findings, *plan_findings),
    )
