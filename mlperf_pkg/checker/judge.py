"""Judge what was read: submissions, systems, result sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.guard import guarded
from mlperf_pkg.checker.plan import Plan
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.code import has_command, readmes
from mlperf_pkg.checks.contents import check_contents, findings_of_systems
from mlperf_pkg.checks.context import Code, NameInRound, Origin, SetContext
from mlperf_pkg.checks.glob_names import check_globbed_set
from mlperf_pkg.checks.repository import FIRST_ROUND, check_repository
from mlperf_pkg.checks.result_sets import SetResult, unchecked_set
from mlperf_pkg.checks.round_choice import check_round_choice
from mlperf_pkg.checks.systems import SystemFile, check_system, unchecked_system
from mlperf_pkg.checks.tree import check_tree
from mlperf_pkg.findings import (
    Finding,
    Unchecked,
    Verdict,
    Verdicts,
    folded,
    verdicts_of,
    without_pass,
)
from mlperf_pkg.infra.json_lines import MAX_BYTES
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.model import Place, ResultSet, Submission

_MAX_READMES = 20  # that are read for each benchmark
_MAX_README_BYTES = 1 << 20


class Contents(Struct, frozen=True):
    """The runs and power logs by path, and the ``names`` of all result sets."""

    runs: Mapping[str, Run]
    power_logs: Mapping[str, PowerLog]
    names: frozenset[NameInRound] = frozenset()


class JudgedPlan(Struct, frozen=True):
    """A plan with its verdicts, system descriptions, result sets, and all its findings.

    ``contexts`` are those from which the ``sets`` were judged.
    """

    plan: Plan
    verdict: Verdicts
    systems: tuple[SystemFile, ...]
    sets: tuple[SetResult, ...]
    findings: tuple[Finding, ...]
    contexts: tuple[SetContext, ...] = ()


def judge(plan: Plan, contents: Contents, waivers: Waivers) -> JudgedPlan:
    """Judge one submission, or the loose logs of one argument.

    If that raises an exception, the submission has the finding that it was not checked.
    """
    return guarded(
        plan.label or ".",
        "judging this submission" if plan.submission else "judging these logs",
        lambda: _judge_all(plan, contents, waivers),
        lambda finding: _unjudged(plan, contents, finding),
    )


def _unjudged(plan: Plan, contents: Contents, finding: Unchecked) -> JudgedPlan:
    findings = [f for run in contents.runs.values() for f in folded(run.findings)]
    return JudgedPlan(plan, verdicts_of([finding]), (), (), (*findings, *folded([finding])))


def _judge_all(plan: Plan, contents: Contents, waivers: Waivers) -> JudgedPlan:
    if plan.unchecked:
        return _unjudged(plan, contents, plan.unchecked)
    judged = _judge(plan, contents, waivers)
    of_rounds = waivers.waive(check_round_choice(contents.runs.values()))
    findings = (*judged.findings, *folded(of_rounds, plan.label, contents.runs))
    return replace(judged, verdict=without_pass(judged.verdict, findings), findings=findings)


def _judge(plan: Plan, contents: Contents, waivers: Waivers) -> JudgedPlan:
    round_ = load_round(plan.usage, plan.round) if plan.usage and plan.round else None
    if plan.submission is None:
        contexts = _contexts(plan, round_, contents) if round_ else _loose_sets(plan, contents)
        return _judge_sets(plan, tuple(contexts), contents, waivers)
    if round_ is None:
        return _judge_without_round(plan, plan.submission, waivers)
    return _judge_submission(plan, plan.submission, round_, contents, waivers)


def _judge_sets(
    plan: Plan, contexts: tuple[SetContext, ...], contents: Contents, waivers: Waivers
) -> JudgedPlan:
    """Judge result sets outside a submission, and the runs that are in none."""
    runs = contents.runs.values()
    sets = tuple(waivers.waive_set(_check_set(c, plan, contents)) for c in contexts)
    findings = [finding for result in sets for finding in result.observations]
    in_sets = {path for result in sets for path in result.runs}
    findings += [f for run in runs if run.path not in in_sets for f in folded(run.findings)]
    judged = [result for result in sets if result.origin.is_judged]
    in_judged = {path for result in judged for path in result.runs}
    verdicts = [result.row.verdict for result in judged]
    verdicts += [run.verdicts for run in runs if run.path not in in_judged]
    return JudgedPlan(plan, Verdicts.worst(verdicts), (), sets, tuple(findings), contexts)


def _judge_without_round(plan: Plan, submission: Submission, waivers: Waivers) -> JudgedPlan:
    """Judge a submission without logs, for which no round is known."""
    findings = folded(waivers.waive(check_contents(submission)), submission.place.label or ".")
    verdict = replace(verdicts_of(findings).failures, official=Verdict.NOT_CHECKED)
    return JudgedPlan(plan, verdict, (), (), tuple(findings))


def _judge_submission(
    plan: Plan,
    submission: Submission,
    round_: Round,
    contents: Contents,
    waivers: Waivers,
) -> JudgedPlan:
    systems = tuple(
        waivers.waive_system(_check_system(place, round_)) for place in submission.systems
    )
    contexts = tuple(_contexts(plan, round_, contents, systems))
    sets = tuple(waivers.waive_set(_check_set(c, plan, contents)) for c in contexts)
    around = waivers.waive(
        guarded(
            submission.place.label or ".",
            "checking the files of this submission",
            lambda: list(_findings_around_sets(submission, systems, round_)),
            lambda finding: [finding],
        )
    )
    verdict = known_verdicts(verdicts_of(around), round_.usage, round_.name)
    # What is around result sets may fail a submission; it passes only by a result set.
    verdict = Verdicts.worst([verdict.failures, *(result.row.verdict for result in sets)])
    descriptions = {system.path for system in systems}
    of_tree = (finding for finding in around if finding.path not in descriptions)
    findings = folded(of_tree, submission.place.label or ".")
    findings += _of_files(finding for finding in around if finding.path in descriptions)
    findings += [finding for result in sets for finding in result.observations]
    return JudgedPlan(plan, verdict, systems, sets, tuple(findings), contexts)


def _check_set(context: SetContext, plan: Plan, contents: Contents) -> SetResult:
    """Judge a result set, unless a log or the system description of it could not be checked."""
    is_known = context.system is None or not context.system.unchecked
    if not is_known or not all(run.is_read for run in context.runs):
        return unchecked_set(context, ())
    return guarded(
        context.path,
        "judging this result set",
        lambda: check_globbed_set(context, plan.sets, contents.runs),
        lambda finding: unchecked_set(context, (finding,)),
    )


def _of_files(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings folded by the file that they are about."""
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.path, []).append(finding)
    for path, of_file in by_path.items():
        yield from folded(of_file, path)


def _contexts(
    plan: Plan, round_: Round, contents: Contents, systems: tuple[SystemFile, ...] = ()
) -> Iterator[SetContext]:
    """Yield the sets of a submission with its ``systems``, or those in folders outside one."""
    sources = plan.sources
    systems_by_id, submission = {system.id: system for system in systems}, plan.submission
    code = _code(submission) if submission else None
    timed = frozenset(files.benchmark for files in plan.sets if files.scaling_mode == "strong")
    for files in plan.sets:
        yield SetContext(
            files=files,
            runs=tuple(contents.runs[place.label] for place in files.logs),
            round=round_,
            rules=load_benchmark(round_.usage, round_.name, files.benchmark),
            submitter=submission.name if submission else None,
            system=systems_by_id.get(files.system or ""),
            origin=Origin.SUBMISSION if submission else Origin.FOLDER,
            systems=systems,
            code=code,
            power_logs=contents.power_logs,
            timed=timed if submission else None,
            together=contents.names,
            sources=sources,
        )


def _code(submission: Submission) -> Mapping[str, Code] | None:
    """Read how to run the benchmarks that have results; None without any code."""
    code, tested = submission.code, {files.benchmark for files in submission.result_sets}
    if code is None:
        return None
    return {name: _code_of(submission, code[name]) for name in tested & code.keys()}


def _code_of(submission: Submission, paths: tuple[str, ...]) -> Code:
    readable = {e.path for e in submission.entries if e.file and e.link is None and e.readable}
    first = readmes(readable.intersection(paths))[:_MAX_READMES]
    return Code(paths, any(has_command(_head(submission.place.child(path))) for path in first))


def _head(place: Place) -> str:
    with place.source.open() as stream:
        return stream.read(_MAX_README_BYTES).decode("utf-8", "replace")


def _findings_around_sets(
    submission: Submission, systems: Sequence[SystemFile], round_: Round
) -> Iterator[Finding]:
    """Yield the findings of a submission outside its result sets."""
    yield from findings_of_systems(submission, systems, round_.version)
    yield from check_contents(submission)
    yield from check_tree(submission, round_.usage, round_.benchmarks)
    if round_.version >= FIRST_ROUND:
        yield from check_repository(submission.name, submission.place.label, submission.entries)


def _check_system(place: Place, round_: Round) -> SystemFile:
    def read_and_check() -> SystemFile:
        with place.source.open() as stream:
            data = stream.read(MAX_BYTES + 1)
        return check_system(place.label, data, round_.usage, round_.name)

    return guarded(
        place.label,
        "checking this system description",
        read_and_check,
        lambda finding: unchecked_system(place.label, finding),
    )


class _SetKey(Struct, frozen=True):
    """What loose logs of one result set have in common."""

    folder: str
    system: str
    benchmark: str
    division: str
    usage: str
    round: str


def _loose_sets(plan: Plan, contents: Contents) -> Iterator[SetContext]:
    """Group loose logs into result sets; logs without a benchmark are in none."""
    groups: dict[_SetKey, list[Run]] = {}
    sources = plan.sources
    for run in contents.runs.values():
        folder, division = run.path.rpartition("/")[0], run.division
        key = _SetKey(folder, run.text("platform"), run.benchmark, division, run.usage, run.round)
        groups.setdefault(key, []).append(run)
    for key, members in groups.items():
        if key.benchmark:
            rules = load_benchmark(key.usage, key.round, key.benchmark)
            is_complete = rules is not None and len(members) == rules.runs.required
            yield SetContext(
                files=ResultSet(
                    Place(key.folder, key.folder),
                    key.system or None,
                    key.benchmark,
                    (),
                    flags=plan.flags,
                ),
                runs=tuple(members),
                round=load_round(key.usage, key.round),
                rules=rules,
                origin=Origin.LOGS if is_complete else Origin.PART,
                sources=sources,
            )
