"""Plan which logs become which results of which system, and judge whether these are valid.

Planning reads no files.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.fold import copies_in, find_pairs, system_row, tool, with_findings
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.causes import with_causes
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import shared_runs
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.proposal import proposed
from mlperf_pkg.checks.result_sets import SetResult, check_set
from mlperf_pkg.checks.workspace import (
    FOREIGN,
    check_membership,
    raw_sets,
    stated,
    undescribed_systems,
    unmatched_patterns,
)
from mlperf_pkg.commands.builder.workspace import BuildWorkspace
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import (
    Basis,
    Finding,
    Verdict,
    Verdicts,
    Waiver,
    folded,
    in_files,
    in_order,
    in_report,
)
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import did_you_mean, visible
from mlperf_pkg.log.reader import OF_LINES
from mlperf_pkg.render.findings import location, sentence
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import Report
from mlperf_pkg.results.scoring import Selection, Window, select, start_order
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS, Round
from mlperf_pkg.run.model import Run, files_of
from mlperf_pkg.submission.membership import OPEN
from mlperf_pkg.submission.model import Place, ResultSet

_NAMED_LOGS = 3
_AS_OPEN = (
    "submitted as Open because of --as-open; the logs say closed, so 'mlperf-pkg check' reports"
    " SET111"
)
_FOLDER_NAME = re.compile(r"\w[\w.+@,=&()-]*")


class PlannedSet(Struct, frozen=True):
    """One result set: its runs by start time, and the ``context`` of all its raw logs.

    ``scaling`` is ``strong`` or ``weak`` in MLPerf HPC, else None.
    """

    system: SystemFile
    benchmark: str
    scaling: str | None
    runs: tuple[Run, ...]
    context: SetContext

    @property
    def as_open(self) -> bool:
        """Whether runs of the Closed division are submitted as Open."""
        if self.system.division != OPEN:
            return False
        return any(run.division != OPEN for run in self.runs)

    @property
    def name(self) -> str:
        """Its name in options and messages: ``SYSTEM/BENCHMARK``, in HPC with the scaling."""
        return self.folder.removeprefix("results/")

    @property
    def folder(self) -> str:
        """Its folder in the submission."""
        names = ("results", self.system.id, self.scaling, self.benchmark)
        return "/".join(filter(None, names))

    def is_of(self, division: str | None) -> bool:
        """Return whether it is submitted in a division; None stands for all."""
        return division in (None, self.system.division)

    @property
    def targets(self) -> tuple[str, ...]:
        """The path of each run in the submission."""
        return tuple(f"{self.folder}/result_{number}.txt" for number in range(len(self.runs)))


class BuildPlan(Struct, frozen=True):
    """A submission to be built, for one ``division`` or for all.

    Sets of another division are those that are kept in the existing tree.
    ``problems`` are the reasons why it cannot be built; ``notes`` are remarks for the user.
    ``left_out`` are the sets that the user leaves out, or that are not valid and dropped.
    ``submitters`` are those that the inputs name; ``unmapped`` are the sets without a system.
    ``configuration`` is the ``mlperf-pkg.yaml`` to complete; empty if there is nothing to complete.
    """

    submitters: tuple[str, ...]
    sets: tuple[PlannedSet, ...]
    left_out: tuple[PlannedSet, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    division: str | None
    unmapped: tuple[SetContext, ...]
    configuration: str

    @property
    def submitter(self) -> str:
        """The first submitter, empty if there is none."""
        return next(iter(self.submitters), "")


def systems_of(sets: Iterable[PlannedSet]) -> tuple[SystemFile, ...]:
    """Return the systems of result sets, each once, in their order."""
    return tuple({planned.system.id: planned.system for planned in sets}.values())


class _Draft(Struct, frozen=True):
    """The sets of which a plan for one ``division``, or for all, is made.

    ``every_set`` has the sets of all divisions. Those in the folders ``staying`` are planned
    whatever their division. ``leave_out`` is as in the options; the configuration names more.
    ``unmapped`` are the sets of the division without a system.
    """

    workspace: BuildWorkspace
    division: str | None
    leave_out: Collection[str]
    staying: Collection[str]
    every_set: tuple[PlannedSet, ...]
    unmapped: tuple[SetContext, ...]

    @property
    def candidates(self) -> Iterator[PlannedSet]:
        """The sets to build unless the user leaves them out."""
        for planned in self.every_set:
            if planned.is_of(self.division) or planned.folder in self.staying:
                yield planned

    @property
    def sets(self) -> tuple[PlannedSet, ...]:
        """The sets to build."""
        return tuple(planned for planned in self.candidates if not self.is_left_out(planned))

    @property
    def left_out(self) -> tuple[PlannedSet, ...]:
        """The sets that the user leaves out."""
        return tuple(filter(self.is_left_out, self.candidates))

    def is_left_out(self, planned: PlannedSet) -> bool:
        """Return whether the user leaves out a set."""
        return planned.name in self.leave_out or planned.name in self.workspace.config.leave_out

    @property
    def contexts(self) -> list[SetContext]:
        """All raw logs of the sets to build, and of those without a system."""
        return [*self.unmapped, *(planned.context for planned in self.sets)]

    @property
    def submitters(self) -> list[str]:
        """The submitter of the configuration, of the descriptions, or of the logs."""
        workspace = self.workspace
        if workspace.config.submitter:
            return [workspace.config.submitter]
        systems = systems_of(self.sets) or workspace.systems
        described = {system.submitter for system in systems if system.submitter}
        if described:
            return sorted(described)
        runs = [run for planned in self.sets for run in planned.runs]
        logged = {run.text("org") for run in runs or workspace.runs}
        return sorted(logged - {""})


def make_plan(
    workspace: BuildWorkspace,
    division: str | None = None,
    leave_out: Collection[str] = (),
    *,
    as_open: bool = False,
    staying: Collection[str] = (),
) -> BuildPlan:
    """Group the runs of a division, by default the configuration's, by system and benchmark.

    ``leave_out`` names result sets (``SYSTEM/BENCHMARK``) in addition to the configuration's.
    With ``as_open``, runs of the Closed division whose system is only described as Open are Open.
    ``staying`` are the folders of result sets of another division, which are planned, too.
    Never raises: what prevents a build is among the plan's ``problems``.
    """
    division = division or workspace.config.division
    top = Place(str(workspace.folders.workspace), "")
    logs = _identified(workspace)
    every_set = []
    unmapped = []
    contexts = raw_sets(
        logs,
        workspace.systems,
        workspace.config,
        top,
        as_open=as_open,
        systems_folder=workspace.folders.relative(workspace.folders.systems),
    )
    for context in contexts:
        if context.system:
            every_set.append(_planned_set(context.system, context))
        elif division in (None, context.division):
            unmapped.append(context)
    every_set.sort(key=lambda planned: planned.folder.split("/"))
    draft = _Draft(workspace, division, leave_out, staying, tuple(every_set), tuple(unmapped))
    return BuildPlan(
        submitters=tuple(draft.submitters),
        sets=draft.sets,
        left_out=draft.left_out,
        problems=tuple(_problems(draft)),
        notes=tuple(_notes(draft)),
        division=division,
        unmapped=draft.unmapped,
        configuration=proposed(workspace.config, draft.contexts),
    )


def _planned_set(system: SystemFile, context: SetContext) -> PlannedSet:
    files = context.files
    runs = tuple(sorted(context.runs, key=start_order))
    return PlannedSet(system, files.benchmark, files.scaling_mode, runs, context)


# ---- problems -----------------------------------------------------------------------------


def _problems(draft: _Draft) -> list[str]:
    workspace = draft.workspace
    division = draft.division
    of_submitter: list[str] = []
    if draft.sets:
        of_submitter += _submitter_problems(draft.submitters)
    problems = [
        *_unidentified(workspace),
        *_bad_systems(workspace),
        *_complaints(draft.contexts, with_foreign=not of_submitter),
        *of_submitter,
        *_bad_names(draft.sets),
        *_not_left_out(draft.leave_out, draft),
    ]
    has_sets = any(planned.is_of(division) for planned in draft.sets)
    if not problems and not has_sets:
        of_division = f" of the {division} division" if division else ""
        problems.append(f"no runs{of_division} are left")
    return problems


def _is_identified(run: Run) -> bool:
    return bool(run.benchmark) and run.division in DIVISIONS


def _identified(workspace: BuildWorkspace) -> dict[str, Run]:
    return {run.path: run for run in workspace.runs if _is_identified(run)}


def _unidentified(workspace: BuildWorkspace) -> Iterator[str]:
    divisions = " or ".join(DIVISIONS)
    lacking = (
        f"submission_benchmark is missing, or submission_division is not {divisions}; complete the"
        f" log, or take it out of {workspace.folders.logs}"
    )
    paths: dict[str, list[str]] = {}  # by reason
    for run in workspace.runs:
        if not _is_identified(run):
            reason = _unread_line(run) or lacking
            paths.setdefault(reason, []).append(run.path)
    for reason, run_paths in paths.items():
        yield f"{_named(run_paths)}: {reason}"


def _unread_line(run: Run) -> str | None:
    """Return the first error in reading a log, which may be the cause of a missing value."""
    text = None
    for finding in run.findings:
        if finding.is_error and finding.code.startswith(OF_LINES):
            if finding.line is not None:
                return f"line {finding.line}: {finding.text}"
            text = text or finding.text
    return text


def _complaints(contexts: Iterable[SetContext], *, with_foreign: bool) -> Iterator[str]:
    """Yield why runs are not of one known system or, ``with_foreign``, not of the submitter."""
    for context in contexts:
        name = context.identity
        paths = [run.path for run in context.runs]
        for finding in folded(check_membership(context), name, paths):
            if finding.code == FOREIGN and not with_foreign:
                continue
            complaint = f"{name}: {finding.code}: {sentence(finding)}"
            if finding.hint:
                complaint += f"\n  hint: {finding.hint}"
            yield complaint


def _bad_systems(workspace: BuildWorkspace) -> Iterator[str]:
    for problem in undescribed_systems(workspace.config, workspace.systems):
        yield f"{CONFIG_NAME}: {problem}"
    for system in workspace.systems:
        if system.contents is None:
            for finding in system.findings:
                yield f"{visible(finding.path)}:{finding.line}: {visible(finding.text)}"


def _bad_names(sets: Iterable[PlannedSet]) -> Iterator[str]:
    systems = {planned.system.path: planned.system.id for planned in sets}
    for path, name in systems.items():
        if not _FOLDER_NAME.fullmatch(name):
            yield f"{visible(path)}: {name!r} cannot name a folder in git; rename the file"
    for planned in sets:
        if not _FOLDER_NAME.fullmatch(planned.benchmark):
            logs = _named([run.path for run in planned.runs])
            yield f"{logs}: {planned.benchmark!r} is not a valid name of a benchmark"


# ---- notes --------------------------------------------------------------------------------


def _notes(draft: _Draft) -> Iterator[str]:
    workspace = draft.workspace
    config = workspace.config
    sets = draft.sets
    systems = systems_of(sets)
    yield from workspace.notes
    yield from _of_other_divisions(draft)
    for planned in sets:
        if planned.as_open:
            yield f"{planned.name}: {_AS_OPEN}"
    for planned in sorted(draft.left_out, key=lambda planned: planned.name):
        runs = words.counted(len(planned.runs), "run")
        yield f"{planned.name} is left out as you asked ({runs})"
    # Of options this is a problem; the configuration may name sets of another division.
    of_config = set(config.leave_out) - set(draft.leave_out)
    yield from _not_left_out(of_config, draft)
    yield from _unknown(config.notes, draft.every_set, "has a note")
    system_ids = {system.id for system in workspace.systems}
    yield from _unknown_names(config.prices, system_ids, "has a price", "system description")
    logs = [stated(run, run.path) for run in workspace.runs]
    for problem in unmatched_patterns(config, logs):
        yield f"{CONFIG_NAME}: {problem}"
    yield from _unused(workspace, draft.division, systems)
    submitters = draft.submitters
    for system in systems:
        if system.submitter and system.submitter not in submitters:
            yield f"{visible(system.path)} names another submitter: {system.submitter!r}"
    yield from _no_code(workspace, sets)


def _of_other_divisions(draft: _Draft) -> Iterator[str]:
    """Yield which logs are not of the division to build, nor of sets that stay."""
    if not draft.division:
        return
    used = {run.path for context in draft.unmapped for run in context.runs}
    for planned in draft.candidates:
        used.update(run.path for run in planned.context.runs)
    others: dict[str, list[str]] = {}  # paths by division
    for path, run in _identified(draft.workspace).items():
        if path not in used:
            others.setdefault(run.division, []).append(path)
    for division in DIVISIONS:
        paths = others.get(division)
        if paths:
            yield (
                f"these logs are left out, as they are of the {division} division: {_named(paths)}"
            )


def _not_left_out(names: Collection[str], draft: _Draft) -> Iterator[str]:
    """Yield why sets that were to be left out are not: they are of another division, or unknown."""
    state = "was to be left out"
    unknown = set(names).difference(planned.name for planned in draft.candidates)
    for planned in draft.every_set:
        if planned.name in unknown:
            unknown.remove(planned.name)
            yield (
                f"{planned.name} {state}, but is of the {planned.system.division} division; only"
                f" the {draft.division} division is built"
            )
    yield from _unknown(unknown, draft.candidates, state)


def _unknown(names: Collection[str], sets: Iterable[PlannedSet], state: str) -> Iterator[str]:
    yield from _unknown_names(names, {planned.name for planned in sets}, state, "result set")


def _unknown_names(
    names: Collection[str], real_names: Collection[str], state: str, kind: str
) -> Iterator[str]:
    for name in sorted(set(names).difference(real_names)):
        yield f"{name} {state}, but there is no {kind} of this name{did_you_mean(name, real_names)}"


def _unused(
    workspace: BuildWorkspace, division: str | None, used: Collection[SystemFile]
) -> Iterator[str]:
    paths = []
    for system in workspace.systems:
        if division in (None, system.division) and system not in used:
            paths.append(system.path)
    if paths:
        yield (
            "these system descriptions are not copied, as their systems have no results:"
            f" {', '.join(paths)}"
        )


def _no_code(workspace: BuildWorkspace, sets: Iterable[PlannedSet]) -> Iterator[str]:
    benchmarks = {planned.benchmark for planned in sets}
    without = sorted(benchmarks - workspace.config.code.keys())
    if without:
        lines = "\n".join(f"    {benchmark}: <folder>" for benchmark in without)
        yield (
            f"the code of {', '.join(without)} is missing from the submission; write its folder"
            f" into {CONFIG_NAME}:\n  code:\n{lines}"
        )


def _named(paths: Iterable[str]) -> str:
    """Return the number of paths and the first of them: ``20 logs (a, b, c and 17 more)``."""
    names = [visible(path) for path in paths]
    number = words.counted(len(names), "log")
    return f"{number} ({words.shortened(names, _NAMED_LOGS)})"


# ---- the submitter ------------------------------------------------------------------------


def _submitter_problems(submitters: Sequence[str]) -> Iterator[str]:
    """Yield why the plan does not have exactly one submitter that can name a folder."""
    lines = f"Name the submitter in {CONFIG_NAME}:\n  submitter: "
    if not submitters:
        yield f"neither a system description nor a log names a submitter. {lines}..."
    elif len(submitters) > 1:
        names = [visible(submitter) for submitter in submitters]
        yield (
            f"the logs and system descriptions name several submitters: {', '.join(names)}. If"
            " these are different submitters, build one submission for each, with its systems and"
            f" logs only. If they are the same submitter, choose one name. {lines}{names[0]}"
        )
    elif not _FOLDER_NAME.fullmatch(submitters[0]):
        proposed = re.sub(r"[^\w.+-]+", "-", submitters[0]).strip("-.")
        yield f"the submitter {submitters[0]!r} cannot name a folder in git. {lines}{proposed}"


# ---- the choice of runs -------------------------------------------------------------------


def choose_runs(plan: BuildPlan, round_: Round) -> BuildPlan:
    """Return the plan with the runs that ``selection`` chooses from sets with too many.

    The choices are among its notes; a set whose median is invalid is among its problems.
    """
    sets = []
    notes = list(plan.notes)
    problems = list(plan.problems)
    for planned in plan.sets:
        name = planned.name
        rules = load_benchmark(round_.usage, round_.name, planned.benchmark)
        is_weak = planned.scaling == "weak"  # there, all models count
        if not rules or is_weak or len(planned.runs) <= rules.runs.required:
            sets.append(planned)
            continue
        selection = select(planned.runs, rules.runs)
        window = selection.choice.chosen
        if window:
            sets.append(replace(planned, runs=selection.chosen))
            notes.append(f"{name}: {_in_words(selection, window)}")
        else:
            problems.append(f"{name}: no runs can be chosen: {selection.choice.reason}")
    return replace(plan, sets=tuple(sets), notes=tuple(notes), problems=tuple(problems))


def _in_words(selection: Selection, window: Window) -> str:
    """Return which runs of a set were chosen, as a ``window`` of all, and which were not."""
    runs = selection.runs
    others = [run.path for run in (*runs[: window.first], *runs[window.last + 1 :])]
    median = words.minutes(selection.choice.median)
    return (
        f"runs {window.first + 1} to {window.last + 1} of {len(runs)} are submitted, as their"
        f" result is closest to the median of {median} minutes; not submitted: {', '.join(others)}"
    )


# ---- judged sets --------------------------------------------------------------------------

# The codes of the findings that a flag of package_checker_params suppresses.
BYPASSES = {"rcp-bypass": ("RCP101",), "seed-checker-bypass": ("SEED101", "SEED102", "SEED103")}

OTHER_DIVISION = "SET111"  # the logs and the description of a set are of two divisions

_BASES = {
    Basis.BOTH: "rules and official checker",
    Basis.OFFICIAL: "official checker",
    Basis.RULES: "rules",
}


class JudgedSet(Struct, frozen=True):
    """A planned result set, the bypasses it needs, and the result of checking it with them.

    It was judged from the ``context``.
    """

    planned: PlannedSet
    flags: frozenset[str]
    result: SetResult
    context: SetContext

    @property
    def failures(self) -> list[Finding]:
        """The findings that fail it, officially or by the rules.

        Waived ones are among them where the official verdict fails, which no waiver changes.
        """
        rejected = self.result.row.verdict.official is Verdict.FAIL
        accepted = OTHER_DIVISION if self.planned.as_open else None
        observations = in_report(self.result.observations)
        explained = with_causes(observations, self.context.runs, [self.context])
        failed = failures(explained, rejected=rejected)
        files = files_of(self.planned.runs)
        return [in_files(finding, files) for finding in failed if finding.code != accepted]


def judge(
    plan: BuildPlan, workspace: BuildWorkspace, bypasses: Collection[str] = ()
) -> tuple[JudgedSet, ...]:
    """Judge every set of a plan; a set takes those of the ``bypasses`` whose test it fails."""
    waivers = Waivers(workspace.config.waivers, CONFIG_NAME)
    sources = {path: log.source for path, log in workspace.logs.items()}
    contexts = []
    for planned in plan.sets:
        contexts.append(_context(planned, plan.submitter, workspace.round, sources))
    copies = copies_in(contexts, find_pairs(contexts, shared_runs(contexts), sources))
    judged = []
    for index, planned in enumerate(plan.sets):
        judged_set = _judged(planned, contexts[index], waivers, bypasses)
        findings = waivers.waive(copies.get(index, ()))
        result = with_findings(judged_set.result, findings)
        judged.append(replace(judged_set, result=result))
    return tuple(judged)


def _judged(
    planned: PlannedSet, context: SetContext, waivers: Waivers, bypasses: Collection[str]
) -> JudgedSet:
    """Judge a set alone, again with the bypasses that it takes."""
    result = waivers.waive_set(check_set(context))
    failed = {finding.code for finding in failures(result.findings)}
    flags = frozenset(flag for flag in bypasses if failed.intersection(BYPASSES[flag]))
    if flags:
        files = replace(context.files, flags=flags)
        result = waivers.waive_set(check_set(replace(context, files=files)))
    return JudgedSet(planned, flags, result, context)


def reasons(judged: Sequence[JudgedSet]) -> Iterator[str]:
    """Yield why systems and result sets are not valid: one message for each of them."""
    for system in _judged_systems(judged):
        failed = failures(system.findings, rejected=True)
        if failed:
            yield _reason(system.path, failed)
    for judged_set in judged:
        failed = judged_set.failures
        if failed:
            yield _reason(judged_set.planned.name, failed)


def _reason(name: str, failed: Iterable[Finding]) -> str:
    return "\n".join([f"{name} is not valid:", *_lines(failed)])


def without_invalid(
    plan: BuildPlan, judged: Sequence[JudgedSet]
) -> tuple[BuildPlan, tuple[JudgedSet, ...]]:
    """Return both without the result sets that are not valid, or whose system is not."""
    valid = []
    dropped = []
    for judged_set in judged:
        system = judged_set.planned.system
        if judged_set.failures or failures(system.findings, rejected=True):
            dropped.append(judged_set.planned)
        else:
            valid.append(judged_set)
    sets = tuple(judged_set.planned for judged_set in valid)
    problems = plan.problems
    if judged and not any(planned.is_of(plan.division) for planned in sets):
        problems += ("no result set is valid, so nothing is left to build",)
    left_out = (*plan.left_out, *dropped)
    return replace(plan, sets=sets, left_out=left_out, problems=problems), tuple(valid)


def waiver_notes(judged: Sequence[JudgedSet], workspace: BuildWorkspace) -> Iterator[str]:
    """Yield a line for every waiver and code that it waives, and for every stale waiver."""
    findings = list(_all_findings(judged))
    waived: dict[tuple[str, Waiver], list[Finding]] = {}
    for finding in in_order(findings):
        if finding.waiver:
            waived.setdefault((finding.code, finding.waiver), []).append(finding)
    for (code, waiver), group in waived.items():
        number = words.counted(len(group), "finding")
        first = location(group[0])
        yield (
            f"{waiver.approved_by} waived {number} {code} until {waiver.until}, the first in"
            f" {first}, because: {waiver.reason}"
        )
    waivers = Waivers(workspace.config.waivers, CONFIG_NAME)
    for finding in waivers.stale(findings):
        yield f"{location(finding)}: {finding.text}"


def failures(findings: Iterable[Finding], *, rejected: bool = False) -> list[Finding]:
    """Return the findings that fail a verdict.

    Waived findings are included only if the official checker ``rejected`` their subject.
    """
    failed = []
    for finding in findings:
        if finding.basis is Basis.ADVICE:
            continue
        if finding.is_error or (rejected and finding.fails(Basis.OFFICIAL)):
            failed.append(finding)
    return failed


def report(judged: Collection[JudgedSet], workspace: BuildWorkspace) -> Report:
    """Return the report on the tree to be built, for its results tables."""
    round_ = workspace.round
    verdicts = []
    systems = []
    for system in _judged_systems(judged):
        system_result = system_row(system, round_.usage, round_.name)
        systems.append(replace(system_result, path=f"systems/{system.id}.json"))
        verdicts.append(system_result.verdict)
    result_sets = []
    for judged_set in judged:
        result_sets.append(judged_set.result.row)
        verdicts.append(judged_set.result.row.verdict)
    return Report(
        tool=tool(),
        usage=round_.usage,
        round=round_.name,
        round_reason=workspace.round_reason,
        verdict=Verdicts.worst(verdicts),
        systems=tuple(systems),
        result_sets=tuple(result_sets),
        findings=in_report(_all_findings(judged)),
    ).with_companies


def _judged_systems(judged: Iterable[JudgedSet]) -> tuple[SystemFile, ...]:
    return systems_of(judged_set.planned for judged_set in judged)


def _all_findings(judged: Collection[JudgedSet]) -> Iterator[Finding]:
    """Yield the findings on all systems and result sets."""
    for system in _judged_systems(judged):
        yield from folded(system.findings, system.path)
    for judged_set in judged:
        yield from judged_set.result.observations


def _context(
    planned: PlannedSet, submitter: str, round_: Round, sources: Mapping[str, Source]
) -> SetContext:
    files = ResultSet(
        Place(planned.folder, planned.folder),
        planned.system.id,
        planned.benchmark,
        logs=(),
        scaling_mode=planned.scaling,
    )
    context = SetContext(
        files=files,
        runs=planned.runs,
        round=round_,
        rules=load_benchmark(round_.usage, round_.name, planned.benchmark),
        submitter=submitter,
        system=planned.system,
        sources=sources,
        systems=planned.context.systems,
        group=planned.context.group,
    )
    return replace(context, id=context.identity)


# ---- messages -----------------------------------------------------------------------------


def line_of(finding: Finding) -> str:
    """Return a finding in one line: where, its code, and what it says."""
    return f"{location(finding)}: {finding.code}: {sentence(finding)}"


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a line for each finding, and its hint; those that follow from others come last."""
    for finding in sorted(in_order(findings), key=lambda finding: finding.cause is not None):
        yield f"  {visible(line_of(finding))} [{_BASES[finding.basis]}]"
        hint = _hint(finding)
        if hint:
            yield f"    hint: {hint}"


def _hint(finding: Finding) -> str | None:
    """Return what helps against a finding: an option of ``build``, or its own hint.

    Against what follows from another finding, only that helps.
    """
    if finding.cause:
        return finding.hint
    if finding.code == "SET101" and finding.found > finding.expected:
        return (
            f"--choose-runs submits the {finding.expected} consecutive runs whose result is"
            " closest to the median; 'mlperf-pkg select' lists these runs"
        )
    for flag, codes in BYPASSES.items():
        if finding.code in codes:
            return f"--{flag} builds the result set and asks reviewers to accept it"
    return finding.hint
