"""Plan which logs become which results of which system, and judge whether these are valid.

Planning reads no files.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checker.fold import copies_in, find_pairs, system_row, tool, with_findings
from mlperf_pkg.checker.waivers import Waivers
from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.copies import shared_runs
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.result_sets import SetResult, check_set
from mlperf_pkg.checks.workspace import FOREIGN, check_membership, proposed, raw_sets, stated
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import Basis, Finding, Verdict, Verdicts, folded, in_order
from mlperf_pkg.infra.source import Source
from mlperf_pkg.infra.text import did_you_mean, visible
from mlperf_pkg.log.reader import OF_LINES
from mlperf_pkg.render.findings import location, sentence
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.report import Report
from mlperf_pkg.results.scoring import select, start_order
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS, Round
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.membership import OPEN, matches
from mlperf_pkg.submission.model import Place, ResultSet

_NAMED_LOGS = 3
_AS_OPEN = (
    "submitted as Open, as you asked; its logs say closed, which 'mlperf-pkg check' reports as"
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
        return self.system.division == OPEN and any(run.division != OPEN for run in self.runs)

    @property
    def name(self) -> str:
        """Its name in options and messages: ``SYSTEM/BENCHMARK``, in HPC with the scaling."""
        return self.folder.removeprefix("results/")

    @property
    def folder(self) -> str:
        """Its folder in the submission."""
        return "/".join(filter(None, ("results", self.system.id, self.scaling, self.benchmark)))

    def is_of(self, division: str | None) -> bool:
        """Return whether it is submitted in a division; None stands for all."""
        return division in (None, self.system.division)

    @property
    def targets(self) -> tuple[str, ...]:
        """The path of each run in the submission."""
        return tuple(f"{self.folder}/result_{number}.txt" for number in range(len(self.runs)))


class Plan(Struct, frozen=True):
    """A submission to be built, for one ``division`` or for all.

    Sets of another division are those that are kept in the existing tree.
    ``problems`` are the reasons why it cannot be built; ``notes`` are remarks for the user.
    ``submitters`` are those that the inputs name; ``unmapped`` are the sets without a system.
    ``configuration`` is the ``mlperf-pkg.yaml`` to complete; empty if there is nothing to complete.
    """

    submitters: tuple[str, ...]
    sets: tuple[PlannedSet, ...]
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


def make_plan(
    workspace: Workspace,
    division: str | None = None,
    leave_out: Collection[str] = (),
    *,
    as_open: bool = False,
    staying: Collection[str] = (),
) -> Plan:
    """Group the runs of a division, by default the configuration's, by system and benchmark.

    ``leave_out`` names result sets (``SYSTEM/BENCHMARK``) in addition to the configuration's.
    With ``as_open``, runs of the Closed division whose system is only described as Open are Open.
    ``staying`` are the folders of result sets of another division, which are planned, too.
    Never raises: what prevents a build is among the plan's ``problems``.
    """
    division = division or workspace.config.division
    left_out = {*leave_out, *workspace.config.leave_out}
    logs = {run.path: run for run in workspace.runs if _is_identified(run)}
    top = Place(str(workspace.folders.workspace), "")
    contexts = list(raw_sets(logs, workspace.systems, workspace.config, top, as_open=as_open))
    every_set = []
    for context in contexts:
        files = context.files
        ordered = tuple(sorted(context.runs, key=start_order))
        if context.system:
            names = (files.benchmark, files.scaling_mode)
            every_set.append(PlannedSet(context.system, *names, ordered, context))
    every_set.sort(key=lambda planned: planned.folder.split("/"))
    all_sets = [s for s in every_set if s.is_of(division) or s.folder in staying]
    unmapped = [c for c in contexts if c.system is None and division in (None, c.division)]
    wanted = [*unmapped, *(planned.context for planned in all_sets)]
    left = logs.keys() - {run.path for context in wanted for run in context.runs}
    sets = tuple(planned for planned in all_sets if planned.name not in left_out)
    systems = systems_of(sets)
    runs = tuple(run for planned in sets for run in planned.runs)
    contexts = [*unmapped, *(planned.context for planned in sets)]
    described = sorted({s.submitter for s in systems or workspace.systems if s.submitter})
    logged = sorted({run.text("org") for run in runs or workspace.runs} - {""})
    submitters = list(filter(None, [workspace.config.submitter])) or described or logged
    of_submitter = list(_submitter_problems(submitters)) if sets else []
    problems = [
        *_unidentified(workspace),
        *_bad_systems(workspace),
        *_complaints(contexts, whose=not of_submitter),
        *of_submitter,
        *_bad_names(sets),
        *_unknown(leave_out, all_sets),
    ]
    if not problems and not any(planned.is_of(division) for planned in sets):
        problems = [f"no runs{f' of the {division} division' if division else ''} are left"]
    notes = [
        *workspace.notes,
        *(
            f"left out, as they are of the {other} division: {_named(paths)}"
            for other in (DIVISIONS if division else ())
            if (paths := [path for path in logs if path in left and logs[path].division == other])
        ),
        *(f"{planned.name}: {_AS_OPEN}" for planned in sets if planned.as_open),
        *(
            f"left out as you asked: {planned.name}, {words.counted(len(planned.runs), 'run')}"
            for planned in sorted(all_sets, key=lambda planned: planned.name)
            if planned.name in left_out
        ),
        *_unknown(set(workspace.config.leave_out) - set(leave_out), all_sets),
        *_unknown(workspace.config.notes, every_set, "for a note"),
        *_no_match(workspace),
        *_unused(workspace, division, systems),
        *(
            f"{visible(system.path)} names another submitter: {system.submitter!r}"
            for system in systems
            if system.submitter and system.submitter not in submitters
        ),
        *_no_code(workspace, sets),
    ]
    return Plan(
        submitters=tuple(submitters),
        sets=sets,
        problems=tuple(problems),
        notes=tuple(notes),
        division=division,
        unmapped=tuple(unmapped),
        configuration=proposed(workspace.config, contexts),
    )


# ---- problems -----------------------------------------------------------------------------


def _is_identified(run: Run) -> bool:
    return bool(run.benchmark) and run.division in DIVISIONS


def _unidentified(workspace: Workspace) -> Iterator[str]:
    lacking = (
        f"no submission_benchmark, or no submission_division that is {' or '.join(DIVISIONS)}:"
        f" complete the log, or take it out of {workspace.folders.logs}"
    )
    unknown = (run for run in workspace.runs if not _is_identified(run))
    for reason, paths in by_key((_unread_line(r) or lacking, r.path) for r in unknown).items():
        yield f"{_named(paths)}: {reason}"


def _unread_line(run: Run) -> str | None:
    """Return the first error in reading a log, which may be the cause of a missing value."""
    errors = [f for f in run.findings if f.is_error and f.code.startswith(OF_LINES)]
    for finding in sorted(errors, key=lambda finding: finding.line is None):
        return f"line {finding.line}: {finding.text}" if finding.line else finding.text
    return None


def _complaints(contexts: Iterable[SetContext], *, whose: bool) -> Iterator[str]:
    """Yield why runs are not of one known system or, with ``whose``, not of the submitter."""
    for context in contexts:
        paths = [run.path for run in context.runs]
        for finding in folded(check_membership(context), context.identity, paths):
            if whose or finding.code != FOREIGN:
                hint = f"\n  hint: {finding.hint}" if finding.hint else ""
                yield f"{context.identity}: {finding.code}: {sentence(finding)}{hint}"


def _bad_systems(workspace: Workspace) -> Iterator[str]:
    ids = {system.id for system in workspace.systems}
    for name in sorted(workspace.config.systems.keys() - ids):
        yield f"{CONFIG_NAME}: systems: {name}: there is no {name}.json among the systems"
    for system in workspace.systems:
        if system.contents is None:
            yield from (f"{visible(f.path)}:{f.line}: {visible(f.text)}" for f in system.findings)


def _bad_names(sets: Iterable[PlannedSet]) -> Iterator[str]:
    systems = {planned.system.path: planned.system.id for planned in sets}
    for path, name in systems.items():
        if not _FOLDER_NAME.fullmatch(name):
            yield f"{visible(path)}: {name!r} cannot name a folder in git: rename the file"
    for planned in sets:
        if not _FOLDER_NAME.fullmatch(planned.benchmark):
            logs = _named([run.path for run in planned.runs])
            yield f"{logs}: {planned.benchmark!r} is not a valid name of a benchmark"


# ---- notes --------------------------------------------------------------------------------


def _unknown(
    named: Collection[str], sets: Iterable[PlannedSet], purpose: str = "to leave out"
) -> Iterator[str]:
    """Of options this is a problem; the configuration may name sets of another division."""
    names = {planned.name for planned in sets}
    for name in sorted(set(named) - names):
        yield f"there is no result set {name} {purpose}{did_you_mean(name, names)}"


def _no_match(workspace: Workspace) -> Iterator[str]:
    logs = [stated(run, run.path) for run in workspace.runs]
    for name, system in workspace.config.systems.items():
        for kind, word in (("logs", "log"), ("platforms", "submission_platform")):
            for pattern in getattr(system, kind):
                if not any(matches(log, kind, pattern) for log in logs):
                    yield f"{CONFIG_NAME}: systems: {name}: no {word} matches {pattern!r}"


def _unused(
    workspace: Workspace, division: str | None, used: Collection[SystemFile]
) -> Iterator[str]:
    wanted = [s for s in workspace.systems if division in (None, s.division)]
    others = [system.path for system in wanted if system not in used]
    if others:
        yield f"not copied, because there are no results: {', '.join(others)}"


def _no_code(workspace: Workspace, sets: Iterable[PlannedSet]) -> Iterator[str]:
    without = sorted({planned.benchmark for planned in sets} - workspace.config.code.keys())
    if without:
        lines = "".join(f"\n    {benchmark}: <folder>" for benchmark in without)
        yield (
            f"no code of {', '.join(without)}: a submission needs it under benchmarks/; name its"
            f" folder in {CONFIG_NAME}:\n  code:{lines}"
        )


def _named(paths: Sequence[str]) -> str:
    """Return the number of paths and the first of them: ``20 logs (a, b, c and 17 more)``."""
    names = words.shortened(list(map(visible, paths)), _NAMED_LOGS)
    return f"{words.counted(len(paths), 'log')} ({names})"


# ---- the submitter ------------------------------------------------------------------------


def _submitter_problems(submitters: Sequence[str]) -> Iterator[str]:
    """Yield why the plan does not have exactly one submitter that can name a folder."""
    lines = f"Name the submitter in {CONFIG_NAME}:\n  submitter: "
    if not submitters:
        yield f"neither a system description nor a log names a submitter. {lines}..."
    elif len(submitters) > 1:
        names = [visible(submitter) for submitter in submitters]
        yield (
            f"several submitters: {', '.join(names)}. A submission has one submitter: build with"
            f" the systems and logs of one at a time. If they are the same: {lines}{names[0]}"
        )
    elif not _FOLDER_NAME.fullmatch(submitters[0]):
        proposed = re.sub(r"[^\w.+-]+", "-", submitters[0]).strip("-.")
        yield f"the submitter {submitters[0]!r} cannot name a folder in git. {lines}{proposed}"


# ---- the choice of runs -------------------------------------------------------------------


def choose_runs(plan: Plan, round_: Round) -> Plan:
    """Return the plan with the runs that ``selection`` chooses from sets with too many.

    The choices are among its notes; a set whose median is invalid is among its problems.
    """
    sets = []
    notes = list(plan.notes)
    problems = list(plan.problems)
    for planned in plan.sets:
        rules = load_benchmark(round_.usage, round_.name, planned.benchmark)
        if not rules or planned.scaling == "weak" or len(planned.runs) <= rules.runs.required:
            sets.append(planned)  # nothing to select; in weak scaling, all models count
            continue
        selection = select(planned.runs, rules.runs)
        choice = selection.choice
        window = selection.choice.chosen
        if not selection.chosen or window is None:
            problems.append(f"{planned.name}: no runs can be chosen: {choice.reason}")
            continue
        sets.append(replace(planned, runs=selection.chosen))
        chosen = {run.path for run in selection.chosen}
        others = [run.path for run in selection.runs if run.path not in chosen]
        notes.append(
            f"{planned.name}: runs {window.first + 1} to {window.last + 1} of"
            f" {len(selection.runs)} are closest to the median of {words.minutes(choice.median)}"
            f" minutes; not submitted: {', '.join(others)}"
        )
    return replace(plan, sets=tuple(sets), notes=tuple(notes), problems=tuple(problems))


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
    """A planned result set, the bypasses it needs, and the result of checking it with them."""

    planned: PlannedSet
    flags: frozenset[str]
    result: SetResult

    @property
    def failures(self) -> list[Finding]:
        """The findings that fail it, officially or by the rules.

        Waived ones are among them where the official verdict fails, which no waiver changes.
        """
        rejected = self.result.row.verdict.official is Verdict.FAIL
        accepted = OTHER_DIVISION if self.planned.as_open else None
        failed = failures(self.result.observations, rejected=rejected)
        return [finding for finding in failed if finding.code != accepted]


def judge(
    plan: Plan, workspace: Workspace, bypasses: Collection[str] = ()
) -> tuple[JudgedSet, ...]:
    """Judge every set of a plan; a set takes those of the ``bypasses`` whose test it fails."""
    waivers = Waivers(workspace.config.waivers, CONFIG_NAME)
    sources = {path: log.source for path, log in workspace.logs.items()}
    contexts = [_context(s, plan.submitter, workspace.round, sources) for s in plan.sets]
    copies = copies_in(contexts, find_pairs(contexts, shared_runs(contexts), sources))
    judged = []
    for index, (planned, context) in enumerate(zip(plan.sets, contexts, strict=True)):
        result = waivers.waive_set(check_set(context))
        failed = {finding.code for finding in failures(result.findings)}
        flags = frozenset(flag for flag in bypasses if failed.intersection(BYPASSES[flag]))
        if flags:
            bypassing = replace(context, files=replace(context.files, flags=flags))
            result = waivers.waive_set(check_set(bypassing))
        result = with_findings(result, waivers.waive(copies.get(index, ())))
        judged.append(JudgedSet(planned, flags, result))
    return tuple(judged)


def reasons(judged: Sequence[JudgedSet]) -> Iterator[str]:
    """Yield why systems and result sets are not valid: one message for each of them."""
    systems = systems_of(judged_set.planned for judged_set in judged)
    of_systems = ((s.path, failures(s.findings, rejected=True)) for s in systems)
    for name, failed in (*of_systems, *((s.planned.name, s.failures) for s in judged)):
        if failed:
            yield "\n".join([f"{name} is not valid:", *_lines(failed)])


def without_invalid(plan: Plan, judged: Sequence[JudgedSet]) -> tuple[Plan, tuple[JudgedSet, ...]]:
    """Return both without the result sets that are not valid, or whose system is not."""
    passing = (s for s in judged if not s.failures)
    valid = tuple(s for s in passing if not failures(s.planned.system.findings, rejected=True))
    problems = plan.problems
    if judged and not any(s.planned.is_of(plan.division) for s in valid):
        problems += ("no result set is valid: nothing is left to build",)
    return replace(plan, sets=tuple(s.planned for s in valid), problems=problems), valid


def waiver_notes(judged: Sequence[JudgedSet], workspace: Workspace) -> Iterator[str]:
    """Yield a line for every waiver and code that it waives, and for every stale waiver."""
    findings = list(_all_findings(judged))
    waived = by_key(((f.code, f.waiver), f) for f in in_order(findings) if f.waiver)
    for (code, waiver), group in waived.items():
        number = words.counted(len(group), "finding")
        yield (
            f"waived by {waiver.approved_by} until {waiver.until}: {number} {code}, the first in"
            f" {location(group[0])}: {waiver.reason}"
        )
    for finding in Waivers(workspace.config.waivers, CONFIG_NAME).stale(findings):
        yield f"{location(finding)}: {finding.text}"


def failures(findings: Iterable[Finding], *, rejected: bool = False) -> list[Finding]:
    """Return the findings that fail a verdict.

    Waived findings are included only if the official checker ``rejected`` their subject.
    """
    return [
        finding
        for finding in findings
        if finding.basis is not Basis.ADVICE
        and (finding.is_error or (rejected and finding.fails(Basis.OFFICIAL)))
    ]


def report(judged: Collection[JudgedSet], workspace: Workspace) -> Report:
    """Return the report on the tree to be built, for its results tables."""
    round_ = workspace.round
    systems = tuple(
        replace(system_row(system, round_.usage, round_.name), path=f"systems/{system.id}.json")
        for system in systems_of(judged_set.planned for judged_set in judged)
    )
    rows = tuple(judged_set.result.row for judged_set in judged)
    return Report(
        tool=tool(),
        usage=round_.usage,
        round=round_.name,
        round_reason=workspace.round_reason,
        verdict=Verdicts.worst([row.verdict for row in systems] + [row.verdict for row in rows]),
        systems=systems,
        result_sets=rows,
        findings=in_order(_all_findings(judged)),
    )


def _all_findings(judged: Collection[JudgedSet]) -> Iterator[Finding]:
    """Yield the findings on all systems and result sets."""
    for system in systems_of(judged_set.planned for judged_set in judged):
        yield from folded(system.findings, system.path)
    for judged_set in judged:
        yield from judged_set.result.observations


def _context(
    planned: PlannedSet, submitter: str, round_: Round, sources: Mapping[str, Source]
) -> SetContext:
    place = Place(planned.folder, planned.folder)
    names = (planned.system.id, planned.benchmark)
    context = SetContext(
        files=ResultSet(place, *names, logs=(), scaling_mode=planned.scaling),
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
    """Yield a line for each finding, and its hint."""
    for finding in in_order(findings):
        yield f"  {visible(line_of(finding))} [{_BASES[finding.basis]}]"
        hint = finding.hint
        for flag, codes in BYPASSES.items():
            hint = f"--{flag} builds it and asks for a review" if finding.code in codes else hint
        if finding.code == "SET101" and finding.found > finding.expected:
            hint = (
                f"--choose-runs takes the {finding.expected} consecutive runs whose result is"
                " closest to the median of all such windows; 'mlperf-pkg select' shows them"
            )
        if hint:
            yield f"    {hint}"
