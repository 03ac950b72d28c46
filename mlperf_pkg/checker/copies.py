"""Compare all result sets that are checked together: runs, and Previews with later results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

from msgspec.structs import replace

from mlperf_pkg.checker.judge import JudgedPlan
from mlperf_pkg.checker.reading import size_of
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import Pair, pairs_of
from mlperf_pkg.checks.copy_rules import findings_on
from mlperf_pkg.checks.previews import check_previews
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.checks.shared_runs import Members, has_several_rounds
from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts
from mlperf_pkg.infra.source import Source
from mlperf_pkg.published.model import digests_of


def with_comparisons(
    judged: Sequence[JudgedPlan], groups: Sequence[Members], waivers: Waivers
) -> list[JudgedPlan]:
    """Return the judged plans with the findings of comparisons; ``groups`` are shared runs."""
    contexts = [context for item in judged for context in item.contexts]
    runs = ((index, run) for group in groups for index in group for run in group[index])
    sources = {run.path: contexts[index].sources[run.path] for index, run in runs}
    findings = copies_in(contexts, find_pairs(contexts, groups, sources))
    if has_several_rounds(contexts):
        minutes = [result.row.score_minutes for item in judged for result in item.sets]
        for index, finding in check_previews(contexts, minutes):
            findings.setdefault(index, []).append(finding)
    by_set = iter([waivers.waive(findings.get(index, ())) for index in range(len(contexts))])
    return [_with_findings(item, list(islice(by_set, len(item.sets)))) for item in judged]


def find_pairs(
    contexts: Sequence[SetContext], groups: Sequence[Members], sources: Mapping[str, Source]
) -> list[Pair]:
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
    return pairs_of(contexts, groups, digests_of(candidates))


def copies_in(contexts: Sequence[SetContext], pairs: Iterable[Pair]) -> dict[int, list[Finding]]:
    """Return the findings on sets with copies, by the index of the set, one for each run."""
    by_copy: dict[int, list[Pair]] = {}
    for pair in pairs:
        by_copy.setdefault(pair.copy.index, []).append(pair)
    measured = (context for context in contexts if context.files.power) if by_copy else ()
    with_power = {context.tree for context in measured}
    return {index: list(findings_on(of_set, with_power)) for index, of_set in by_copy.items()}


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
