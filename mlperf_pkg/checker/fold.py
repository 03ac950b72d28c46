"""Fold what was judged into one report, with the findings that compare result sets."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

from msgspec.structs import replace

from mlperf_pkg import __version__
from mlperf_pkg.checker.judge import JudgedPlan
from mlperf_pkg.checker.reading import guarded, size_of
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks import copies
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.published import check_readable
from mlperf_pkg.checks.result_sets import SetResult, not_described
from mlperf_pkg.checks.tree import check_input
from mlperf_pkg.findings import (
    Basis,
    Finding,
    Unchecked,
    Verdict,
    Verdicts,
    folded,
    in_order,
    verdicts_of,
    without_pass,
)
from mlperf_pkg.infra.json_values import is_number
from mlperf_pkg.infra.resources import installed_version, rules_context
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published.model import digests_of
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
    stale = list(waivers.stale(findings))
    if stale:
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
    if not contexts[1:]:
        return judged

    action = "comparing the result sets"
    compared = guarded(".", action, _with_comparisons, judged, contexts, waivers)
    if not isinstance(compared, Unchecked):
        return compared
    findings = (*judged[0].findings, compared)
    verdict = without_pass(judged[0].verdict, findings)
    return [replace(judged[0], findings=findings, verdict=verdict), *judged[1:]]


def _report(
    judged: Sequence[JudgedPlan], runs: Sequence[Run], findings: tuple[Finding, ...]
) -> Report:
    """Return the report on the judged plans with these findings."""
    sets = [result for item in judged for result in item.sets]
    dropped = {path: reason for result in sets for path, reason in result.dropped.items()}
    ids = {path: result.row.id for result in sets for path in result.runs}
    of_plans = {(item.plan.usage, item.plan.round) for item in judged}
    named = {(usage, name) for usage, name in of_plans if usage and name}
    rounds = sorted({(run.usage, run.round) for run in runs} | named)
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


# ---- comparisons of result sets: runs, and Previews with later results --------------------


def _with_comparisons(
    judged: Sequence[JudgedPlan], contexts: Sequence[SetContext], waivers: Waivers
) -> list[JudgedPlan]:
    """Return the judged plans with the findings of comparisons of their ``contexts``."""
    groups = copies.shared_runs(contexts)
    runs = ((index, run) for group in groups for index in group for run in group[index])
    sources = {run.path: contexts[index].sources[run.path] for index, run in runs}
    pairs = find_pairs(contexts, groups, sources)
    findings = copies_in(contexts, pairs)
    copied = {owner.index for pair in pairs for owner in (pair.original, pair.copy)}
    seeds = (item for item in copies.check_seeds(contexts) if item[0] not in copied)
    minutes = [result.row.score_minutes for item in judged for result in item.sets]
    is_one_round = not copies.has_several_rounds(contexts)
    previews = () if is_one_round else copies.check_previews(contexts, minutes)
    for index, finding in (*seeds, *copies.check_swapped(contexts), *previews):
        findings.setdefault(index, []).append(finding)
    by_set = iter([waivers.waive(findings.get(index, ())) for index in range(len(contexts))])
    return [_with_findings(item, list(islice(by_set, len(item.sets)))) for item in judged]


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
        sizes = {0 if log.compression else size_of(log) for log in logs.values()}
        candidates |= logs if 0 in sizes or len(sizes) < len(logs) else {}
    return copies.pairs_of(contexts, groups, digests_of(candidates))


def copies_in(
    contexts: Sequence[SetContext], pairs: Iterable[copies.Pair]
) -> dict[int, list[Finding]]:
    """Return the findings on sets with copies, by the index of the set, one for each run."""
    by_copy: dict[int, list[copies.Pair]] = {}
    for pair in pairs:
        by_copy.setdefault(pair.copy.index, []).append(pair)
    measured = (context for context in contexts if context.files.power) if by_copy else ()
    with_power = {context.tree for context in measured}
    return {n: list(copies.findings_on(of_set, with_power)) for n, of_set in by_copy.items()}


def with_findings(result: SetResult, findings: Sequence[Finding]) -> SetResult:
    """Add findings, which may fail the result set."""
    row = replace(result.row, verdict=_failed(result.row.verdict, findings))
    return replace(result, row=row, findings=(*result.findings, *findings))


def _with_findings(item: JudgedPlan, by_set: Sequence[Sequence[Finding]]) -> JudgedPlan:
    """Add findings, by set, to a judged plan."""
    if not any(by_set):
        return item
    pairs = list(zip(item.sets, by_set, strict=True))
    more = [f for result, of_set in pairs for f in result.folded(of_set)]
    return replace(
        item,
        verdict=_failed(item.verdict, more),
        sets=tuple(with_findings(result, of_set) for result, of_set in pairs),
        findings=(*item.findings, *more),
    )


def _failed(verdicts: Verdicts, findings: Iterable[Finding]) -> Verdicts:
    is_failed = any(finding.fails(Basis.RULES) for finding in findings)
    return replace(verdicts, rules=Verdict.FAIL) if is_failed else verdicts
