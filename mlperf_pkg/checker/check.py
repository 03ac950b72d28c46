"""From the arguments of a command to a report: find, read, judge, fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg import __version__
from mlperf_pkg.checker.opening import opener, shared
from mlperf_pkg.checker.reading import Observer, Workers, read_all
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.contents import check_contents, of_systems
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.glob_names import check_as_found
from mlperf_pkg.checks.repository import FIRST_ROUND, check_repository
from mlperf_pkg.checks.result_sets import SetResult, check_set
from mlperf_pkg.checks.systems import SystemFile, check_system
from mlperf_pkg.checks.tree import check_tree
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.findings import Basis, Finding, Severity, Verdict, Verdicts, verdicts_of
from mlperf_pkg.infra.resources import installed_version
from mlperf_pkg.infra.stores import StoredPath
from mlperf_pkg.results.report import Report, RunRow, SystemRow
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.rulebook.rounds import round_of_tree
from mlperf_pkg.run.power import PowerFile, PowerLog
from mlperf_pkg.run.reading import LogFile, Run, infer_round
from mlperf_pkg.submission.find import Input, Place, ResultSet, Submission, find_input, labels
from mlperf_pkg.submission.params import TRAIN_SAMPLES


class Options(Struct, frozen=True):
    """What a user may set: ``usage`` and ``round`` None are inferred; ``jobs`` processes.

    ``scheduler`` is the address of that of a Dask cluster, whose workers read instead.
    ``config`` is what ``mlperf-pkg.yaml`` (at ``origin``) says, for what is not set here.
    """

    usage: str | None = None
    round: str | None = None
    jobs: int | None = None
    config: Config = field(default_factory=Config)
    origin: str = CONFIG_NAME
    observer: Observer | None = None
    scheduler: str | None = None


class Checked(Struct, frozen=True):
    """A report and the values behind it, for the commands that build on a check.

    ``systems`` and ``sets`` are in the order of the report's rows.
    """

    report: Report
    inputs: tuple[Input, ...]
    runs: tuple[Run, ...]
    sets: tuple[SetResult, ...]
    systems: tuple[SystemFile, ...]


def check(arguments: Sequence[str], options: Options) -> Checked:
    """Check files, folders, submissions or whole rounds.

    Raises:
        UserError: an argument is no such path, cannot be read or holds no log; the rulebook has
            no such round.
    """
    prefixes = labels(arguments)
    found = (find_input(arg, prefix) for arg, prefix in zip(arguments, prefixes, strict=True))
    return check_inputs(tuple(found), options)


def check_inputs(inputs: tuple[Input, ...], options: Options) -> Checked:
    """As ``check``, of what was found already.

    Raises:
        UserError: a log cannot be read; the rulebook has no such round.
    """
    waivers = Waivers(options.config.waivers, options.origin)
    waivers.check_codes()
    plans = [plan for given in inputs for plan in _plans(given, options)]
    logs = [log for plan in plans for log in plan.logs]
    power = [file for plan in plans for file in _power_files(plan)]
    if options.scheduler is not None:
        logs, power = list(map(shared, logs)), list(map(shared, power))
    workers = Workers(options.jobs, options.scheduler, partial(_load_rules, plans))
    read = read_all([*logs, *power], workers, options.observer)
    runs = [waivers.on_run(each) for each in read if isinstance(each, Run)]
    measured = {each.path: each for each in read if isinstance(each, PowerLog)}
    by_path = {run.path: run for run in runs}
    judged = [_judge(plan, by_path, measured, waivers) for plan in plans]
    skipped = [_not_followed(place) for given in inputs for place in given.skipped]
    report = _report(judged, runs, waivers.on_findings(skipped))
    if stale := list(waivers.stale(report.findings)):
        report = replace(report, findings=_ordered([*report.findings, *stale]))
    return Checked(
        report=report,
        inputs=inputs,
        runs=tuple(runs),
        sets=tuple(s for each in judged for s in each.sets),
        systems=tuple(s for each in judged for s in each.systems),
    )


# ---- planning -----------------------------------------------------------------------------


class _Plan(Struct, frozen=True):
    """One submission, or the loose logs of one argument (``submission`` None)."""

    submission: Submission | None
    usage: str
    round: str | None
    reason: str
    logs: tuple[LogFile, ...]


def _plans(given: Input, options: Options) -> Iterator[_Plan]:
    for submission in given.submissions:
        yield _plan_submission(submission, options)
    if given.logs:
        usage, round_, reason = round_for(given.logs[0].path, options)
        logs = tuple(_log_file(place, usage, round_) for place in given.logs)
        yield _Plan(None, usage, round_, reason, logs)


def _plan_submission(submission: Submission, options: Options) -> _Plan:
    usage, round_, reason = round_for(submission.place.path, options)
    places = [place for each in submission.result_sets for place in each.logs]
    if round_ is None and places:
        # Logs of earlier rounds may be submitted again: the youngest run tells.
        known = [infer_round(_log_file(place, usage, None)) for place in places]
        round_, reason = max(known, key=lambda pair: [int(part) for part in pair[0].split(".")])
    train_samples = bool(TRAIN_SAMPLES & submission.flags)
    logs = tuple(_log_file(place, usage, round_, train_samples) for place in places)
    return _Plan(submission, usage, round_, reason, logs)


def round_for(path: Path | StoredPath, options: Options) -> tuple[str, str | None, str]:
    """Usage, round and its reason as given, else as the folders above say; None: runs will tell."""
    found = round_of_tree(reversed(path.resolve().parts))
    usage = options.usage or options.config.usage or (found[0] if found else "training")
    if options.round:
        return usage, options.round, "as given"
    if options.config.round:
        return usage, options.config.round, f"as {options.origin} says"
    if found:
        return usage, found[1], f"the tree's name says v{found[1]}"
    return usage, None, ""


def _log_file(place: Place, usage: str, round_: str | None, train_samples: bool = False) -> LogFile:
    return LogFile(opener(place.path), place.label, usage, round_, train_samples)


def _power_files(plan: _Plan) -> Iterator[PowerFile]:
    for each in plan.submission.result_sets if plan.submission else ():
        for log in each.logs if each.power else ():
            for place, switch in each.power.logs(log.name) if each.power else ():
                yield PowerFile(opener(place.path), place.label, switch)


def _load_rules(plans: Sequence[_Plan]) -> None:
    """Once for all processes, where these are forks of this one."""
    for plan in plans:
        if plan.round and plan.submission:
            for name in {files.benchmark for files in plan.submission.result_sets}:
                load_benchmark(plan.usage, plan.round, name)


# ---- judging ------------------------------------------------------------------------------


class _Judged(Struct, frozen=True):
    plan: _Plan
    verdict: Verdicts
    systems: tuple[SystemFile, ...]
    sets: tuple[SetResult, ...]
    findings: tuple[Finding, ...]


def _judge(
    plan: _Plan, runs: dict[str, Run], measured: dict[str, PowerLog], waivers: Waivers
) -> _Judged:
    own = [runs[log.path] for log in plan.logs]
    if plan.submission is None:
        sets = tuple(waivers.on_set(check_set(case)) for case in _loose_sets(own))
        findings = [finding for each in sets for finding in each.findings]
        findings += [finding for run in own for finding in run.findings]
        return _Judged(plan, Verdicts.worst(run.verdicts for run in own), (), sets, tuple(findings))
    return _judge_submission(plan, plan.submission, runs, measured, waivers)


def _judge_submission(
    plan: _Plan,
    submission: Submission,
    runs: dict[str, Run],
    measured: dict[str, PowerLog],
    waivers: Waivers,
) -> _Judged:
    if plan.round is None:
        alone = waivers.on_findings(check_contents(submission))
        verdict = replace(verdicts_of(alone), official=Verdict.NOT_CHECKED)
        return _Judged(plan, verdict, (), (), alone)
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
    return _Judged(plan, verdict, systems, sets, tuple(findings))


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
    with opener(place.path)() as stream:
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


# ---- folding ------------------------------------------------------------------------------


def _report(judged: Sequence[_Judged], runs: Sequence[Run], skipped: Iterable[Finding]) -> Report:
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
        findings=_ordered(findings),
    )


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: finding.sort_key))


def _reason(judged: Sequence[_Judged], runs: Sequence[Run], rounds: Sequence[str]) -> str:
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


def _not_followed(place: Place) -> Finding:
    return Finding(
        code="TREE102",
        message="a link that leads out of the folder that is checked: not followed, not checked",
        path=place.label,
        severity=Severity.WARNING,
        basis=Basis.ADVICE,
        source="mlperf-pkg: inputs come from strangers",
    )
