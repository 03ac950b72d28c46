"""Plan a check: which files are read, by the rules of which round."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from mlperf_pkg.checker.reading import Guard
from mlperf_pkg.checker.values import Options
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Unchecked
from mlperf_pkg.infra.paths import AnyPath
from mlperf_pkg.infra.source import Source
from mlperf_pkg.rulebook import rounds
from mlperf_pkg.rulebook.documents import rounds as rounds_of
from mlperf_pkg.rulebook.load import before_first
from mlperf_pkg.run.model import LogFile, benchmark_of, infer_round
from mlperf_pkg.run.power import PowerFile
from mlperf_pkg.submission.model import (
    TRAIN_SAMPLES,
    Input,
    Place,
    PowerFolder,
    ResultSet,
    Submission,
    Workspace,
    power_names,
)
from mlperf_pkg.submission.raw_logs import mentions_in


class CheckPlan(Struct, frozen=True):
    """The logs of one submission, of result sets outside one, or raw logs, and their round.

    ``submission`` is None for the other two; raw logs do not have ``sets`` either. Raw logs of a
    ``workspace`` have one round; each other raw log has its own usage, round and reason. Otherwise,
    ``round`` is None only without logs; ``reason`` says how it was chosen. ``raw`` maps paths to
    the files of raw logs, ``files`` are the paths of those that are arguments themselves, and
    ``flags`` apply to raw logs; ``has_every_log`` is as in ``Input``. ``whole`` is the only file
    among the arguments, if it has several runs. ``power`` are the measurements of raw logs. A plan
    that could not be made has only the finding ``unchecked``.
    """

    submission: Submission | None
    sets: tuple[ResultSet, ...]
    usage: str | None
    round: str | None
    reason: str
    logs: tuple[LogFile, ...]
    unchecked: Unchecked | None = None
    flags: frozenset[str] = frozenset()
    workspace: Workspace | None = None
    raw: Mapping[str, Place] = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    whole: LogFile | None = None
    has_every_log: bool = False
    power: PowerFolder | None = None

    @property
    def label(self) -> str | None:
        """The path of the submission; None if there is none."""
        return self.submission.place.label if self.submission else None

    @property
    def sources(self) -> dict[str, Source]:
        """The logs by path."""
        return {log.source.label: log.source for log in self.logs}


class PlannedRound(Struct, frozen=True):
    """The usage and the round of a plan; None where the logs are to decide."""

    usage: str | None
    round: rounds.RoundChoice | None

    @property
    def name(self) -> str | None:
        """The name of the round."""
        return self.round.name if self.round else None

    @property
    def reason(self) -> str:
        """Why it is this round; empty if there is none."""
        return self.round.reason if self.round else ""


def plans_of(inputs: Sequence[Input], options: Options) -> Iterator[CheckPlan]:
    """Plan the check of all inputs: each submission, result sets outside one, and raw logs.

    Result sets outside a submission are planned together with others of that submission. Raw logs
    are planned by workspace, as the logs of one result set may be in several inputs.
    """
    yield from _plans_of_submissions(inputs, options)
    yield from _plans_of_folders(inputs, options)
    by_workspace: dict[Path | None, list[Input]] = {}
    for input_ in inputs:
        if input_.logs:
            folder = input_.workspace.folder.resolve() if input_.workspace else None
            by_workspace.setdefault(folder, []).append(input_)
    for workspace_inputs in by_workspace.values():
        yield _plan_raw_logs(workspace_inputs, options)


def _plans_of_submissions(inputs: Sequence[Input], options: Options) -> Iterator[CheckPlan]:
    by_folder: dict[AnyPath, list[Submission]] = {}
    for submission in chain.from_iterable(input_.submissions for input_ in inputs):
        by_folder.setdefault(submission.place.path.parent, []).append(submission)
    for submissions in by_folder.values():
        plans: list[CheckPlan] = []
        for submission in submissions:
            choice = choice_for(submission.place.path, options)
            plans.append(_guarded_plan(submission.result_sets, choice, submission))
        for plan in plans:
            yield _of_one_round(plan, plans)


def _plans_of_folders(inputs: Sequence[Input], options: Options) -> Iterator[CheckPlan]:
    """Plan the check of result sets outside a submission, by the folder of their submission."""
    by_tree: dict[Place, dict[str, ResultSet]] = {}
    for files in chain.from_iterable(input_.result_sets for input_ in inputs):
        by_tree.setdefault(files.tree or files.place, {})[files.place.label] = files
    for tree, sets in by_tree.items():
        yield _guarded_plan(tuple(sets.values()), choice_for(tree.path, options))


def _of_one_round(plan: CheckPlan, plans: Sequence[CheckPlan]) -> CheckPlan:
    """Return a plan; of the next round if most submissions of the folder are of that round.

    A submission may consist of logs that were submitted to the previous round as well.
    """
    inferred: list[rounds.RoundChoice] = []
    for other in plans:
        if other.usage == plan.usage and other.logs:
            choice = other.logs[0].choice
            if choice and choice.sureness is rounds.Sureness.INFERRED:
                inferred.append(choice)
    numbers = Counter(choice.name for choice in inferred)
    for name, later in pairwise(rounds_of(plan.usage) if plan.usage else ()):
        if name == plan.round and numbers[later] > numbers[name] > 0:
            choice = next(choice for choice in inferred if choice.name == later)
            return _guarded_plan(plan.sets, PlannedRound(plan.usage, choice), plan.submission)
    return plan


def _plan_raw_logs(inputs: Sequence[Input], options: Options) -> CheckPlan:
    """Plan the check of raw logs: those of a workspace by one round, each other one by its own."""
    raw: dict[str, Place] = {}
    named_files: set[str] = set()
    for input_ in inputs:
        labels = [log.label for log in input_.logs]
        raw.update(zip(labels, input_.logs, strict=True))
        if input_.is_file:
            named_files.update(labels)
    workspace = inputs[0].workspace
    if workspace and options.named:
        workspace = replace(workspace, config=options.config)
    elif workspace:
        options = _with_settings(options, workspace)
    folders = {place.folder for place in raw.values()}
    choices = {folder: choice_for(folder.path, options) for folder in folders}
    choice = PlannedRound(None, None)
    if workspace:
        choice = _choice_of_workspace(list(raw.values()), set(choices.values()), options)
        choices = dict.fromkeys(folders, choice)
    logs: list[LogFile] = []
    samples = bool(TRAIN_SAMPLES & options.flags)
    for place in raw.values():
        logs.append(_log_file(place, choices[place.folder], train_samples=samples))
    return CheckPlan(
        submission=None,
        sets=(),
        usage=choice.usage,
        round=choice.name,
        reason=choice.reason,
        logs=tuple(logs),
        flags=options.flags,
        workspace=workspace,
        raw=raw,
        files=frozenset(named_files),
        whole=_whole_file(inputs, choices, train_samples=samples),
        has_every_log=any(input_.has_every_log for input_ in inputs),
        power=_power_of(raw, chain.from_iterable(input_.power for input_ in inputs)),
    )


def _power_of(raw: Mapping[str, Place], files: Iterable[Place]) -> PowerFolder | None:
    """Return the measurements of raw logs, in ``power/<log>/`` beside them; None if none was."""
    by_folder: dict[str, set[str]] = {}
    for file in files:
        parts = f"/{file.label}".rpartition("/power/")
        names = parts[2].split("/")
        if len(names) > 1:
            by_folder.setdefault(f"{parts[0]}/power/{names[0]}", set()).add(names[1])
    if not by_folder:
        return None
    results: dict[str, tuple[str, ...] | None] = {}
    folders: dict[str, Place] = {}
    for label, log in raw.items():
        for name in power_names(log.name):
            folder = log.folder.child(f"power/{name}")
            if f"/{folder.label}" in by_folder:
                results[label] = tuple(sorted(by_folder[f"/{folder.label}"]))
                folders[label] = folder
                break
    return PowerFolder(Place("power", "power"), results, folders) if folders else None


def _whole_file(
    inputs: Sequence[Input], choices: Mapping[Place, PlannedRound], *, train_samples: bool
) -> LogFile | None:
    """Return the only file among the arguments, as one log, if it has several runs."""
    if len(inputs) > 1 or not inputs[0].is_file or not inputs[0].logs[0].lines:
        return None
    file = inputs[0].logs[0].whole
    return _log_file(file, choices[file.folder], train_samples=train_samples)


def _choice_of_workspace(
    logs: Sequence[Place], choices: Collection[PlannedRound], options: Options
) -> PlannedRound:
    """Return one usage and round for all logs, as their folders say if these agree."""
    choice = PlannedRound(options.usage, None)
    if len(choices) == 1:
        (choice,) = choices
    return _choice_of_logs(logs, (), choice)


def _with_settings(options: Options, workspace: Workspace) -> Options:
    """Return the options; those without usage or round get that of the workspace."""
    config = options.config
    usage = config.usage or workspace.config.usage
    round_ = config.round or workspace.config.round
    origin = options.origin if config.round else workspace.origin
    return replace(options, config=replace(config, usage=usage, round=round_), origin=origin)


def _guarded_plan(
    sets: tuple[ResultSet, ...], choice: PlannedRound, submission: Submission | None = None
) -> CheckPlan:
    place = submission.place if submission else sets[0].place
    with Guard(place.label or ".", "looking for the usage and the round") as guard:
        return _plan_sets(sets, choice, submission)
    return CheckPlan(submission, (), None, None, "", (), guard.finding)


def _plan_sets(
    sets: tuple[ResultSet, ...], choice: PlannedRound, submission: Submission | None = None
) -> CheckPlan:
    places = list(chain.from_iterable((*files.logs, *files.pruned) for files in sets))
    choice = _choice_of_logs(places, [files.benchmark for files in sets], choice)
    train_samples = any(TRAIN_SAMPLES & files.flags for files in sets)
    logs = tuple(_log_file(place, choice, train_samples=train_samples) for place in places)
    return CheckPlan(submission, sets, choice.usage, choice.name, choice.reason, logs)


def _choice_of_logs(
    places: Sequence[Place], benchmarks: Sequence[str], choice: PlannedRound
) -> PlannedRound:
    """Return one usage and round for all logs; infer from the logs what the options do not set."""
    round_ = choice.round
    inferred = None
    benchmark = ""
    if not choice.usage:
        inferred, benchmark = _usage_of_logs(places, benchmarks, choice.name)
    usage = choice.usage or inferred or rounds.TRAINING
    if round_ is None and places:  # the latest one, as earlier logs may be submitted again
        choices = _of_logs(infer_round, places, usage)
        unread = rounds.round_of_run(usage, 0, "")
        round_ = max(choices, key=attrgetter("precedence"), default=unread)
        if round_.day is None:
            _refuse_old_format(places)
    if round_ and inferred and usage != rounds.TRAINING:
        round_ = round_.of_usage(inferred, benchmark)
    return PlannedRound(usage, round_)


def _refuse_old_format(places: Iterable[Place]) -> None:
    """Refuse logs of a round before the first of the rules, none of which has a time.

    Raises:
        UserError: a log has the format of such a round.
    """
    for place in places:
        with suppress(OSError), place.source.open() as stream:
            reason = mentions_in(stream).old_format
            if reason:
                raise UserError(f"{place.label}: {reason}")


def _usage_of_logs(
    places: Sequence[Place], benchmarks: Sequence[str], round_name: str | None
) -> tuple[str | None, str]:
    """Return the usage by the first log that names a benchmark, or else by the folders; and it."""
    for benchmark in chain(_of_logs(benchmark_of, places), benchmarks):
        usage = rounds.usage_with(benchmark, round_name)
        if usage:
            return usage, benchmark
    return None, ""


def _log_file(place: Place, choice: PlannedRound, *, train_samples: bool = False) -> LogFile:
    source = place.source
    usage = choice.usage
    round_ = choice.round
    if round_ is None:
        return LogFile(source, usage, None, train_samples)
    return LogFile(source, usage, round_.name, train_samples, round_.reason, round_.sureness)


_Value = TypeVar("_Value")


def _of_logs(
    function: Callable[[LogFile], _Value], places: Iterable[Place], usage: str | None = None
) -> Iterator[_Value]:
    """Yield what a function returns for each log; those that cannot be read are reported later."""
    for place in places:
        with suppress(OSError):
            yield function(LogFile(place.source, usage))


def choice_for(folder: AnyPath, options: Options) -> PlannedRound:
    """Choose usage and round by the options, or else by the names in the path of a folder.

    Raises:
        UserError: the folder is of a round before the first of the rules.
    """
    named = rounds.round_of_tree(_names(folder))
    usage = options.usage or options.config.usage
    if not usage and named:
        usage = named[0]
    choice = None
    if options.round:
        choice = rounds.RoundChoice(options.round)
    elif options.config.round:
        choice = rounds.RoundChoice(options.config.round, f"as {options.origin} says")
    elif named:
        too_early = before_first(usage or rounds.TRAINING, named[1])
        if too_early:
            raise UserError(f"{folder}: {too_early}")
        reason = f"from the folder name v{named[1]}"
        choice = rounds.RoundChoice(named[1], reason, rounds.Sureness.NAMED)
    return PlannedRound(usage, choice)


def _names(folder: AnyPath) -> Iterator[str]:
    """Yield the names of a folder and those around it; after a link those of where it leads."""
    if not isinstance(folder, Path):
        yield from reversed(folder.parts)
        return
    path = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
    while path.name:
        yield path.name
        path = path.resolve() if path.is_symlink() else path.parent


def names_of(plans: Iterable[CheckPlan]) -> frozenset[tuple[str, str, str]]:
    """Return the names of all result sets in submissions, each as ``NameInRound``."""
    names: set[tuple[str, str, str]] = set()
    for plan in plans:
        if plan.submission:
            for files in plan.sets:
                name = files.name_of(plan.submission.name)
                names.add((plan.usage or "", plan.round or "", name))
    return frozenset(names)


def power_files(plan: CheckPlan) -> Iterator[PowerFile]:
    """Yield the power logs of all result sets, and of raw logs."""
    places: dict[str, Place] = {}
    measured = [(files.power, log.label) for files in plan.sets for log in files.logs]
    measured += [(plan.power, label) for label in plan.raw]
    for power, label in measured:
        if power is not None:
            places.update((place.label, place) for place in power.logs_of(label))
    for place in places.values():
        yield PowerFile(place.source, place.name.startswith("sw_"))
