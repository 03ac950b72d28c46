"""Compare the runs of all result sets that are checked together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from mlperf_pkg.checker.judge import JudgedPlan
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import Pair, pairs_of, tree_of
from mlperf_pkg.checks.copy_rules import findings_on
from mlperf_pkg.checks.result_sets import SetResult
from mlperf_pkg.checks.shared_runs import Members
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts, folded
from mlperf_pkg.infra.source import Source

_CHUNK = 1 << 20


def with_copies(
    judged: Sequence[JudgedPlan], groups: Sequence[Members], waivers: Waivers
) -> list[JudgedPlan]:
    """Return what was judged, with the findings on runs that are in several result sets."""
    contexts = [context for item in judged for context in item.contexts]
    sources = {log.source.label: log.source for item in judged for log in item.plan.logs}
    copies = copies_in(contexts, groups, sources)
    findings = {path: waivers.waive(of_set) for path, of_set in copies.items()}
    return [_with_findings(item, findings) for item in judged]


def find_pairs(
    contexts: Sequence[SetContext], groups: Sequence[Members], sources: Mapping[str, Source]
) -> list[Pair]:
    """Return the pairs of result sets with the same runs; ``sources`` are the logs, by path."""
    paths = {run.path for group in groups for runs in group.values() for run in runs}
    return pairs_of(contexts, groups, _digests(sources[path] for path in paths & sources.keys()))


def copies_in(
    contexts: Sequence[SetContext], groups: Sequence[Members], sources: Mapping[str, Source]
) -> dict[str, list[Finding]]:
    """Return the findings on the sets that hold copies, by their path, one for each run."""
    pairs: dict[str, list[Pair]] = {}
    for pair in find_pairs(contexts, groups, sources):
        pairs.setdefault(pair.copy.context.path, []).append(pair)
    measured = (context for context in contexts if context.files.power) if pairs else ()
    with_power = {tree_of(context) for context in measured}
    return {path: list(findings_on(of_set, with_power)) for path, of_set in pairs.items()}


def with_findings(result: SetResult, findings: Iterable[Finding]) -> SetResult:
    """Return a result set with more findings, which may fail it."""
    more = tuple(findings)
    row = replace(result.row, verdict=_failed(result.row.verdict, more))
    return replace(result, row=row, findings=(*result.findings, *more))


def _with_findings(item: JudgedPlan, findings: Mapping[str, Sequence[Finding]]) -> JudgedPlan:
    of_plan = {s.row.path: findings[s.row.path] for s in item.sets if s.row.path in findings}
    if not of_plan:
        return item
    together = [
        finding
        for result in item.sets
        for finding in folded(of_plan.get(result.row.path, ()), result.row.path, result.runs)
    ]
    return replace(
        item,
        verdict=_failed(item.verdict, together),
        sets=tuple(with_findings(s, of_plan.get(s.row.path, ())) for s in item.sets),
        findings=(*item.findings, *together),
    )


def _failed(verdicts: Verdicts, findings: Iterable[Finding]) -> Verdicts:
    is_failed = any(finding.fails(Basis.RULES) for finding in findings)
    return replace(verdicts, rules=Verdict.FAIL) if is_failed else verdicts


def _digests(sources: Iterable[Source]) -> dict[str, bytes]:
    """Return the digests of logs by path, without those that cannot be read."""
    from hashlib import sha256  # noqa: PLC0415 - most checks need none

    digests = {}
    for source in sources:
        digest = sha256()
        with suppress(OSError, UserError), source.open() as stream:
            for chunk in iter(partial(stream.read, _CHUNK), b""):
                digest.update(chunk)
            digests[source.label] = digest.digest()
    return digests
