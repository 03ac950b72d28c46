"""Which logs become which results of which system: the plan of a submission. No file is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from mlperf_pkg.checks.systems import SystemFile
from mlperf_pkg.commands.builder.mapping import Mapped, Unmapped, complaints, folded, map_runs
from mlperf_pkg.commands.builder.workspace import Workspace
from mlperf_pkg.config import CONFIG_NAME
from mlperf_pkg.infra.text import did_you_mean
from mlperf_pkg.results import wording as words
from mlperf_pkg.results.selection import start_order
from mlperf_pkg.rulebook.model import DIVISIONS
from mlperf_pkg.run.model import Run
from mlperf_pkg.submission.find import SCALINGS

_FOLDER_NAME = re.compile(r"\w[\w.+@,=&()-]*")


class PlannedSet(Struct, frozen=True):
    """One result set: its runs by start time, and what told that they are of this system.

    ``scaling`` is ``strong`` or ``weak`` in MLPerf HPC, else None.
    """

    system: SystemFile
    benchmark: str
    scaling: str | None
    runs: tuple[Run, ...]
    why: str

    @property
    def name(self) -> str:
        """How a user names it: ``SYSTEM/BENCHMARK``."""
        return f"{self.system.id}/{self.benchmark}"

    @property
    def folder(self) -> str:
        """Its folder in the submission."""
        return "/".join(filter(None, ("results", self.system.id, self.scaling, self.benchmark)))

    @property
    def targets(self) -> tuple[str, ...]:
        """The path of each run in the submission."""
        return tuple(f"{self.folder}/result_{number}.txt" for number in range(len(self.runs)))


class Plan(Struct, frozen=True):
    """A submission to be built, of one ``division`` or of all.

    ``problems`` say why it cannot be; ``notes`` what a user should know all the same.
    """

    submitter: str
    sets: tuple[PlannedSet, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    division: str | None = None

    @property
    def systems(self) -> tuple[SystemFile, ...]:
        """The systems that have results, by id."""
        return tuple({planned.system.id: planned.system for planned in self.sets}.values())

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that have results."""
        return tuple(sorted({planned.benchmark for planned in self.sets}))


def make_plan(
    workspace: Workspace, division: str | None = None, leave_out: Collection[str] = ()
) -> Plan:
    """Group the runs of a division, by default the configuration's, by system and benchmark.

    ``leave_out`` names result sets (``SYSTEM/BENCHMARK``) in addition to the configuration's.
    Never raises: what stands in the way is among the plan's ``problems``.
    """
    division = division or workspace.config.division
    apart = {*leave_out, *workspace.config.leave_out}
    named = [run for run in workspace.runs if _says_what_it_is(run)]
    wanted = [run for run in named if division in (None, run.division)]
    mapped = map_runs(wanted, workspace.systems, workspace.config)
    unmapped = [each for each in mapped if isinstance(each, Unmapped)]
    every = _result_sets([each for each in mapped if isinstance(each, Mapped)], workspace)
    used = {planned.system.id for planned in every}
    likely = sorted(workspace.systems, key=lambda system: system.id in used)
    sets = tuple(planned for planned in every if planned.name not in apart)
    submitters = _submitters(workspace, sets)
    problems = [
        *_unnamed(workspace),
        *_strange_systems(workspace),
        *complaints(unmapped, likely),
        *(_bad_submitter(submitters) if sets else ()),
        *_bad_names(sets),
        *_unknown(leave_out, every),
    ]
    if not sets and not problems:
        problems = [f"no runs{f' of the {division} division' if division else ''} are left"]
    notes = [
        *workspace.notes,
        *_other_division(named, division),
        *_left_out(apart, every),
        *_unknown(set(workspace.config.leave_out) - set(leave_out), every),
        *_no_match(workspace),
        *_unused(workspace, division, sets),
        *_other_submitter(submitters, sets),
        *_no_code(workspace, sets),
    ]
    submitter = submitters[0] if submitters else ""
    return Plan(submitter, sets, tuple(problems), tuple(notes), division)


# ---- result sets --------------------------------------------------------------------------


def _says_what_it_is(run: Run) -> bool:
    return bool(run.benchmark) and run.division in DIVISIONS


def _result_sets(mapped: Iterable[Mapped], workspace: Workspace) -> list[PlannedSet]:
    groups: dict[tuple[str, str, str], list[Mapped]] = {}
    for each in mapped:
        scaling = _scaling(each.run) if workspace.round.usage == "hpc" else ""
        groups.setdefault((each.system.id, scaling, each.run.benchmark), []).append(each)
    return [
        PlannedSet(
            system=members[0].system,
            benchmark=benchmark,
            scaling=scaling or None,
            runs=tuple(sorted((each.run for each in members), key=start_order)),
            why=", ".join(sorted({each.why for each in members})),
        )
        for (_, scaling, benchmark), members in sorted(groups.items())
    ]


def _scaling(run: Run) -> str:
    """As a folder on the log's path says, else ``strong``."""
    return next((part for part in run.path.split("/")[:-1] if part in SCALINGS), SCALINGS[0])


# ---- submitter ----------------------------------------------------------------------------


def _submitters(workspace: Workspace, sets: Sequence[PlannedSet]) -> list[str]:
    """The configuration's, else those of the systems, else the organizations of the logs."""
    if workspace.config.submitter:
        return [workspace.config.submitter]
    described = {planned.system.submitter or "" for planned in sets}
    logged = {run.text("org") for planned in sets for run in planned.runs}
    return sorted(filter(None, described)) or sorted(filter(None, logged))


def _bad_submitter(submitters: Sequence[str]) -> Iterator[str]:
    lines = f"Say in {CONFIG_NAME} who submits:\n  submitter: "
    if not submitters:
        yield f"neither a system description nor a log names a submitter. {lines}..."
    elif len(submitters) > 1:
        yield (
            f"several submitters: {', '.join(submitters)}. A submission has one: build with the"
            f" systems and logs of one at a time. Or if they are one: {lines}{submitters[0]}"
        )
    elif not _FOLDER_NAME.fullmatch(submitters[0]):
        proposed = re.sub(r"[^\w.+-]+", "-", submitters[0]).strip("-.")
        yield f"the submitter {submitters[0]!r} cannot name a folder in git. {lines}{proposed}"


def _other_submitter(submitters: Sequence[str], sets: Sequence[PlannedSet]) -> Iterator[str]:
    for system in {planned.system.id: planned.system for planned in sets}.values():
        if system.submitter and system.submitter not in submitters:
            yield f"{system.path} names another submitter: {system.submitter!r}"


# ---- problems -----------------------------------------------------------------------------


def _unnamed(workspace: Workspace) -> Iterator[str]:
    others = [run.path for run in workspace.runs if not _says_what_it_is(run)]
    if others:
        yield (
            f"{folded(others)}: no submission_benchmark, or no submission_division that is"
            f" {' or '.join(DIVISIONS)}: complete the log, or take it out of"
            f" {workspace.folders.logs}"
        )


def _strange_systems(workspace: Workspace) -> Iterator[str]:
    known = [system.id for system in workspace.systems]
    for name in sorted(workspace.config.systems.keys() - set(known)):
        yield f"{CONFIG_NAME}: systems: {name}: there is no {name}.json among the systems"
    for system in workspace.systems:
        if system.contents is None:
            yield from (f"{each.path}:{each.line}: {each.message}" for each in system.findings)


def _bad_names(sets: Iterable[PlannedSet]) -> Iterator[str]:
    systems = {planned.system.path: planned.system.id for planned in sets}
    for path, name in systems.items():
        if not _FOLDER_NAME.fullmatch(name):
            yield f"{path}: {name!r} cannot name a folder in git: rename the file"
    for planned in sets:
        if not _FOLDER_NAME.fullmatch(planned.benchmark):
            logs = folded([run.path for run in planned.runs])
            yield f"{logs}: {planned.benchmark!r} is no name of a benchmark"


# ---- notes --------------------------------------------------------------------------------


def _other_division(named: Sequence[Run], division: str | None) -> Iterator[str]:
    for other in DIVISIONS if division else ():
        logs = [run.path for run in named if run.division == other != division]
        if logs:
            yield f"left out, of the {other} division: {folded(logs)}"


def _left_out(apart: set[str], every: Iterable[PlannedSet]) -> Iterator[str]:
    runs = {planned.name: len(planned.runs) for planned in every}
    for name in sorted(apart & runs.keys()):
        yield f"left out as you asked: {name}, {words.counted(runs[name], 'run')}"


def _unknown(apart: Collection[str], every: Iterable[PlannedSet]) -> Iterator[str]:
    """The configuration may name sets of another division, so that this is a problem of options."""
    known = {planned.name for planned in every}
    for name in sorted(set(apart) - known):
        yield f"there is no result set {name} to leave out{did_you_mean(name, known)}"


def _no_match(workspace: Workspace) -> Iterator[str]:
    for name, given in workspace.config.systems.items():
        for pattern in given.logs:
            if not any(fnmatchcase(run.path, pattern) for run in workspace.runs):
                yield f"{CONFIG_NAME}: systems: {name}: no log matches {pattern!r}"


def _unused(
    workspace: Workspace, division: str | None, sets: Iterable[PlannedSet]
) -> Iterator[str]:
    used = {planned.system.id for planned in sets}
    wanted = [s for s in workspace.systems if division in (None, s.division)]
    if others := [system.path for system in wanted if system.id not in used]:
        yield f"not copied, as there are no results: {', '.join(others)}"


def _no_code(workspace: Workspace, sets: Iterable[PlannedSet]) -> Iterator[str]:
    without = sorted({planned.benchmark for planned in sets} - workspace.config.code.keys())
    if without:
        yield (
            f"no code of {', '.join(without)}: a submission needs it under benchmarks/; say in"
            f" {CONFIG_NAME} where it lies:\n  code:\n    {without[0]}: <folder>"
        )
