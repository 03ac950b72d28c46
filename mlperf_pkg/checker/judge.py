"""Judge what was read: submissions, systems, result sets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.plan import Plan
from mlperf_pkg.checker.reading import guarded
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks import tree
from mlperf_pkg.checks.context import Code, NameInRound, Origin, SetContext
from mlperf_pkg.checks.descriptions import SystemFile, check_system, unchecked_system
from mlperf_pkg.checks.result_sets import SetResult, check_globbed_set, unchecked_set
from mlperf_pkg.checks.runs import check_round_choice
from mlperf_pkg.checks.workspace import proposed, raw_sets, unknown_code
from mlperf_pkg.config import Config
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Verdict, Verdicts, folded, verdicts_of, without_pass
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.rulebook.load import load_benchmark, load_round
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.model import Place, Submission

_MAX_READMES = 20  # that are read for each benchmark
_MAX_README_BYTES = 1 << 20


class Contents(Struct, frozen=True):
    """The runs and power logs by path, the ``waivers``, and the ``names`` of all result sets.

    ``ids`` are those of the result sets that were judged before. ``partial`` is as in ``Options``.
    """

    runs: Mapping[str, Run]
    power_logs: Mapping[str, PowerLog]
    waivers: Waivers
    names: frozenset[NameInRound]
    ids: set[str]
    partial: bool


class JudgedPlan(Struct, frozen=True):
    """A plan with its verdicts, system descriptions, result sets, and all its findings.

    The ``sets`` were judged from the ``contexts``; ``configuration`` is as in a report.
    """

    plan: Plan
    verdict: Verdicts
    systems: tuple[SystemFile, ...]
    sets: tuple[SetResult, ...]
    findings: tuple[Finding, ...]
    contexts: tuple[SetContext, ...] = ()
    configuration: str = ""


def judge(plan: Plan, contents: Contents) -> JudgedPlan:
    """Judge one submission, or the raw logs of one argument.

    If that raises an exception, the submission has the finding that it was not checked.
    """
    action = "judging this submission" if plan.submission else "judging these logs"
    judged = guarded(plan.label or ".", action, _judge_all, plan, contents)
    return judged if isinstance(judged, JudgedPlan) else _unjudged(plan, contents, judged)


def _unjudged(plan: Plan, contents: Contents, finding: Finding) -> JudgedPlan:
    findings = [f for run in contents.runs.values() for f in folded(run.findings)]
    return JudgedPlan(plan, verdicts_of([finding]), (), (), (*findings, *folded([finding])))


def _judge_all(plan: Plan, contents: Contents) -> JudgedPlan:
    if plan.unchecked:
        return _unjudged(plan, contents, plan.unchecked)
    round_ = load_round(plan.usage, plan.round) if plan.usage and plan.round else None
    if plan.raw:
        judged = _judge_raw_logs(plan, round_, contents)
    elif plan.submission is None:
        judged = _judge_sets(plan, _contexts(plan, round_, contents) if round_ else (), contents)
    elif round_ is None:
        judged = _judge_without_round(plan, plan.submission, contents)
    else:
        judged = _judge_submission(plan, plan.submission, round_, contents)
    of_rounds = contents.waivers.waive(check_round_choice(contents.runs.values()))
    findings = (*judged.findings, *folded(of_rounds, plan.label, contents.runs))
    return replace(judged, verdict=without_pass(judged.verdict, findings), findings=findings)


def _judge_sets(plan: Plan, unnamed: Iterable[SetContext], contents: Contents) -> JudgedPlan:
    """Judge result sets outside a submission, and the runs that are in none."""
    contexts, sets = _check_sets(plan, unnamed, contents)
    runs = contents.runs.values()
    findings = [finding for result in sets for finding in result.observations]
    in_sets = {path for result in sets for path in result.runs}
    findings += [f for run in runs if run.path not in in_sets for f in folded(run.findings)]
    judged = [result for result in sets if result.origin.is_judged]
    in_judged = {path for result in judged for path in result.runs}
    verdicts = [result.row.verdict for result in judged]
    verdicts += [run.verdicts for run in runs if run.path not in in_judged]
    return JudgedPlan(plan, Verdicts.worst(verdicts), (), sets, tuple(findings), contexts)


def _judge_without_round(plan: Plan, submission: Submission, contents: Contents) -> JudgedPlan:
    """Judge a submission without logs, for which no round is known."""
    around = contents.waivers.waive(tree.check_contents(submission))
    findings = folded(around, submission.place.label or ".")
    verdict = replace(verdicts_of(findings).failures, official=Verdict.NOT_CHECKED)
    return JudgedPlan(plan, verdict, (), (), tuple(findings))


def _judge_submission(
    plan: Plan, submission: Submission, round_: Round, contents: Contents
) -> JudgedPlan:
    label = submission.place.label or "."
    waivers = contents.waivers
    systems = tuple(waivers.waive_system(_check_system(p, round_)) for p in submission.systems)
    contexts, sets = _check_sets(plan, _contexts(plan, round_, contents, systems), contents)
    action = "checking the files of this submission"
    of_files = guarded(label, action, _findings_around_sets, submission, systems, round_)
    around = waivers.waive([of_files] if isinstance(of_files, Finding) else of_files)
    descriptions = {system.path for system in systems}
    verdict = known_verdicts(verdicts_of(around), round_.usage, round_.name)
    # What is around result sets may fail a submission; it passes only by a result set.
    verdict = Verdicts.worst([verdict.failures, *(result.row.verdict for result in sets)])
    findings = folded((finding for finding in around if finding.path not in descriptions), label)
    findings += _of_files(finding for finding in around if finding.path in descriptions)
    findings += [finding for result in sets for finding in result.observations]
    return JudgedPlan(plan, verdict, systems, sets, tuple(findings), contexts)


def _check_sets(
    plan: Plan, unnamed: Iterable[SetContext], contents: Contents
) -> tuple[tuple[SetContext, ...], tuple[SetResult, ...]]:
    """Judge result sets, each with an id that no other set has; return the sets with their ids."""
    contexts = []
    for context in unnamed:
        own = context.identity
        round_ = context.round.name
        names = chain([own, f"{own}@{round_}"], (f"{own}@{round_}.{n}" for n in count(2)))
        unique = next(name for name in names if name not in contents.ids)
        contents.ids.add(unique)
        contexts.append(replace(context, id=unique))
    results = (contents.waivers.waive_set(_check_set(c, plan, contents)) for c in contexts)
    return tuple(contexts), tuple(results)


def _check_set(context: SetContext, plan: Plan, contents: Contents) -> SetResult:
    """Judge a result set, unless a log or the system description of it could not be checked."""
    is_unknown = context.system is not None and context.system.unchecked
    if is_unknown or not all(run.is_read for run in context.runs):
        return unchecked_set(context)
    action = "judging this result set"
    judged = guarded(context.path, action, check_globbed_set, context, plan.sets, contents.runs)
    return judged if isinstance(judged, SetResult) else unchecked_set(context, (judged,))


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
    systems_by_id = {system.id: system for system in systems}
    submission = plan.submission
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
    """Read how to run the benchmarks that have results; None if there is no code."""
    files = submission.code
    if files is None:
        return None
    readable = {e.path for e in submission.entries if e.file and e.link is None and e.readable}
    code = {}
    for name in {result_set.benchmark for result_set in submission.result_sets} & files.keys():
        first = tree.readmes(readable.intersection(files[name]))[:_MAX_READMES]
        is_told = any(map(_has_command, map(submission.place.child, first)))
        code[name] = Code(files[name], is_told)
    return code


def _has_command(readme: Place) -> bool:
    with readme.source.open() as stream:
        return tree.has_command(stream.read(_MAX_README_BYTES).decode("utf-8", "replace"))


def _findings_around_sets(
    submission: Submission, systems: Sequence[SystemFile], round_: Round
) -> list[Finding]:
    """Return the findings of a submission outside its result sets."""
    findings = list(tree.findings_of_systems(submission, systems, round_.version))
    findings += tree.check_contents(submission)
    findings += tree.check_tree(submission, round_.usage, round_.benchmarks)
    if round_.version >= tree.FIRST_ROUND:
        label = submission.place.label
        findings += tree.check_repository(submission.name, label, submission.entries)
    return findings


def _check_system(place: Place, round_: Round) -> SystemFile:
    def read_and_check() -> SystemFile:
        with place.source.open() as stream:
            data = stream.read(MAX_BYTES + 1)
        return check_system(place.label, data, round_.usage, round_.name)

    system = guarded(place.label, "checking this system description", read_and_check)
    return system if isinstance(system, SystemFile) else unchecked_system(place.label, system)


# ---- raw logs -----------------------------------------------------------------------------


def _judge_raw_logs(plan: Plan, round_: Round | None, contents: Contents) -> JudgedPlan:
    """Judge raw logs, and the descriptions of their systems in a workspace."""
    workspace = plan.workspace
    waive = contents.waivers.waive_system
    places = workspace.systems if workspace and round_ else ()
    config = workspace.config if workspace else Config()
    systems = tuple(waive(_check_system(place, round_)) for place in places if round_)
    contexts = tuple(_raw_sets(plan, config, contents, systems))
    benchmarks = {context.files.benchmark for context in contexts}
    problems = sorted(unknown_code(config, round_, benchmarks)) if round_ else []
    if problems:
        raise UserError("\n".join(problems))
    judged = _judge_sets(plan, contexts, contents)
    used = {context.system.id for context in judged.contexts if context.system}
    shown = tuple(s for s in systems if s.id in used or s.contents is None)
    findings = [finding for system in shown for finding in system.findings]
    verdict = judged.verdict
    if round_:
        of_systems = known_verdicts(verdicts_of(findings), round_.usage, round_.name)
        verdict = Verdicts.worst([of_systems.failures, verdict])
    return replace(
        judged,
        systems=shown,
        verdict=verdict,
        findings=(*judged.findings, *_of_files(findings)),
        configuration=proposed(config, judged.contexts),
    )


def _raw_sets(
    plan: Plan, config: Config, contents: Contents, systems: tuple[SystemFile, ...]
) -> Iterator[SetContext]:
    """Yield the result sets of raw logs."""
    workspace = plan.workspace
    sources = plan.sources
    runs = {
        workspace.relative(place.path) if workspace else str(place.path): contents.runs[path]
        for path, place in plan.raw.items()
    }
    top = Place(str(workspace.folder), workspace.label) if workspace else None
    for context in raw_sets(runs, systems, config, top):
        required = context.rules.runs.required if context.rules else 0
        is_part = contents.partial and len(context.runs) < required
        by_name = all(run.path in plan.files for run in context.runs)  # each is an argument
        yield replace(
            context,
            files=replace(context.files, flags=plan.flags),
            origin=Origin.PART if is_part or by_name else context.origin,
            together=contents.names,
            sources=sources,
        )
