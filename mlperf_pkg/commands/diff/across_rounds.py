"""Findings between two sides of different rounds: copied runs, Previews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mlperf_pkg.checker.fold import copies_in, find_pairs
from mlperf_pkg.checker.values import Checked
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import Pair, check_previews, has_several_rounds, shared_runs
from mlperf_pkg.findings import Finding, folded, in_order


def across_rounds(names: Sequence[str], checks: Sequence[Checked]) -> tuple[Finding, ...]:
    """Return the findings between the sides; their ``names`` begin the paths.

    There are none between sides of one round, which are versions of each other.
    """
    sides = [list(_contexts(name, checks, index)) for index, name in enumerate(names)]
    contexts = [context for side in sides for context in side]
    if not has_several_rounds(contexts):
        return ()
    sources = {
        _below(name, label): place.source
        for name, checked in zip(names, checks, strict=True)
        for label, place in checked.inputs[0].places.items()
    }
    of_sides, old = shared_runs(contexts), len(sides[0])
    pairs = (p for p in find_pairs(contexts, of_sides, sources) if _is_across(p, old))
    findings = copies_in(contexts, pairs)
    if not any(map(has_several_rounds, sides)):
        minutes = [row.score_minutes for checked in checks for row in checked.report.result_sets]
        for index, finding in check_previews(contexts, minutes):
            findings.setdefault(index, []).append(finding)
    return in_order(
        finding
        for index, of_set in findings.items()
        for finding in _folded(of_set, contexts[index])
    )


def _folded(findings: Sequence[Finding], context: SetContext) -> list[Finding]:
    return folded(findings, context.label, [run.path for run in context.runs], context.id)


def _is_across(pair: Pair, old: int) -> bool:
    """Return whether a pair is from different sides and rounds."""
    first, second = pair.original, pair.copy
    is_of_sides = (first.index < old) != (second.index < old)
    return is_of_sides and first.context.round.name != second.context.round.name


def _contexts(name: str, checks: Sequence[Checked], index: int) -> Iterator[SetContext]:
    """Yield the sets of a side, with paths below its name.

    If both sides are single submissions, their names may differ.
    """
    alone = all(len(checked.inputs[0].submissions) == 1 for checked in checks)
    submitter = checks[0].inputs[0].submissions[0].name if alone else None
    for context in checks[index].contexts:
        place = context.files.place
        label = _below(name, place.label)
        yield replace(
            context,
            files=replace(context.files, place=replace(place, label=label)),
            runs=tuple(replace(run, path=_below(name, run.path)) for run in context.runs),
            submitter=submitter or context.submitter,
            id=f"{context.id} in {name.rstrip('/')}",
        )


def _below(name: str, label: str) -> str:
    return f"{name.rstrip('/')}/{label}"
