"""Judge what was read: submissions, systems, result sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.plan import Plan
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.contents import check_contents, of_systems
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.glob_names import check_as_found
from mlperf_pkg.checks.repository import FIRST_ROUND, check_repository
from mlperf_pkg.checks.result_sets import SetResult, check_set
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.checks.tree import check_tree
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, verdicts_of
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.model import Place, ResultSet, Submission

# ---- judging ------------------------------------------------------------------------------


class Judged(Struct, frozen=True):
    """A plan with its verdicts, system descriptions, result sets and findings."""

    plan: Plan
    verdict: Verdicts
    systems: tuple[SystemFile, ...]
    sets: tuple[SetResult, ...]
    findings: tuple[Finding, ...]


def judge(
    plan: Plan, runs: dict[str, Run], measured: dict[str, PowerLog], waivers: Waivers
) -> Judged:
    """Judge one submission, or the loose logs of one argument."""
    own = [runs[log.source.label] for log in plan.logs]
    if plan.submission is None:
        sets = tuple(waivers.on_set(check_set(case)) for case in _loose_sets(own))
        findings = [finding for each in sets for finding in each.findings]
        findings += [finding for run in own for finding in run.findings]
        return Judged(plan, Verdicts.worst(run.verdicts for run in own), (), sets, tuple(findings))
    return _judge_submission(plan, plan.submission, runs, measured, waivers)


def _judge_submission(
    plan: Plan,
    submission: Submission,
    runs: dict[str, Run],
    measured: dict[str, PowerLog],
    waivers: Waivers,
) -> Judged:
    if plan.round is None:
        alone = waivers.on_findings(check_contents(submission))
        verdict = replace(verdicts_of(alone), official=Verdict.NOT_CHECKED)
        return Judged(plan, verdict, (), (), alone)
    systems = tuple(
        waivers.on_system(_check_system(place, plan.usage, plan.round))
        for place in submission.systems
    )
    by_id, code = {system.id: system for system in systems}, submission.code
    round_ = load_round(plan.usage, plan.round)
    cases = (
        SetContext(
            files=files,
            runs=tuple(runs[place.label] for place in files.logs),
            round=round_,
            rules=load_benchmark(plan.usage, plan.round, files.benchmark),
            submitter=submission.name,
            system=by_id.get(files.system or ""),
            code=code,
            measured=measured,
        )
        for files in submission.result_sets
    )
    sets = tuple(waivers.on_set(check_as_found(case, submission, runs)) for case in cases)
    findings = list(waivers.on_findings(_around_sets(submission, systems, round_)))
    verdict = Verdicts.worst([verdicts_of(findings), *(each.row.verdict for each in sets)])
    findings += [f for each in sets for f in (*each.findings, *each.run_findings)]
    return Judged(plan, verdict, systems, sets, tuple(findings))


def _around_sets(
    submission: Submission, systems: Sequence[SystemFile], round_: Round
) -> Iterator[Finding]:
    """What is found in a submission outside its result sets."""
    yield from of_systems(submission, systems, round_.version)
    yield from check_contents(submission)
    yield from check_tree(submission, round_.usage, round_.benchmarks)
    if round_.version >= FIRST_ROUND:
        yield from check_repository(submission.name, submission.place.label, submission.entries)


def _check_system(place: Place, usage: str, round_: str) -> SystemFile:
    with place.source.open() as stream:
        return check_system(place.label, stream.read(), usage, round_)


def _loose_sets(runs: Iterable[Run]) -> list[SetContext]:
    """Loose logs that belong together: one folder, system, benchmark, division and round."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        folder = run.path.rpartition("/")[0]
        key = (folder, run.text("platform"), run.benchmark, run.division, run.round)
        groups.setdefault(key, []).append(run)
    return [
        SetContext(
            files=ResultSet(Place(Path(key[0]), key[0] or "."), key[1] or None, key[2], ()),
            runs=tuple(members),
            round=load_round(members[0].usage, members[0].round),
            rules=load_benchmark(members[0].usage, members[0].round, key[2]),
            loose=True,
        )
        for key, members in groups.items()
        if key[2]
    ]


def not_followed(place: Place) -> Finding:
    """Report a link that leads out of the input."""
    return Finding(
        code="TREE102",
        message="a link that leads out of the folder that is checked: not followed, not checked",
        path=place.label,
        severity=Severity.WARNING,
        basis=Basis.ADVICE,
        source="mlperf-pkg: inputs come from strangers",
    )
