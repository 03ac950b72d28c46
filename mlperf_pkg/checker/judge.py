"""Judge what was read: submissions, systems, result sets."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.plan import CheckPlan
from mlperf_pkg.checker.reading import Guard
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks import tree
from mlperf_pkg.checks.context import BenchmarkCode, NameInRound, SetContext, SetOrigin
from mlperf_pkg.checks.descriptions import (
    SystemFile,
    check_system,
    described_systems,
    unchecked_system,
)
from mlperf_pkg.checks.one_run import with_each_run_once
from mlperf_pkg.checks.result_sets import (
    SetResult,
    check_set,
    not_described,
    unchecked_set,
    with_globbed_logs,
)
from mlperf_pkg.checks.runs import check_round_choice
from mlperf_pkg.checks.workspace import (
    raw_sets,
    undescribed_systems,
    unknown_code,
    unmatched_patterns,
)
from mlperf_pkg.config import CONFIG_NAME, Config
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import (
    Basis,
    Finding,
    Unchecked,
    Verdict,
    Verdicts,
    folded,
    verdicts_of,
    without_pass,
)
from mlperf_pkg.infra.json_values import MAX_BYTES
from mlperf_pkg.infra.source import words_of_lines
from mlperf_pkg.rulebook.load import finding_of, load_benchmark, load_round
from mlperf_pkg.rulebook.model import Round
from mlperf_pkg.rulebook.rounds import known_verdicts
from mlperf_pkg.run.model import Run
from mlperf_pkg.run.power import PowerLog
from mlperf_pkg.submission.model import Place, Submission

_SPLIT = "'mlperf-pkg build' writes each run into a result file of its own"
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
    ``uncounted`` are the paths of logs that are not those of runs of their own.
    """

    plan: CheckPlan
    verdict: Verdicts
    systems: tuple[SystemFile, ...]
    sets: tuple[SetResult, ...]
    findings: tuple[Finding, ...]
    contexts: tuple[SetContext, ...] = ()
    configuration: str = ""
    uncounted: frozenset[str] = frozenset()

    def counted(self, runs: Iterable[Run]) -> list[Run]:
        """Return the runs that count of all that were read."""
        return [run for run in runs if run.path not in self.uncounted]


def judge(plan: CheckPlan, contents: Contents) -> JudgedPlan:
    """Judge one submission, or the raw logs of one argument.

    If that raises an exception, the submission has the finding that it was not checked.
    """
    if plan.unchecked:
        return _unjudged(plan, contents, plan.unchecked)
    subject = "this submission" if plan.submission else "these logs"
    with Guard(plan.label or ".", f"judging {subject}") as guard:
        round_ = None
        if plan.usage and plan.round:
            round_ = load_round(plan.usage, plan.round)
        if plan.raw:
            judged = _judge_raw_logs(plan, round_, contents)
        elif plan.submission is None:
            judged = _judge_sets(plan, _contexts(plan, round_, contents), contents)
        elif round_ is None:
            judged = _judge_without_round(plan, plan.submission, contents)
        else:
            judged = _judge_submission(plan, plan.submission, round_, contents)
        return _with_round_choice(judged, contents)
    return _unjudged(plan, contents, guard.finding)


def _unjudged(plan: CheckPlan, contents: Contents, unchecked: Unchecked) -> JudgedPlan:
    findings: list[Finding] = []
    for run in contents.runs.values():
        findings += folded(run.findings)
    findings += folded([unchecked])
    return JudgedPlan(plan, verdicts_of([unchecked]), (), (), tuple(findings))


def _with_round_choice(judged: JudgedPlan, contents: Contents) -> JudgedPlan:
    """Return a judged plan with the findings on the rounds that were chosen for its runs."""
    runs = _without(contents.runs, judged.uncounted)
    choice = contents.waivers.waive(check_round_choice(runs.values()))
    top = "." if judged.plan.submission else None
    choice_findings = folded(choice, judged.plan.label or top, runs)
    findings = (*judged.findings, *choice_findings)
    verdict = with_failures(judged.verdict, choice_findings)
    return replace(judged, verdict=without_pass(verdict, findings), findings=findings)


def with_failures(verdicts: Verdicts, findings: Iterable[Finding]) -> Verdicts:
    """Return verdicts on which findings count that were made after them.

    They may fail the verdict by the rules; the official checker makes none of them.
    """
    if any(finding.fails(Basis.RULES) for finding in findings):
        return replace(verdicts, rules=Verdict.FAIL)
    return verdicts


def _judge_sets(plan: CheckPlan, unnamed: Iterable[SetContext], contents: Contents) -> JudgedPlan:
    """Judge result sets outside a submission, and the runs that are in none."""
    contexts, sets = _check_sets(plan, unnamed, contents)
    uncounted = _pruned_paths(contexts)
    contents = replace(contents, runs=_without(contents.runs, uncounted))
    notes = contents.waivers.waive(not_described(sets, plan.raw))
    sets = _with_notes(sets, notes)
    findings: list[Finding] = []
    verdicts: list[Verdicts] = []
    in_sets: set[str] = set()
    in_judged_sets: set[str] = set()
    for result in sets:
        findings += result.observations
        in_sets.update(result.runs)
        if result.origin.is_judged:
            verdicts.append(result.row.verdict)
            in_judged_sets.update(result.runs)
    for run in contents.runs.values():
        if run.path not in in_sets:
            findings += folded(run.findings)
        if run.path not in in_judged_sets:
            verdicts.append(run.verdicts)
    findings += notes
    verdict = Verdicts.worst(verdicts)
    return JudgedPlan(plan, verdict, (), sets, tuple(findings), contexts, uncounted=uncounted)


def _pruned_paths(contexts: Iterable[SetContext]) -> frozenset[str]:
    """Return the paths of the runs that sets of weak scaling leave out."""
    return frozenset(run.path for context in contexts for run in context.pruned)


def _with_notes(sets: Iterable[SetResult], notes: Iterable[Finding]) -> tuple[SetResult, ...]:
    """Count the notes on missing descriptions in the verdicts of result sets."""
    by_set: dict[str | None, list[Finding]] = {}
    for note in notes:
        by_set.setdefault(note.set, []).append(note)
    noted: list[SetResult] = []
    for result in sets:
        verdict = with_failures(result.row.verdict, by_set.get(result.row.id, ()))
        noted.append(replace(result, row=replace(result.row, verdict=verdict)))
    return tuple(noted)


def _judge_without_round(plan: CheckPlan, submission: Submission, contents: Contents) -> JudgedPlan:
    """Judge a submission without logs, for which no round is known."""
    around = contents.waivers.waive(tree.check_contents(submission))
    findings = folded(around, submission.place.label or ".")
    verdict = replace(verdicts_of(findings).failures, official=Verdict.NOT_CHECKED)
    return JudgedPlan(plan, verdict, (), (), tuple(findings))


def _judge_submission(
    plan: CheckPlan, submission: Submission, round_: Round, contents: Contents
) -> JudgedPlan:
    waivers = contents.waivers
    systems = _check_systems(submission.systems, round_, waivers)
    unnamed = _contexts_in_submission(plan, submission, round_, contents, systems)
    contexts, sets = _check_sets(plan, unnamed, contents)
    around = waivers.waive(_around_sets(submission, systems, round_))
    verdict_around = known_verdicts(verdicts_of(around), round_.usage, round_.name)
    descriptions = {system.path for system in systems}
    findings = list(_folded_by_subject(around, descriptions, submission.place.label or "."))
    # What is around result sets may fail a submission; it passes only by a result set.
    verdicts = [verdict_around.failures]
    for result in sets:
        findings += result.observations
        verdicts.append(result.row.verdict)
    verdict = Verdicts.worst(verdicts)
    return JudgedPlan(
        plan=plan,
        verdict=verdict,
        systems=systems,
        sets=sets,
        findings=tuple(findings),
        contexts=contexts,
        uncounted=_pruned_paths(contexts),
    )


# ---- result sets --------------------------------------------------------------------------


def _check_sets(
    plan: CheckPlan, unnamed: Iterable[SetContext], contents: Contents
) -> tuple[tuple[SetContext, ...], tuple[SetResult, ...]]:
    """Judge result sets, each with an id that no other set has; return the sets with their ids."""
    contexts = tuple(_with_id(context, contents.ids) for context in unnamed)
    results: list[SetResult] = []
    for context in contexts:
        result = _check_set(context, plan, contents)
        results.append(contents.waivers.waive_set(result))
    return contexts, tuple(results)


def _with_id(context: SetContext, ids: set[str]) -> SetContext:
    """Return a result set with an id that is not among ``ids``, and add it to these."""
    identity = context.identity
    unique = identity
    number = 1
    while unique in ids:
        unique = f"{identity}@{context.round.name}"
        if number > 1:
            unique = f"{unique}.{number}"
        number += 1
    ids.add(unique)
    return replace(context, id=unique)


def _check_set(context: SetContext, plan: CheckPlan, contents: Contents) -> SetResult:
    """Judge a result set, unless a log or the system description of it could not be checked."""
    is_unknown = context.system is not None and context.system.unchecked
    if is_unknown or not all(run.is_read for run in (*context.runs, *context.pruned)):
        return unchecked_set(context)
    with Guard(context.path, "judging this result set") as guard:
        result = check_set(context)
        return with_globbed_logs(result, context, plan.sets, contents.runs)
    return unchecked_set(context, [guard.finding])


def _contexts(plan: CheckPlan, round_: Round | None, contents: Contents) -> Iterator[SetContext]:
    """Yield the result sets of a plan, as far as they are known without a submission."""
    if round_ is None:
        return
    sources = plan.sources
    for files in plan.sets:
        yield SetContext(
            files=files,
            runs=tuple(contents.runs[place.label] for place in files.logs),
            pruned=tuple(contents.runs[place.label] for place in files.pruned),
            round=round_,
            rules=load_benchmark(round_.usage, round_.name, files.benchmark),
            origin=SetOrigin.FOLDER,
            power_logs=contents.power_logs,
            together=contents.names,
            sources=sources,
        )


def _contexts_in_submission(
    plan: CheckPlan,
    submission: Submission,
    round_: Round,
    contents: Contents,
    systems: tuple[SystemFile, ...],
) -> Iterator[SetContext]:
    """Yield the result sets of a submission with its ``systems``."""
    systems_by_id = {system.id: system for system in systems}
    all_systems = described_systems(systems)
    code = _code(submission)
    timed = frozenset(files.benchmark for files in plan.sets if files.scaling_mode == "strong")
    for context in _contexts(plan, round_, contents):
        yield replace(
            context,
            submitter=submission.name,
            system=systems_by_id.get(context.files.system or ""),
            origin=SetOrigin.SUBMISSION,
            systems=all_systems,
            code=code,
            timed=timed,
        )


def _code(submission: Submission) -> Mapping[str, BenchmarkCode] | None:
    """Read how to run the benchmarks that have results; None if there is no code."""
    files = submission.code
    if files is None:
        return None
    readable: set[str] = set()
    for entry in submission.entries:
        if entry.file and entry.link is None and entry.readable:
            readable.add(entry.path)
    benchmarks = {result_set.benchmark for result_set in submission.result_sets}
    code: dict[str, BenchmarkCode] = {}
    for benchmark in benchmarks & files.keys():
        readmes = tree.readmes(readable.intersection(files[benchmark]))[:_MAX_READMES]
        has_command = any(_has_command(submission.place.child(readme)) for readme in readmes)
        code[benchmark] = BenchmarkCode(files[benchmark], has_command)
    return code


def _has_command(readme: Place) -> bool:
    with readme.source.open() as stream:
        text = stream.read(_MAX_README_BYTES).decode("utf-8", "replace")
    return tree.has_command(text)


# ---- what is around result sets -----------------------------------------------------------


def _around_sets(
    submission: Submission, systems: Sequence[SystemFile], round_: Round
) -> list[Finding]:
    """Return the findings of a submission outside its result sets."""
    label = submission.place.label
    with Guard(label or ".", "checking the files of this submission") as guard:
        findings = list(tree.findings_of_systems(submission, systems, round_.version))
        findings += tree.check_contents(submission)
        findings += tree.check_tree(submission, round_.usage, round_.benchmarks)
        if round_.version >= tree.FIRST_ROUND:
            findings += tree.check_repository(submission.name, label, submission.entries)
        return findings
    return [guard.finding]


def _check_systems(
    places: Iterable[Place], round_: Round, waivers: Waivers
) -> tuple[SystemFile, ...]:
    systems: list[SystemFile] = []
    for place in places:
        system = _check_system(place, round_)
        systems.append(waivers.waive_system(system))
    return tuple(systems)


def _check_system(place: Place, round_: Round) -> SystemFile:
    with Guard(place.label, "checking this system description") as guard:
        with place.source.open() as stream:
            data = stream.read(MAX_BYTES + 1)
        return check_system(place.label, data, round_.usage, round_.name)
    return unchecked_system(place.label, guard.finding)


def _folded_by_subject(
    findings: Iterable[Finding], descriptions: Collection[str], label: str
) -> Iterator[Finding]:
    """Yield findings folded by what they are about: one of ``descriptions``, or else ``label``."""
    by_subject: dict[str, list[Finding]] = {}
    for finding in findings:
        subject = finding.path if finding.path in descriptions else label
        by_subject.setdefault(subject, []).append(finding)
    for subject, subject_findings in by_subject.items():
        yield from folded(subject_findings, subject)


# ---- raw logs -----------------------------------------------------------------------------


def _judge_raw_logs(plan: CheckPlan, round_: Round | None, contents: Contents) -> JudgedPlan:
    """Judge raw logs, and the descriptions of their systems in a workspace."""
    config = plan.workspace.config if plan.workspace else Config()
    systems: tuple[SystemFile, ...] = ()
    if plan.workspace and round_:
        systems = _check_systems(plan.workspace.systems, round_, contents.waivers)
    whole = contents.runs.get(plan.whole.source.label) if plan.whole else None
    uncounted = {whole.path} if whole else set()
    logs = _without(contents.runs, uncounted)
    sets = _raw_sets(plan, config, replace(contents, runs=logs), systems)
    contexts = tuple(with_each_run_once(sets, logs.values()))
    for context in contexts:
        uncounted.update(context.repeats)
    contents = replace(contents, runs=_without(contents.runs, uncounted))
    if round_:
        benchmarks = {context.files.benchmark for context in contexts}
        problems = sorted(unknown_code(config, round_, benchmarks))
        if problems:
            raise UserError("\n".join(problems))
    judged = _judge_sets(plan, contexts, contents)
    configuration_findings = folded(_check_configuration(plan, systems, contexts))
    judged = replace(
        judged,
        configuration=_proposed_configuration(config, contexts),
        findings=(*judged.findings, *configuration_findings),
        verdict=with_failures(judged.verdict, configuration_findings),
        uncounted=frozenset(uncounted),
    )
    if whole:
        judged = _with_whole_file(judged, whole, len(contents.runs))
    if round_:
        judged = _with_systems(judged, systems, round_)
    return judged


def _proposed_configuration(config: Config, contexts: Sequence[SetContext]) -> str:
    if all(context.system for context in contexts):
        return ""
    from mlperf_pkg.checks.proposal import proposed  # noqa: PLC0415 - most systems are known

    return proposed(config, contexts)


def _without(runs: Mapping[str, Run], paths: Collection[str]) -> dict[str, Run]:
    return {path: run for path, run in runs.items() if path not in paths}


def _with_whole_file(judged: JudgedPlan, whole: Run, number: int) -> JudgedPlan:
    """Return the judged runs of a file with the official verdict on the file as one log."""
    verdict = replace(judged.verdict, official=whole.verdicts.official)
    message = (
        "the file has {found} runs; expected {expected}, as the official checker reads one log"
    )
    finding = finding_of(
        "LOG111", message, whole.path, hint=_SPLIT, found=number, expected=1, basis=Basis.OFFICIAL
    )
    return replace(judged, verdict=verdict, findings=(*judged.findings, finding))


def _check_configuration(
    plan: CheckPlan, systems: Sequence[SystemFile], contexts: Iterable[SetContext]
) -> Iterator[Finding]:
    """Note what ``systems:`` of a workspace names in vain; patterns, if all logs are checked."""
    workspace = plan.workspace
    if workspace is None:
        return
    path = "/".join(filter(None, (workspace.label, CONFIG_NAME)))
    for problem in undescribed_systems(workspace.config, systems):
        yield finding_of("CONF101", problem, path)
    if plan.has_every_log:
        groups = [context.group for context in contexts if context.group]
        logs = [log for group in groups for log in group.logs]
        for problem in unmatched_patterns(workspace.config, logs):
            yield finding_of("CONF102", problem, path)


def _with_systems(judged: JudgedPlan, systems: Sequence[SystemFile], round_: Round) -> JudgedPlan:
    """Return judged raw logs with the descriptions of their systems, and those not readable."""
    used = {context.system.id for context in judged.contexts if context.system}
    shown = [system for system in systems if system.id in used or system.contents is None]
    findings = list(judged.findings)
    verdicts = [judged.verdict]
    for system in shown:
        system_findings = tree.weighed(system, round_.version, is_read=system.id in used)
        folded_findings = folded(system_findings, system.path)
        findings += folded_findings
        verdict = verdicts_of(folded_findings)
        verdicts.append(known_verdicts(verdict, round_.usage, round_.name).failures)
    return replace(
        judged,
        systems=tuple(shown),
        verdict=Verdicts.worst(verdicts),
        findings=tuple(findings),
    )


def _raw_sets(
    plan: CheckPlan, config: Config, contents: Contents, systems: tuple[SystemFile, ...]
) -> Iterator[SetContext]:
    """Yield the result sets of raw logs."""
    workspace = plan.workspace
    top = Place(str(workspace.folder), workspace.label) if workspace else None
    sources = plan.sources
    runs: dict[str, Run] = {}
    for path, place in plan.raw.items():
        file = workspace.relative(place.path) if workspace else str(place.path)
        runs[f"{file}{words_of_lines(place.lines)}"] = contents.runs[path]
    for context in raw_sets(runs, systems, config, top):
        power = None
        if plan.power and any(run.path in plan.power.folders for run in context.runs):
            power = replace(plan.power, place=context.files.place.child("power"))
        yield replace(
            context,
            files=replace(context.files, flags=plan.flags, power=power),
            power_logs=contents.power_logs,
            origin=_origin(context, plan, contents),
            together=contents.names,
            sources=sources,
        )


def _origin(context: SetContext, plan: CheckPlan, contents: Contents) -> SetOrigin:
    """Return the origin of a set of raw logs: a part where more may follow, or each was named."""
    is_incomplete = contents.partial and len(context.runs) < (context.required_runs or 0)
    is_by_name = all(run.path in plan.files for run in context.runs)
    if is_incomplete or is_by_name:
        return SetOrigin.PART
    return context.origin
