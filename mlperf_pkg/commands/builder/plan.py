"""Plan which logs become which results of which system. No file is read."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mlperf_pkg.checks.context import SetContext
from mlperf_pkg.checks.descriptions import SystemFile
from mlperf_pkg.checks.workspace import FOREIGN, check_membership, proposed, raw_sets, stated
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.findings import folded
from mlperf_pkg.infra.text import did_you_mean, visible
from mlperf_pkg.log.reader import OF_LINES
from mlperf_pkg.render.findings import sentence
from mlperf_pkg.render.table import by_key
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.scoring import select, start_order
from mlperf_pkg.rulebook.load import load_benchmark
from mlperf_pkg.rulebook.model import DIVISIONS, Round
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.membership import OPEN, matches
from mlperf_pkg.submission.model import Place

_NAMED_LOGS = 3
_AS_OPEN = (
    "submitted as Open, as you asked; its logs say closed, which 'mlperf-pkg check' reports as"
    " SET111"
)
_FOLDER_NAME = re.compile(r"\w[\w.+@,=&()-]*")
"""Names of systems, benchmarks and submitters, which name folders in git."""


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
        files, ordered = context.files, tuple(sorted(context.runs, key=start_order))
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
    if others := [system.path for system in wanted if system not in used]:
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
    sets, notes, problems = [], list(plan.notes), list(plan.problems)
    for planned in plan.sets:
        rules = load_benchmark(round_.usage, round_.name, planned.benchmark)
        if not rules or planned.scaling == "weak" or len(planned.runs) <= rules.runs.required:
            sets.append(planned)  # nothing to select; in weak scaling, all models count
            continue
        selection = select(planned.runs, rules.runs)
        choice, window = selection.choice, selection.choice.chosen
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
